"""The comparison as a table."""

from io import StringIO
from statistics import fmean

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from encoders.experiments.data import Task
from encoders.experiments.metrics import METRICS
from encoders.experiments.results import Comparison, Spread
from encoders.experiments.runs import Run


def score_table(comparison: Comparison) -> Table:
    """Return the table of mean scores: backbones in the order in which they were asked for, then the baselines."""
    seeds = len(comparison.seeds)
    spread = f"mean ± standard deviation over {seeds} seeds" if seeds > 1 else f"seed {comparison.seeds[0]}"
    target = comparison.facts["data"]["label_column"]
    table = Table(title=f"{comparison.name}: {comparison.task} of {target}, test split\n{spread}", box=SIMPLE_HEAD)
    table.add_column("backbone", no_wrap=True)
    for header in ("parameters", "s per run", *METRICS[comparison.task].values()):
        table.add_column(header, justify="right")

    runs = (*comparison.runs, *comparison.baselines)
    for backbone, scores in comparison.summary("test").items():
        parameters = comparison.facts["backbones"].get(backbone, {}).get("parameters")
        table.add_row(
            backbone,
            "" if parameters is None else f"{parameters:,}",
            f"{fmean(run.seconds for run in runs if run.backbone == backbone):.1f}",
            *(_cell(scores[metric]) for metric in comparison.metrics),
            end_section=backbone == comparison.runs[-1].backbone,
        )
    return table


def outcome(task: Task, run: Run) -> str:
    """Return one line about one run, in the task's first metric."""
    metric, name = next(iter(METRICS[task].items()))
    scores = ", ".join(f"{split} {scores[metric]:.3f}" for split, scores in run.scores.items())
    return f"{run.backbone}, seed {run.seed}: {name} {scores} ({run.seconds:.0f} s)"


def table_as_text(comparison: Comparison, width: int = 120) -> str:
    """Return the table as plain text."""
    text = StringIO()
    Console(file=text, width=width, markup=False, color_system=None).print(score_table(comparison))
    return text.getvalue()


def _cell(spread: Spread) -> str:
    return f"{spread.mean:.3f}" if spread.deviation is None else f"{spread.mean:.3f} ± {spread.deviation:.3f}"
