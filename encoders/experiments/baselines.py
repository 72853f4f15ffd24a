"""What any encoder has to beat: a guess that ignores the text, and a linear model on a bag of n-grams."""

import time
from collections.abc import Sequence

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge

from encoders.experiments.data import LabelledTexts
from encoders.experiments.metrics import quality, score
from encoders.experiments.runs import Run, Scores
from encoders.experiments.splits import HELD_OUT

BAG_OF_NGRAMS = "bag-of-n-grams"
CONSTANT = {"classification": "majority-class", "regression": "training-mean"}
REGULARISATION = {"classification": (1.0, 10.0, 100.0), "regression": (0.01, 0.1, 1.0, 10.0)}
"""The strengths tried on dev: C of the logistic regression, alpha of the ridge regression."""


def baseline_runs(data: LabelledTexts) -> tuple[Run, ...]:
    """Score both baselines. Nothing in them is random, so one run each, called seed 0, says it all."""
    runs = []
    for name, scores_of in {CONSTANT[data.task]: constant_scores, BAG_OF_NGRAMS: ngram_scores}.items():
        start = time.perf_counter()
        scores = scores_of(data)
        runs.append(Run(name, 0, scores, seconds=time.perf_counter() - start, sha256=data.sha256))
    return tuple(runs)


def constant_scores(data: LabelledTexts) -> Scores:
    """Score the most frequent class, or the mean target, of the training split."""
    model = DummyClassifier(strategy="most_frequent") if data.task == "classification" else DummyRegressor()
    nothing = np.zeros((len(data.train.texts), 1))
    model.fit(nothing, data.train.targets)
    return {
        name: score(data.task, split.targets, np.asarray(model.predict(np.zeros((len(split.texts), 1)))))
        for name, split in data.splits.items()
        if name in HELD_OUT
    }


def ngram_scores(data: LabelledTexts) -> Scores:
    """Score a linear model on TF-IDF weights of n-grams, its regularisation chosen on dev."""
    vectorizer = ngram_vectorizer(data.train.texts)
    train = vectorizer.fit_transform(data.train.texts)
    held_out = {name: vectorizer.transform(data.splits[name].texts) for name in HELD_OUT}
    candidates: list[Scores] = []
    for strength in REGULARISATION[data.task]:
        if data.task == "classification":
            model = LogisticRegression(C=strength, max_iter=1000)
        else:
            model = Ridge(alpha=strength)
        model.fit(train, data.train.targets)
        candidates.append(
            {
                name: score(data.task, data.splits[name].targets, np.asarray(model.predict(features)))
                for name, features in held_out.items()
            }
        )
    return max(candidates, key=lambda scores: quality(data.task, scores["dev"]))


def ngram_vectorizer(texts: Sequence[str]) -> TfidfVectorizer:
    """Return the vectorizer that fits the texts: of words, or of characters where texts are not divided into words.

    The rule: most texts have no white space in them, as HELM strings or Chinese sentences.
    """
    unsegmented = 2 * sum(len(text.split()) < 2 for text in texts) > len(texts)
    if unsegmented:
        return TfidfVectorizer(analyzer="char", ngram_range=(1, 5), lowercase=False, sublinear_tf=True, min_df=2)
    return TfidfVectorizer(token_pattern=r"\w+", ngram_range=(1, 2), sublinear_tf=True)
