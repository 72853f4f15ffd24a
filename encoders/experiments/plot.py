"""The comparison as a figure: every seed a dot, the baselines as lines."""

from io import BytesIO

from matplotlib.figure import Figure

from encoders.experiments.baselines import BAG_OF_NGRAMS
from encoders.experiments.metrics import METRICS
from encoders.experiments.results import Comparison

LINE_STYLES = {BAG_OF_NGRAMS: "dashed"}


def score_figure(comparison: Comparison) -> Figure:
    """Draw the test scores, a panel for each metric: seeds as dots, their mean as a bar, the baselines as lines."""
    backbones = list(dict.fromkeys(run.backbone for run in comparison.runs))
    names = METRICS[comparison.task]
    summary = comparison.summary("test")
    figure = Figure(figsize=(1.5 + 2.7 * len(names), 1.6 + 0.45 * len(backbones)), layout="constrained")
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for panel, (metric, name) in zip(panels, names.items(), strict=True):
        for position, backbone in enumerate(backbones):
            scores = [run.scores["test"][metric] for run in comparison.runs if run.backbone == backbone]
            panel.plot(scores, [position] * len(scores), "o", color=f"C{position}", alpha=0.6)
            panel.plot(summary[backbone][metric].mean, position, "|", color=f"C{position}", markersize=22)
        for baseline in comparison.baselines:
            style = LINE_STYLES.get(baseline.backbone, "dotted")
            panel.axvline(baseline.scores["test"][metric], color="0.4", linestyle=style, label=baseline.backbone)
        panel.set_xlabel(name)
        panel.grid(axis="x", alpha=0.3)
    panels[0].set_yticks(range(len(backbones)), backbones)
    panels[0].set_ylim(len(backbones) - 0.5, -0.5)
    figure.suptitle(f"{comparison.name}, test split: one dot for each seed, a bar at the mean")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return figure


def png(figure: Figure) -> bytes:
    """Render a figure."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()
