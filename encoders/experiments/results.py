"""The outcome of a comparison."""

from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, NamedTuple

from encoders.experiments.data import Task
from encoders.experiments.metrics import METRICS
from encoders.experiments.runs import Run


class Spread(NamedTuple):
    """A metric over several seeds: its mean and sample standard deviation (None for a single run)."""

    mean: float
    deviation: float | None


@dataclass(frozen=True)
class Comparison:
    """What came out; `print(comparison)` shows the table.

    Attributes:
        name: what the data is called.
        task: "classification" or "regression".
        runs: the scores of every backbone and seed.
        baselines: the scores of the constant guess and of the bag of n-grams.
        facts: what else a reader needs, ready for JSON: data, settings, versions, notes, and each backbone's facts.
    """

    name: str
    task: Task
    runs: tuple[Run, ...]
    baselines: tuple[Run, ...]
    facts: dict[str, Any]

    def __str__(self) -> str:
        from encoders.experiments.report import table_as_text

        return table_as_text(self)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics, as in the rows."""
        return tuple(METRICS[self.task])

    @property
    def seeds(self) -> list[int]:
        """The seeds of the runs."""
        return sorted({run.seed for run in self.runs})

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row for each backbone or baseline, seed and split: those three, then the metrics."""
        return [
            {"backbone": run.backbone, "seed": run.seed, "split": split, **scores}
            for run in (*self.runs, *self.baselines)
            for split, scores in run.scores.items()
        ]

    def summary(self, split: str) -> dict[str, dict[str, Spread]]:
        """Return each metric's mean and spread over the seeds, by backbone or baseline."""
        scores: dict[str, list[dict[str, float]]] = {}
        for run in (*self.runs, *self.baselines):
            scores.setdefault(run.backbone, []).append(run.scores[split])
        return {
            backbone: {metric: _spread([each[metric] for each in runs]) for metric in self.metrics}
            for backbone, runs in scores.items()
        }


def _spread(values: list[float]) -> Spread:
    return Spread(fmean(values), stdev(values) if len(values) > 1 else None)
