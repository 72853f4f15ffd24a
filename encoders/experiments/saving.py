"""The files of a comparison: results.csv, results.json and scores.png."""

import csv
import io
import json
from pathlib import Path
from typing import Any

from encoders.experiments.plot import png, score_figure
from encoders.experiments.results import Comparison
from encoders.experiments.runs import write_whole
from encoders.experiments.splits import HELD_OUT


def save(comparison: Comparison, folder: Path) -> list[Path]:
    """Write the three files, each of them whole or not at all, and return their paths."""
    contents = {
        "results.csv": as_csv(comparison).encode(),
        "results.json": json.dumps(as_json(comparison), indent=2, ensure_ascii=False).encode(),
        "scores.png": png(score_figure(comparison)),
    }
    for name, content in contents.items():
        write_whole(folder / name, content)
    return [folder / name for name in contents]


def as_csv(comparison: Comparison) -> str:
    """Return one line for each backbone or baseline, seed and split."""
    text = io.StringIO()
    writer = csv.DictWriter(text, ["backbone", "seed", "split", *comparison.metrics], lineterminator="\n")
    writer.writeheader()
    writer.writerows(comparison.rows)
    return text.getvalue()


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Return everything that is known about the comparison, as plain values."""
    return {
        "name": comparison.name,
        "task": comparison.task,
        **comparison.facts,
        "seconds": [
            {"backbone": run.backbone, "seed": run.seed, "seconds": round(run.seconds, 2)} for run in comparison.runs
        ],
        "rows": comparison.rows,
        "summary": {
            split: {
                backbone: {metric: spread._asdict() for metric, spread in metrics.items()}
                for backbone, metrics in comparison.summary(split).items()
            }
            for split in HELD_OUT
        },
    }
