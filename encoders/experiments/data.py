"""Labelled texts in three splits, checked before anything is trained on them."""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from encoders.experiments.errors import ExperimentError
from encoders.experiments.splits import HELD_OUT, SPLITS

Task: TypeAlias = Literal["classification", "regression"]


@dataclass(frozen=True)
class Split:
    """The rows of one split: their numbers in the source (from 1), texts, and class indices or target numbers."""

    rows: tuple[int, ...]
    texts: tuple[str, ...]
    targets: np.ndarray


@dataclass(frozen=True)
class LabelledTexts:
    """A data set for one sequence-level task.

    Attributes:
        name: what the data is called in tables, messages and file names.
        label_column: what is predicted.
        task: "classification" or "regression".
        classes: the class names in the order of their indices; empty for a regression.
        splits: the rows of "train", "dev" and "test".
        notes: what was decided or left out while reading, a sentence each.
    """

    name: str
    label_column: str
    task: Task
    classes: tuple[str, ...]
    splits: dict[str, Split]
    notes: tuple[str, ...] = ()

    @property
    def train(self) -> Split:
        """The rows that are learnt from."""
        return self.splits["train"]

    @property
    def sizes(self) -> dict[str, int]:
        """The number of rows in each split."""
        return {name: len(split.texts) for name, split in self.splits.items()}

    @property
    def sha256(self) -> str:
        """A fingerprint of everything that is learnt from or scored on, and of its order."""
        contents = [[name, split.texts, split.targets.tolist()] for name, split in self.splits.items()]
        return hashlib.sha256(json.dumps([self.task, self.classes, contents]).encode()).hexdigest()

    def labels(self, split: str) -> list[int] | list[float]:
        """Return what a model learns to predict: class indices, or targets in standard deviations of train."""
        targets = self.splits[split].targets
        return ((targets - self._offset) / self._scale if self.task == "regression" else targets).tolist()

    def read_labels(self, labels: np.ndarray) -> np.ndarray:
        """Undo `labels`."""
        return labels.astype(float) * self._scale + self._offset if self.task == "regression" else labels

    def read_outputs(self, outputs: np.ndarray) -> np.ndarray:
        """Turn the outputs of a model [rows, classes or 1] into predicted classes or targets."""
        return self.read_labels(outputs[:, 0]) if self.task == "regression" else outputs.argmax(axis=1)

    @property
    def _offset(self) -> float:
        return float(self.train.targets.mean())

    @property
    def _scale(self) -> float:
        return float(self.train.targets.std())

    @property
    def repeated_texts(self) -> int:
        """How many rows of dev and test have a text that the training split has too."""
        known = set(self.train.texts)
        return sum(text in known for name in HELD_OUT for text in self.splits[name].texts)


def counted(rows: int) -> str:
    """Return a number of rows in words."""
    return f"{rows} row" if rows == 1 else f"{rows} rows"


def check(data: LabelledTexts) -> None:
    """Refuse data on which training or scoring would be meaningless.

    Raises:
        ExperimentError: a split is empty, a class is in one split only or missing from train, or there is nothing to
            tell apart.
    """
    for split, size in data.sizes.items():
        if size == 0:
            raise ExperimentError(f"{data.name}: the {split} split has no rows; {', '.join(SPLITS)} each need some")
    if data.task == "classification":
        _check_classes(data)
    else:
        _check_numbers(data)


def _check_classes(data: LabelledTexts) -> None:
    if len(data.classes) < 2:
        raise ExperimentError(
            f"{data.name}: '{''.join(data.classes)}' is the only label; a classification needs two or more"
        )
    counts = {name: Counter(split.targets.tolist()) for name, split in data.splits.items()}
    for index, label in enumerate(data.classes):
        present = [name for name in SPLITS if counts[name][index]]
        if len(present) == 1:
            rows = counted(counts[present[0]][index])
            raise ExperimentError(
                f"{data.name}: label '{label}' occurs in the {present[0]} split only ({rows}); "
                f"merge it with another, leave it out, or say --task regression if the labels are amounts"
            )
        if "train" not in present:
            raise ExperimentError(f"{data.name}: label '{label}' occurs in {' and '.join(present)}, but not in train")


def _check_numbers(data: LabelledTexts) -> None:
    for split, size in data.sizes.items():
        if size < 2:
            raise ExperimentError(f"{data.name}: the {split} split has 1 row; scores of a regression need two or more")
    if np.ptp(data.train.targets) == 0:
        raise ExperimentError(f"{data.name}: every target in the train split is {data.train.targets[0]:g}")
