"""Scores of predictions, by scikit-learn."""

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    matthews_corrcoef,
    mean_absolute_error,
    r2_score,
    root_mean_squared_error,
)

from encoders.experiments.data import Task

METRICS: dict[Task, dict[str, str]] = {
    "classification": {"accuracy": "accuracy", "macro_f1": "macro F1", "mcc": "MCC"},
    "regression": {"rmse": "RMSE", "mae": "MAE", "r2": "R²", "pearson": "Pearson", "spearman": "Spearman"},
}
"""The metrics of each task, by column name, with the names to show; the first one chooses between models."""

LOWER_IS_BETTER = frozenset({"rmse", "mae"})


def score(task: Task, truth: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Return every metric of the task.

    A prediction that never changes has a correlation of 0 with the truth, as it has an MCC of 0.
    """
    if task == "classification":
        return {
            "accuracy": float(accuracy_score(truth, predicted)),
            "macro_f1": float(f1_score(truth, predicted, average="macro")),
            "mcc": float(matthews_corrcoef(truth, predicted)),
        }
    return {
        "rmse": float(root_mean_squared_error(truth, predicted)),
        "mae": float(mean_absolute_error(truth, predicted)),
        "r2": float(r2_score(truth, predicted)),
        "pearson": _correlation(truth, predicted),
        "spearman": _correlation(rankdata(truth), rankdata(predicted)),
    }


def _correlation(first: np.ndarray, second: np.ndarray) -> float:
    return 0.0 if np.ptp(first) == 0 or np.ptp(second) == 0 else float(np.corrcoef(first, second)[0, 1])


def quality(task: Task, scores: dict[str, float]) -> float:
    """Return what is highest for the best model: the task's first metric, negated where lower is better."""
    metric = next(iter(METRICS[task]))
    return -scores[metric] if metric in LOWER_IS_BETTER else scores[metric]
