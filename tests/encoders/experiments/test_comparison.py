import csv
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import encoders
from encoders.experiments import Comparison, compare, comparison
from encoders.experiments.errors import ExperimentError
from encoders.experiments.labelling import labelled_texts
from encoders.experiments.runs import Run
from tests.encoders.experiments.samples import peptide_rows, sentence_rows

QUICK: dict[str, Any] = {"backbones": ["distilbert-nano"], "seeds": 2, "epochs": 1, "batch_size": 16}


def quick(data: Path, **options: Any) -> Comparison:
    return compare(**{**QUICK, "data": data, **options})


def scores(result: Comparison) -> list[dict[str, dict[str, float]]]:
    return [run.scores for run in result.runs]


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The backbones and seeds that are really trained, in order; training itself is skipped."""
    calls: list[tuple[str, int]] = []

    def instead(backbone, seed, data, settings, progress) -> Run:
        calls.append((backbone.name, seed))
        values = {"accuracy": 0.1 * seed, "macro_f1": 0.0, "mcc": 0.0}
        return Run(backbone.name, seed, {"dev": values, "test": values}, seconds=1.0, sha256=backbone.sha256)

    monkeypatch.setattr(comparison, "_train", instead)
    return calls


@pytest.mark.parametrize("backbone", encoders.list_encoders("*-nano"))
def test_every_family_learns_a_classification(backbone: str, sentences: Path):
    result = quick(sentences, backbones=[backbone], seeds=1, epochs=6, batch_size=8)
    summary = result.summary("test")
    assert summary["majority-class"]["accuracy"].mean == 0.5
    assert summary[backbone]["accuracy"].mean >= 0.9


@pytest.mark.parametrize("backbone", encoders.list_encoders("*-nano"))
def test_every_family_learns_a_regression_over_helm_strings(backbone: str, peptides: Path):
    options = {"text_column": "helm", "label_column": "share", "epochs": 10, "seeds": 1, "batch_size": 6}
    result = quick(peptides, backbones=[backbone], **options)
    assert result.facts["backbones"][backbone]["tokenizer"] == "HELMBertTokenizer"
    assert result.summary("test")[backbone]["spearman"].mean > 0.8
    assert result.summary("test")[backbone]["rmse"].mean < result.summary("test")["training-mean"]["rmse"].mean


def test_the_same_seeds_give_the_same_scores(peptides: Path):
    options = {"text_column": "helm", "label_column": "share", "seeds": 2}
    first, again = quick(peptides, **options), quick(peptides, **options)
    assert scores(first) == scores(again)
    assert scores(first)[0] != scores(first)[1]


def test_all_files_are_written(sentences: Path, tmp_path: Path):
    output = tmp_path / "deep" / "output"
    result = quick(sentences, output=output)
    assert sorted(path.name for path in output.iterdir()) == ["results.csv", "results.json", "runs", "scores.png"]
    header, *lines = csv.reader(io.StringIO((output / "results.csv").read_text()))
    assert header == ["backbone", "seed", "split", "accuracy", "macro_f1", "mcc"]
    assert [line[:3] for line in lines] == [
        [backbone, seed, split]
        for backbone, seed in [
            ("distilbert-nano", "0"),
            ("distilbert-nano", "1"),
            ("majority-class", "0"),
            ("bag-of-n-grams", "0"),
        ]
        for split in ("dev", "test")
    ]
    content = json.loads((output / "results.json").read_text())
    assert content["rows"] == result.rows
    assert content["data"]["rows"] == {"train": 48, "dev": 8, "test": 8}
    assert content["settings"]["seeds"] == [0, 1]
    assert content["settings"]["epochs"] == 1
    assert content["versions"]["encoder-zoo"] == encoders.__version__
    assert content["backbones"]["distilbert-nano"]["truncated"] == {"train": 0, "dev": 0, "test": 0}
    assert content["backbones"]["distilbert-nano"]["config"]["model_type"] == "distilbert"
    assert math.isfinite(content["summary"]["test"]["distilbert-nano"]["accuracy"]["deviation"])
    assert len(content["data"]["sha256"]) == 64


def test_nothing_is_written_without_a_folder(sentences: Path, tmp_path: Path, monkeypatch, trained):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    quick(sentences)
    assert list((tmp_path / "here").iterdir()) == []
    assert len(trained) == 2


def test_an_interrupted_comparison_goes_on_where_it_stopped(sentences: Path, tmp_path: Path, trained, monkeypatch):
    train = comparison._train

    def interrupted_at_the_third(*arguments: Any) -> Run:
        if len(trained) == 2:
            raise KeyboardInterrupt
        return train(*arguments)

    options = {"output": tmp_path / "output", "backbones": ["distilbert-nano", "norbert3-nano"]}
    monkeypatch.setattr(comparison, "_train", interrupted_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        quick(sentences, **options)
    assert not (tmp_path / "output" / "results.csv").exists()
    monkeypatch.setattr(comparison, "_train", train)
    result = quick(sentences, **options)
    assert trained == [(name, seed) for name in ("distilbert-nano", "norbert3-nano") for seed in (0, 1)]
    assert [(run.backbone, run.seed) for run in result.runs] == trained
    assert quick(sentences, **options).rows == result.rows
    assert len(trained) == 4


def test_more_seeds_and_backbones_only_add_runs(sentences: Path, tmp_path: Path, trained):
    quick(sentences, output=tmp_path / "output", seeds=1)
    quick(sentences, output=tmp_path / "output", seeds=2, backbones=["norbert3-nano", "distilbert-nano"])
    assert trained == [("distilbert-nano", 0), ("norbert3-nano", 0), ("norbert3-nano", 1), ("distilbert-nano", 1)]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epochs": 2}, "other epochs: 1 there, 2 here"),
        ({"batch_size": 8}, "other batch_size: 16 there, 8 here"),
        ({"learning_rate": 0.01}, "other learning_rate: None there, 0.01 here"),
        ({"max_length": 12}, "other max_length: None there, 12 here"),
        ({"pooling": "mean"}, "other pooling: None there, mean here"),
        ({"backbones": ["norbert3-nano"], "epochs": 2}, "other epochs: 1 there, 2 here"),
        ({"text_column": "label"}, r"other data: sentences.csv \(label, sha256 .*\) there"),
    ],
)
def test_another_configuration_in_the_same_folder_is_refused(
    changed: dict[str, Any], message: str, sentences: Path, tmp_path: Path, trained
):
    output = tmp_path / "output"
    quick(sentences, output=output)
    before = {path: path.read_bytes() for path in output.rglob("*.*")}
    with pytest.raises(ExperimentError, match=message):
        quick(sentences, output=output, **changed)
    assert {path: path.read_bytes() for path in output.rglob("*.*")} == before
    assert len(trained) == 2


def test_a_checkpoint_goes_through_the_same_comparison(sentences: Path, tmp_path: Path):
    tokenizer = comparison.prepare_backbones(
        ["norbert3-nano"], labelled_texts(sentence_rows(), name=""), comparison.Settings()
    )[0].tokenizer
    model = encoders.create("norbert3-nano", vocab_size=len(tokenizer), pad_token_id=0)
    for writer in (model, tokenizer):
        writer.save_pretrained(tmp_path / "checkpoint")
    name = str(tmp_path / "checkpoint")
    result = quick(sentences, backbones=["norbert3-nano", name], seeds=1, output=tmp_path / "output")
    facts = result.facts["backbones"]
    assert (facts[name]["weights"], facts["norbert3-nano"]["weights"]) == ("trained", "fresh")
    assert facts[name]["learning_rate"] < facts["norbert3-nano"]["learning_rate"]
    assert name in str(result) or name[:20] in str(result)


def test_what_was_decided_is_printed_and_kept(tmp_path: Path, trained):
    rows = [{key: row[key] for key in ("text", "label")} for row in sentence_rows()]
    rows += [{"text": "no label", "label": ""}, rows[0]]
    text = io.StringIO()
    result = compare(
        **QUICK,
        data=labelled_texts(rows, name="mood.csv"),
        max_length=10,
        console=Console(file=text, width=200),
    )
    printed = text.getvalue()
    for note in result.facts["notes"]:
        assert note in printed
    for expected in (
        "left out: 1 row with nothing in column 'label'",
        "task: classification",
        "splits: 80 % train",
        "tokenizer: WordPiece of",
        "rows truncated at 10 tokens for distilbert-nano: ",
        "fresh weights: 1 epochs",
        "majority-class, seed 0: accuracy dev",
        "distilbert-nano, seed 1: accuracy dev 0.100, test 0.100",
    ):
        assert expected in printed


def test_texts_of_train_in_test_are_pointed_out(trained):
    rows = sentence_rows()
    rows[-1]["text"] = rows[0]["text"]
    result = compare(**QUICK, data=labelled_texts(rows, name="mood.csv"))
    assert "1 row of dev and test with a text that is in train too" in result.facts["notes"]


def test_a_run_that_diverges_is_named(peptides: Path, monkeypatch: pytest.MonkeyPatch):
    fine_tune: Callable[..., Any] = comparison.fine_tune

    def diverging(*arguments: Any, **options: Any):
        outputs = fine_tune(*arguments, **options)
        return {split: (logits * math.nan, labels) for split, (logits, labels) in outputs.items()}

    monkeypatch.setattr(comparison, "fine_tune", diverging)
    with pytest.raises(ExperimentError, match=r"distilbert-nano, seed 0 diverged: .* lower --learning-rate"):
        quick(peptides, text_column="helm", label_column="share", seeds=1)


def test_columns_without_a_file_are_refused():
    with pytest.raises(ExperimentError, match="can be chosen for a data file only: give --data FILE"):
        compare(label_column="mood")


def test_scores_of_a_regression_are_in_the_units_of_the_data(peptides: Path):
    shifted = [{**row, "share": f"{1000 * float(row['share']):.1f}"} for row in peptide_rows()]
    options = {"text_column": "helm", "label_column": "share", "seeds": 1}
    plain = quick(peptides, **options).summary("test")["distilbert-nano"]
    data = labelled_texts(shifted, name="peptides.csv", text_column="helm", label_column="share", task="regression")
    scaled = compare(**{**QUICK, "seeds": 1, "data": data}).summary("test")["distilbert-nano"]
    assert scaled["rmse"].mean == pytest.approx(1000 * plain["rmse"].mean, rel=1e-3)
    assert scaled["r2"].mean == pytest.approx(plain["r2"].mean, abs=1e-3)
