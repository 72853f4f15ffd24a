import numpy as np
import pytest

from encoders.experiments.metrics import METRICS, quality, score


def test_classification_scores():
    scores = score("classification", np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]))
    assert list(scores) == list(METRICS["classification"])
    assert scores["accuracy"] == 0.75
    assert scores["macro_f1"] == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert scores["mcc"] == pytest.approx(1 / np.sqrt(3))


def test_regression_scores():
    truth, predicted = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0, 8.0])
    scores = score("regression", truth, predicted)
    assert list(scores) == list(METRICS["regression"])
    assert scores["rmse"] == 2.0
    assert scores["mae"] == 1.0
    assert scores["r2"] == pytest.approx(1 - 16 / 5)
    assert scores["spearman"] == pytest.approx(1.0)
    assert scores["pearson"] == pytest.approx(np.corrcoef(truth, predicted)[0, 1])
    assert 0.8 < scores["pearson"] < 1.0


def test_predictions_that_never_change_correlate_with_nothing():
    constant = score("regression", np.array([1.0, 2.0, 6.0]), np.full(3, 3.0))
    assert (constant["pearson"], constant["spearman"], constant["r2"]) == (0.0, 0.0, 0.0)
    assert score("classification", np.array([0, 1, 1]), np.ones(3, dtype=int))["mcc"] == 0.0


def test_quality_is_the_first_metric_in_its_own_direction():
    assert quality("classification", {"accuracy": 0.9, "macro_f1": 0.1}) == 0.9
    assert quality("regression", {"rmse": 0.8, "r2": 0.1}) == -0.8
