"""The command itself; what it runs is tested in tests/encoders/experiments."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from encoders.cli.main import app
from encoders.experiments import comparison, errors
from encoders.experiments.tables import Row
from tests.encoders.experiments.samples import peptide_rows, sentence_rows, write_csv

QUICK = ["--backbones", "distilbert-nano, norbert3-nano", "--seeds", "1", "--epochs", "1", "--batch-size", "16"]


def run(*arguments: object):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in an empty folder, so that whatever is written is seen."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "sentences.csv", sentence_rows())


def changed_rows(change: str) -> list[Row]:
    rows = sentence_rows()
    match change:
        case "empty split":
            rows = [row for row in rows if row["split"] != "dev"]
        case "label in one split":
            rows[0]["label"] = "mild"
        case "over-long row":
            rows[4]["text"] = "house " * 600
    return rows


def test_a_comparison_prints_its_table_and_names_its_files(sentences: Path, own_folder: Path):
    result = run("--data", sentences, *QUICK, "--output", "out")
    assert result.exit_code == 0, result.output
    for expected in ("distilbert-nano", "norbert3-nano", "majority-class", "bag-of-n-grams", "macro F1", "MCC"):
        assert expected in result.stdout
    assert "out: results.csv, results.json, scores.png" in result.stdout
    assert result.stderr == ""
    assert sorted(path.name for path in (own_folder / "out").iterdir()) == [
        "results.csv",
        "results.json",
        "runs",
        "scores.png",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "absent.csv"], "data file absent.csv does not exist"),
        (["--text-column", "sentence"], "sentences.csv has no column 'sentence'"),
        (["--label-column", "labels"], "sentences.csv has no column 'labels': did you mean 'label'?"),
        (["--split-column", "fold"], "sentences.csv has no column 'fold'"),
        (["--task", "regression"], "row 1: 'warm' in column 'label' is no number to regress on"),
        (["--task", "ranking"], "unknown task 'ranking': allowed are classification and regression"),
        (["--backbones", "distilbert-mini"], "unknown encoder 'distilbert-mini'"),
        (["--backbones", ","], "no backbones are given"),
        (["--max-length", "600"], "backbone distilbert-nano: it takes 512 tokens at most, not --max-length 600"),
        (["--pooling", "max"], "pooling must be mean or cls, not 'max'"),
        (["--seeds", "0"], "seeds must be 1 or more, not 0"),
        (["--learning-rate", "-1"], "learning_rate must be above 0 and at most 1, not -1"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2_and_nothing_is_written(
    arguments: list[str], message: str, sentences: Path, own_folder: Path
):
    assert_refused(run("--data", sentences, *QUICK, *arguments), message, own_folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("empty split", "changed.csv: the dev split has no rows"),
        ("label in one split", "changed.csv: label 'mild' occurs in the train split only (1 row)"),
        (
            "over-long row",
            "changed.csv: 1 row over-long for distilbert-nano, which was made for 512 tokens; the longest is row 5",
        ),
    ],
)
def test_bad_rows_are_one_line_and_exit_code_2_and_nothing_is_written(
    change: str, message: str, tmp_path: Path, own_folder: Path
):
    data = write_csv(tmp_path / "changed.csv", changed_rows(change))
    assert_refused(run("--data", data, *QUICK), message, own_folder)


def test_output_that_cannot_be_written_is_refused_before_training(sentences: Path, own_folder: Path, monkeypatch):
    monkeypatch.setattr(comparison, "_train", lambda *_: pytest.fail("trained"))
    (own_folder / "file").write_text("")
    result = run("--data", sentences, *QUICK, "--output", "file")
    (own_folder / "file").unlink()
    assert_refused(result, "cannot write to file/runs: Not a directory", own_folder)


def test_a_missing_extra_is_named(sentences: Path, own_folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(errors, "find_spec", lambda name: None)
    expected = (
        "comparisons need accelerate, scikit-learn, matplotlib: install with pip install 'encoder-zoo[train,plot]'"
    )
    assert_refused(run("--data", sentences, *QUICK), expected, own_folder)


def test_an_interruption_says_how_to_go_on(sentences: Path, own_folder: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(comparison, "_train", interrupt)
    result = run("--data", sentences, *QUICK)
    assert result.exit_code == 130
    assert "finished runs are in runs/sentences; the same command goes on from there" in result.stderr
    assert [path.name for path in (own_folder / "runs" / "sentences").iterdir()] == ["runs"]


def test_every_option_reaches_the_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    received: dict[str, Any] = {}

    def record(backbones: list[str], **options: Any) -> None:
        received.update(options, backbones=backbones)
        raise errors.ExperimentError("seen")

    monkeypatch.setattr(comparison, "compare", record)
    options = {
        "data": tmp_path / "peptides.csv",
        "text_column": "helm",
        "label_column": "share",
        "split_column": "fold",
        "task": "regression",
        "seeds": 4,
        "epochs": 5,
        "batch_size": 6,
        "learning_rate": 0.5,
        "max_length": 77,
        "pooling": "mean",
        "output": tmp_path / "out",
    }
    arguments = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    assert run("--backbones", "a,./b", *arguments).stderr == "error: seen\n"
    del received["console"]
    assert received == {**options, "backbones": ["a", "./b"]}


def test_the_installed_command_trains_quietly(tmp_path: Path):
    data = write_csv(tmp_path / "peptides.csv", peptide_rows())
    command = [sys.executable, "-W", "error", "-c", "from encoders.cli.main import app; app()", "compare"]
    command += ["--data", str(data), "--text-column", "helm", "--label-column", "share", *QUICK]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "peptides.csv: regression of share, test split" in done.stdout
    assert all(len(line) <= 120 for line in done.stdout.splitlines()), done.stdout


def assert_refused(result: Any, message: str, folder: Path) -> None:
    assert result.exit_code == 2, result.output
    [line] = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert message in line
    assert list(folder.iterdir()) == []
