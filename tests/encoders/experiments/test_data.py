from dataclasses import replace

import numpy as np
import pytest

from encoders.experiments.data import LabelledTexts, Split
from encoders.experiments.labelling import labelled_texts
from tests.encoders.experiments.samples import peptide_rows, sentence_rows


@pytest.fixture
def classification() -> LabelledTexts:
    return labelled_texts(sentence_rows(), name="data.csv")


@pytest.fixture
def regression() -> LabelledTexts:
    return labelled_texts(peptide_rows(), name="data.csv", text_column="helm", label_column="share")


def test_regression_labels_are_standard_on_train_and_can_be_read_back(regression: LabelledTexts):
    labels = np.array(regression.labels("train"))
    assert labels.mean() == pytest.approx(0, abs=1e-12)
    assert labels.std() == pytest.approx(1)
    for split in regression.splits:
        restored = regression.read_labels(np.array(regression.labels(split)))
        np.testing.assert_allclose(restored, regression.splits[split].targets)


def test_regression_outputs_are_read_in_the_units_of_the_targets(regression: LabelledTexts):
    targets = regression.train.targets
    outputs = np.array([[0.0], [1.0]], dtype=np.float32)
    np.testing.assert_allclose(regression.read_outputs(outputs), [targets.mean(), targets.mean() + targets.std()])


def test_class_labels_and_outputs_are_indices(classification: LabelledTexts):
    assert classification.labels("dev") == classification.splits["dev"].targets.tolist()
    assert classification.read_outputs(np.array([[0.1, 0.9], [2.0, -1.0]])).tolist() == [1, 0]
    assert classification.read_labels(np.array([1, 0])).tolist() == [1, 0]


def test_the_fingerprint_follows_the_contents_and_not_the_name(classification: LabelledTexts):
    assert replace(classification, name="other.csv", notes=()).sha256 == classification.sha256
    train = classification.train
    changed = {
        "text": replace(train, texts=("other", *train.texts[1:])),
        "target": replace(train, targets=1 - train.targets),
        "order": Split(train.rows[::-1], train.texts[::-1], train.targets[::-1]),
    }
    fingerprints = {
        replace(classification, splits={**classification.splits, "train": split}).sha256 for split in changed.values()
    }
    fingerprints.add(replace(classification, classes=("a", "b")).sha256)
    assert len(fingerprints - {classification.sha256}) == 4


def test_texts_of_train_that_come_back_are_counted(classification: LabelledTexts):
    assert classification.repeated_texts == 0
    test = classification.splits["test"]
    leaky = replace(test, texts=(*test.texts[:-2], classification.train.texts[0], classification.train.texts[0]))
    assert replace(classification, splits={**classification.splits, "test": leaky}).repeated_texts == 2
