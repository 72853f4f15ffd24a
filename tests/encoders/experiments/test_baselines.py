from collections import Counter

import numpy as np
import pytest

from encoders.experiments.baselines import BAG_OF_NGRAMS, baseline_runs, ngram_vectorizer
from encoders.experiments.labelling import labelled_texts
from tests.encoders.experiments.samples import peptide_rows, sentence_rows


@pytest.mark.parametrize(
    ("texts", "analyzer"),
    [
        (["two words", "and three more", "one"], "word"),
        (["PEPTIDE1{A.C}$$$$", "PEPTIDE1{A.D}$$$$"], "char"),
        (["这是一个句子。", "这是另一个句子。"], "char"),
    ],
)
def test_ngrams_are_of_words_where_texts_have_words(texts: list[str], analyzer: str):
    assert ngram_vectorizer(texts).analyzer == analyzer


def test_character_ngrams_tell_capitals_apart():
    features = ngram_vectorizer(["[dL]", "[DL]"]).fit_transform(["[dL]", "[DL]", "[dL]", "[DL]"])
    assert not np.array_equal(features[0].toarray(), features[1].toarray())


def test_baselines_of_a_classification():
    rows = sentence_rows()
    rows += [{**row, "text": f"{row['text']} again"} for row in rows if row["label"] == "cold"]
    data = labelled_texts(rows, name="data.csv")
    majority, ngrams = baseline_runs(data)
    assert (majority.backbone, majority.seed) == ("majority-class", 0)
    assert (ngrams.backbone, ngrams.seed) == (BAG_OF_NGRAMS, 0)
    shares = Counter(data.splits["test"].targets.tolist())
    assert majority.scores["test"]["accuracy"] == shares[0] / shares.total()
    assert ngrams.scores["test"] == {"accuracy": 1.0, "macro_f1": 1.0, "mcc": 1.0}
    assert ngrams.scores.keys() == {"dev", "test"}


def test_baselines_of_a_regression():
    data = labelled_texts(peptide_rows(), name="data.csv", text_column="helm", label_column="share")
    mean, ngrams = baseline_runs(data)
    test = data.splits["test"].targets
    assert mean.backbone == "training-mean"
    assert mean.scores["test"]["mae"] == pytest.approx(np.abs(test - data.train.targets.mean()).mean())
    assert mean.scores["test"]["pearson"] == 0.0
    assert ngrams.scores["test"]["r2"] > 0.8


def test_baselines_never_change():
    data = labelled_texts(peptide_rows(), name="data.csv", text_column="helm", label_column="share")
    assert [run.scores for run in baseline_runs(data)] == [run.scores for run in baseline_runs(data)]
