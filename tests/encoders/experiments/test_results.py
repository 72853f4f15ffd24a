import csv
import io
import json
from pathlib import Path

import pytest

from encoders.experiments.plot import score_figure
from encoders.experiments.report import outcome, table_as_text
from encoders.experiments.results import Comparison
from encoders.experiments.runs import Run
from encoders.experiments.saving import as_csv, as_json, save


def run(backbone: str, seed: int, accuracy: float) -> Run:
    scores = {"accuracy": accuracy, "macro_f1": accuracy / 2, "mcc": 0.0}
    return Run(backbone, seed, {"dev": scores, "test": scores}, seconds=2.0 + seed, sha256="")


@pytest.fixture
def comparison() -> Comparison:
    return Comparison(
        name="data.csv",
        task="classification",
        runs=(run("a-nano", 0, 0.5), run("a-nano", 1, 0.7), run("[b]", 0, 0.9), run("[b]", 1, 0.9)),
        baselines=(run("majority-class", 0, 0.25), run("bag-of-n-grams", 0, 0.8)),
        facts={"data": {"label_column": "mood"}, "backbones": {"a-nano": {"parameters": 1234567}}},
    )


def test_the_summary_is_the_mean_and_sample_deviation_over_seeds(comparison: Comparison):
    summary = comparison.summary("test")
    assert list(summary) == ["a-nano", "[b]", "majority-class", "bag-of-n-grams"]
    assert summary["a-nano"]["accuracy"].mean == pytest.approx(0.6)
    assert summary["a-nano"]["accuracy"].deviation == pytest.approx(0.02**0.5)
    assert summary["[b]"]["accuracy"].deviation == 0.0
    assert summary["majority-class"]["accuracy"] == (0.25, None)


def test_csv_has_one_row_for_each_backbone_seed_and_split(comparison: Comparison):
    header, *lines = list(csv.reader(io.StringIO(as_csv(comparison))))
    assert header == ["backbone", "seed", "split", "accuracy", "macro_f1", "mcc"]
    assert len(lines) == 2 * 6
    assert lines[0] == ["a-nano", "0", "dev", "0.5", "0.25", "0.0"]
    assert lines[-1] == ["bag-of-n-grams", "0", "test", "0.8", "0.4", "0.0"]


def test_json_has_the_rows_the_summary_and_the_time_of_each_run(comparison: Comparison):
    content = as_json(comparison)
    assert content["rows"] == comparison.rows
    assert content["summary"]["test"]["bag-of-n-grams"]["accuracy"] == {"mean": 0.8, "deviation": None}
    assert content["seconds"][1] == {"backbone": "a-nano", "seed": 1, "seconds": 3.0}
    assert content["data"]["label_column"] == "mood"


def test_the_table_shows_means_spreads_sizes_and_times(comparison: Comparison):
    text = table_as_text(comparison)
    assert str(comparison) == text
    lines = [line.split() for line in text.splitlines()]
    assert "data.csv: classification of mood, test split" in text
    assert "mean ± standard deviation over 2 seeds" in text
    assert [
        "a-nano",
        "1,234,567",
        "2.5",
        *["0.600", "±", "0.141", "0.300", "±", "0.071", "0.000", "±", "0.000"],
    ] in lines
    assert ["majority-class", "2.0", "0.250", "0.125", "0.000"] in lines
    assert "[b]" in text


def test_a_single_seed_has_no_spread(comparison: Comparison):
    alone = Comparison(comparison.name, comparison.task, comparison.runs[:1], comparison.baselines, comparison.facts)
    assert "±" not in str(alone)
    assert "seed 0" in str(alone)


def test_a_run_in_one_line():
    assert outcome("classification", run("a-nano", 1, 0.5)) == "a-nano, seed 1: accuracy dev 0.500, test 0.500 (3 s)"


def test_the_figure_shows_every_seed_and_the_baselines(comparison: Comparison):
    panels = score_figure(comparison).axes
    assert [panel.get_xlabel() for panel in panels] == ["accuracy", "macro F1", "MCC"]
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["a-nano", "[b]"]
    dots = [line.get_xdata() for line in panels[0].lines if line.get_marker() == "o"]
    assert [list(each) for each in dots] == [[0.5, 0.7], [0.9, 0.9]]  # pyright: ignore
    lines = {line.get_label(): line.get_xdata()[0] for line in panels[0].lines if line.get_marker() == "None"}  # pyright: ignore
    assert lines == {"majority-class": 0.25, "bag-of-n-grams": 0.8}


def test_all_files_are_saved(comparison: Comparison, tmp_path: Path):
    paths = save(comparison, tmp_path)
    assert sorted(path.name for path in paths) == ["results.csv", "results.json", "scores.png"]
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    assert (tmp_path / "scores.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "results.json").read_text())["task"] == "classification"
