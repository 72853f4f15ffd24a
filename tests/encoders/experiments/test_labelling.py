import numpy as np
import pytest

from encoders.experiments.data import LabelledTexts
from encoders.experiments.errors import ExperimentError
from encoders.experiments.labelling import labelled_texts
from encoders.experiments.tables import Row
from tests.encoders.experiments.samples import SPLITS, peptide_rows, sentence_rows


def read(rows: list[Row], **options: str) -> LabelledTexts:
    return labelled_texts(rows, name="data.csv", **options)


def read_peptides(rows: list[Row], **options: str) -> LabelledTexts:
    return read(rows, text_column="helm", label_column="share", **options)


def labelled(labels: list[str], **more: str) -> list[Row]:
    return [{"text": f"text {index}", "label": label, **more} for index, label in enumerate(labels)]


def test_classes_are_numbered_in_alphabetical_order():
    data = read(sentence_rows())
    assert data.task == "classification"
    assert data.classes == ("cold", "warm")
    assert data.sizes == {"train": 48, "dev": 8, "test": 8}
    first = data.splits["train"]
    assert (first.rows[0], first.texts[0], first.targets[0]) == (1, sentence_rows()[0]["text"], 1)


def test_rows_keep_their_numbers_from_the_file():
    rows = sentence_rows()
    data = read(rows)
    for split in data.splits.values():
        assert [rows[row - 1]["text"] for row in split.rows] == list(split.texts)


def test_targets_of_a_regression_are_the_numbers_themselves():
    data = read_peptides(peptide_rows())
    assert data.task == "regression"
    assert data.classes == ()
    assert data.splits["train"].targets[:3].tolist() == [-6.0, -5.75, -5.5]


@pytest.mark.parametrize(
    ("labels", "task", "reason"),
    [
        (["a", "b"], "classification", "not every label is a number"),
        (["1.5", "b"], "classification", "not every label is a number"),
        (["0", "1"], "classification", "every label is a whole number"),
        (["0.0", "1.0"], "classification", "every label is a whole number"),
        (["0", "1.5"], "regression", "not all are whole"),
        (["-1e-3", "2"], "regression", "not all are whole"),
        (["1.5", "nan"], "classification", "not every label is a number"),
    ],
)
def test_the_task_is_told_from_the_labels_and_said(labels: list[str], task: str, reason: str):
    data = read(labelled(labels * 20))
    assert data.task == task
    assert any(note.startswith(f"task: {task}") and reason in note for note in data.notes)


def test_the_task_that_is_asked_for_wins():
    rows = labelled(["1", "2", "3"] * 10)
    assert read(rows, task="regression").task == "regression"
    assert read(rows).task == "classification"
    with pytest.raises(ExperimentError, match="unknown task 'ranking': allowed are classification and regression"):
        read(rows, task="ranking")


def test_rows_with_an_empty_cell_are_left_out_and_counted():
    rows = peptide_rows()
    for row in rows[:5]:
        row["share"] = " "
    rows[7]["split"] = ""
    rows[8]["helm"] = ""
    data = read_peptides(rows)
    assert sum(data.sizes.values()) == len(rows) - 7
    assert "left out: 5 rows with nothing in column 'share'" in data.notes
    assert "left out: 1 row with nothing in column 'split'" in data.notes
    assert "left out: 1 row with nothing in column 'helm'" in data.notes


def test_without_named_splits_rows_are_split_by_hash_and_that_is_said():
    rows = [{"text": row["text"], "label": row["label"]} for row in sentence_rows(100)]
    data = read(rows)
    assert data.sizes == {"train": 80, "dev": 10, "test": 10}
    assert any("80 % train, 10 % dev, 10 % test, stratified" in note for note in data.notes)
    for split in data.splits.values():
        assert np.bincount(split.targets).tolist() == [len(split.texts) / 2] * 2


def test_a_regression_is_split_evenly_over_the_range_of_its_targets():
    data = read(labelled([f"{index / 7:.3f}" for index in range(200)]))
    assert data.sizes == {"train": 160, "dev": 20, "test": 20}
    deciles = (np.rint(np.sort(data.splits["test"].targets) * 7) // 20).tolist()
    assert deciles == [index // 2 for index in range(20)]


def test_a_named_split_column_wins_over_the_usual_one():
    rows = sentence_rows()
    for row in rows:
        row["fold"] = {"train": "train", "dev": "test", "test": "validation"}[row["split"]]
    assert read(rows).splits["dev"].texts == read(rows, split_column="fold").splits["test"].texts


def test_a_missing_split_column_is_refused_if_it_was_asked_for():
    with pytest.raises(ExperimentError, match=r"data\.csv has no column 'fold'"):
        read(sentence_rows(), split_column="fold")


def test_an_unknown_split_is_refused():
    rows = sentence_rows()
    rows[3]["split"] = "holdout"
    with pytest.raises(ExperimentError, match="row 4: 'holdout' in column 'split' is no split"):
        read(rows)


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_an_empty_split_is_refused(split: str):
    with pytest.raises(ExperimentError, match=f"data.csv: the {split} split has no rows"):
        read([row for row in sentence_rows() if row["split"] != split])


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_a_label_of_one_split_only_is_refused(split: str):
    rows = [*sentence_rows(), {"text": "tepid", "label": "mild", "split": split}]
    with pytest.raises(ExperimentError, match=rf"label 'mild' occurs in the {split} split only \(1 row\)"):
        read(rows)


def test_a_label_that_cannot_be_learnt_is_refused():
    rows = [*sentence_rows(), *({"text": "tepid", "label": "mild", "split": split} for split in ("dev", "test"))]
    with pytest.raises(ExperimentError, match="label 'mild' occurs in dev and test, but not in train"):
        read(rows)


def test_a_single_label_is_refused():
    rows = [{"text": str(index), "label": "same", "split": SPLITS[index]} for index in range(8)]
    with pytest.raises(ExperimentError, match="'same' is the only label"):
        read(rows)


@pytest.mark.parametrize("label", ["high", "inf", "nan", "1,5"])
def test_a_target_that_is_no_number_is_refused_with_its_row(label: str):
    rows = peptide_rows()
    rows[10]["share"] = label
    with pytest.raises(ExperimentError, match=f"row 11: '{label}' in column 'share' is no number to regress on"):
        read_peptides(rows, task="regression")


def test_regressions_without_anything_to_score_are_refused():
    rows = peptide_rows()
    for row in rows:
        row["share"] = "1.5"
    with pytest.raises(ExperimentError, match=r"every target in the train split is 1\.5"):
        read_peptides(rows)
    rows = peptide_rows()
    lonely = [row for row in rows if row["split"] != "dev"] + [row for row in rows if row["split"] == "dev"][:1]
    with pytest.raises(ExperimentError, match="the dev split has 1 row; scores of a regression need two or more"):
        read_peptides(lonely)


def test_data_without_a_complete_row_is_refused():
    with pytest.raises(ExperimentError, match="no row has something in each of the columns text, label"):
        read(labelled(["", ""]))
