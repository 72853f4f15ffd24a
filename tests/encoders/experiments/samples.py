"""Small data that every test of the experiments can learn from in a second."""

import csv
from collections.abc import Sequence
from pathlib import Path

from encoders.experiments.tables import Row

SPLITS = ("train", "train", "train", "train", "train", "train", "dev", "test")


def sentence_rows(count: int = 64) -> list[Row]:
    """Sentences whose label is told by one word of them."""
    words = {"warm": ("sun", "fire", "oven"), "cold": ("snow", "ice", "frost")}
    fillers = ("grey", "tall", "quiet", "old", "narrow")
    rows = []
    for index in range(count):
        label = ("warm", "cold")[index % 2]
        word, filler = words[label][index % 3], fillers[index % 5]
        text = f"number {index} says that the {filler} house near the {word} is {fillers[index % 4]}"
        rows.append({"text": text, "label": label, "split": SPLITS[index // 2 % 8]})
    return rows


def peptide_rows(count: int = 48) -> list[Row]:
    """Peptides in HELM notation, with the share of leucine as target."""
    rows = []
    for index in range(count):
        leucines = index % 5
        monomers = ["L"] * leucines + ["[meA]"] * (4 - leucines) + ["ACDEFGHIKM"[index % 10], "ACDEFGHIKM"[index // 10]]
        helm = f"PEPTIDE1{{{'.'.join(monomers)}}}$$$$"
        rows.append({"helm": helm, "share": f"{leucines / 4 - 6:.2f}", "split": SPLITS[index // 2 % 8]})
    return rows


def write_csv(path: Path, rows: Sequence[Row]) -> Path:
    """Write rows with a header line."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path
