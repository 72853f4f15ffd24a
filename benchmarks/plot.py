"""Figures from result files: `python -m benchmarks.plot [FOLDER]` draws what the JSON files in the folder hold."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib import colormaps
from matplotlib.figure import Figure

from benchmarks.cases import SETS, SHAPES
from benchmarks.peers import PEERS

Record = dict[str, Any]
STRONG_THEN_PALE = [*range(0, 20, 2), *range(1, 20, 2)]
COLOURS = dict(zip(("ours", *PEERS), colormaps["tab20"](STRONG_THEN_PALE), strict=False))


def main(words: list[str] | None = None) -> None:
    """Draw every figure that the results of a folder suffice for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent / "results")
    folder = parser.parse_args(words).folder
    read = [record for file in sorted(folder.glob("*.json")) for record in json.loads(file.read_text())["records"]]
    for name, figure in figures(merge(read)).items():
        figure.savefig(folder / f"{name}.png", dpi=150)
        print(folder / f"{name}.png")


def merge(records: list[Record]) -> list[Record]:
    """Join records of one family, shape and mode that were measured with other peers; the first of a kind counts."""
    merged: dict[tuple[str, str, str], Record] = {}
    for record in records:
        first = merged.setdefault((record["family"], record["shape"], record["mode"]), {})
        for field, value in record.items():
            both = isinstance(value, dict) and isinstance(first.get(field), dict)
            first[field] = {**value, **first[field]} if both else first.get(field, value)
    return list(merged.values())


def figures(records: list[Record]) -> dict[str, Figure]:
    """Return the figures by name; none for what was not measured."""
    found = {}
    for mode in ("inference", "training"):
        timed = [record for record in records if record["mode"] == mode]
        name = f"speed-by-shape-{mode}"
        found[name] = speed_by_shape([record for record in timed if record["shape"] in SETS["standard"]], mode)
        for by, label, position in (("fill", "real tokens / all tokens", fill_of), ("length", "tokens", length_of)):
            chosen = [record for record in timed if record["shape"] in SETS[by]]
            found[f"speed-by-{by}-{mode}"] = lines(chosen, position, label, tokens_per_second, f"real tokens/s, {mode}")
        chosen = [one for one in records if one["mode"] == f"{mode} memory" and one["shape"] in SETS["long"]]
        found[f"memory-by-length-{mode}"] = lines(chosen, length_of, "tokens", megabytes, f"MB above the model, {mode}")
    return {name: figure for name, figure in found.items() if figure is not None}


def fill_of(record: Record) -> float:
    """Return which share of a batch is real tokens."""
    return record["tokens"] / record["padded_tokens"]


def length_of(record: Record) -> int:
    """Return the padded length of a batch."""
    return SHAPES[record["shape"]].length


def tokens_per_second(record: Record) -> dict[str, float]:
    """Return the speed of each model."""
    return {model: speed["tokens_per_second"] for model, speed in record["speed"].items()}


def megabytes(record: Record) -> dict[str, float]:
    """Return the memory of each model."""
    return record["memory_megabytes"]


def others(record: Record) -> dict[str, dict[str, float]]:
    """Return the ratios of other implementations, without those of our own with something left out."""
    return {peer: ratio for peer, ratio in record["ratios"].items() if not peer.startswith("ours-")}


def panels(records: list[Record], width: float) -> tuple[Figure, dict[str, Any]]:
    """Return a figure with a panel for each family."""
    families = list(dict.fromkeys(record["family"] for record in records))
    figure = Figure(figsize=(width * len(families), 3.6), layout="constrained")
    axes = figure.subplots(1, len(families), sharey=True, squeeze=False)[0]
    for panel, family in zip(axes, families, strict=True):
        panel.set_title(family)
        panel.grid(axis="y", alpha=0.3)
    return figure, dict(zip(families, axes, strict=True))


def speed_by_shape(records: list[Record], mode: str) -> Figure | None:
    """Draw each other implementation's processor time over ours as a bar with its extremes; None if there are none."""
    records = [record for record in records if others(record)]
    if not records:
        return None
    figure, axes = panels(records, width=3.4)
    for family, panel in axes.items():
        own = [record for record in records if record["family"] == family]
        peers = list(dict.fromkeys(peer for record in own for peer in others(record)))
        for number, peer in enumerate(peers):
            measured = [(place, one["ratios"][peer]) for place, one in enumerate(own) if peer in one["ratios"]]
            places = [place + (number + 0.5 - len(peers) / 2) * 0.8 / len(peers) for place, _ in measured]
            medians = [ratio["median"] for _, ratio in measured]
            errors = [[abs(ratio[end] - ratio["median"]) for _, ratio in measured] for end in ("lowest", "highest")]
            panel.bar(places, medians, 0.8 / len(peers), yerr=errors, color=COLOURS[peer], label=peer, capsize=2)
        panel.axhline(1, color="0.3", linewidth=0.8)
        panel.set_xticks(range(len(own)), [record["shape"] for record in own], rotation=35, ha="right")
    next(iter(axes.values())).set_ylabel(f"their time / ours, {mode}")
    add_legend(figure)
    return figure


def lines(
    records: list[Record],
    position: Callable[[Record], float],
    label: str,
    values: Callable[[Record], dict[str, float]],
    value_label: str,
) -> Figure | None:
    """Draw a line for each model over the records' positions; None where there is one position, or none."""
    if len(set(map(position, records))) < 2:
        return None
    figure, axes = panels(records, width=3.2)
    for family, panel in axes.items():
        own = sorted((record for record in records if record["family"] == family), key=position)
        for model in dict.fromkeys(model for record in own for model in values(record)):
            points = [(position(record), values(record)[model]) for record in own if model in values(record)]
            if len(points) > 1:  # one alone is of a run about something else
                panel.plot(*zip(*points, strict=True), "o-", label=model, color=COLOURS[model], markersize=4)
        panel.set_yscale("log")
        if position is length_of:
            panel.set_xscale("log")
            lengths = sorted({length_of(record) for record in own})
            panel.set_xticks(lengths, [f"{length:,}" for length in lengths])
            panel.minorticks_off()
        panel.set_xlabel(label)
    next(iter(axes.values())).set_ylabel(value_label)
    add_legend(figure)
    return figure


def add_legend(figure: Figure) -> None:
    """Put one legend for all panels below them."""
    entries = {
        label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=len(entries), frameon=False)


if __name__ == "__main__":
    main()
