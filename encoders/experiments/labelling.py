"""From table rows to labelled texts: which rows count, which task the labels make, and who is in which split."""

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple, cast, get_args

import numpy as np

from encoders.experiments.data import LabelledTexts, Split, Task, check, counted
from encoders.experiments.errors import ExperimentError
from encoders.experiments.splits import SPLITS, split_name, stratified_split
from encoders.experiments.tables import Row, require_columns

REGRESSION_STRATA = 10


class _Record(NamedTuple):
    row: int
    text: str
    label: str
    split: str = ""  # the cell as it stands; empty where the data names no splits


def labelled_texts(
    rows: Sequence[Row],
    *,
    name: str,
    text_column: str = "text",
    label_column: str = "label",
    split_column: str | None = None,
    task: str | None = None,
) -> LabelledTexts:
    """Turn table rows into a checked data set.

    Rows with nothing in one of the columns are left out and counted in the notes. Without `split_column`, the column
    "split" is used where there is one, and otherwise the rows are split by hash. Without `task`, labels that are all
    numbers, at least one of them not whole, make a regression; any others are classes.

    Raises:
        ExperimentError: a column is missing, a split is empty or unknown, or a label cannot be learnt.
    """
    if split_column is None and any("split" in row for row in rows):
        split_column = "split"
    columns = [text_column, label_column] if split_column is None else [text_column, label_column, split_column]
    require_columns(rows, columns, source=name)
    records, left_out = _records(rows, columns)
    if not records:
        raise ExperimentError(f"{name}: no row has something in each of the columns {', '.join(columns)}")
    chosen_task, why = _choose_task([record.label for record in records], task)
    if chosen_task == "classification":
        classes = tuple(sorted({record.label for record in records}))
        targets = [float(classes.index(record.label)) for record in records]
    else:
        classes = ()
        targets = [_number(record, label_column) for record in records]
    if split_column is None:
        strata = targets if chosen_task == "classification" else _deciles(targets)
        places = stratified_split([record.text for record in records], strata)
        how = "splits: 80 % train, 10 % dev, 10 % test, stratified by label, chosen by the hash of the text"
    else:
        places = [split_name(record.split, record.row, split_column) for record in records]
        how = f"splits: from column '{split_column}'"
    splits = _splits(records, targets, places, chosen_task)
    data = LabelledTexts(name, label_column, chosen_task, classes, splits, (*left_out, why, how))
    check(data)
    return data


def _records(rows: Sequence[Row], columns: Sequence[str]) -> tuple[list[_Record], list[str]]:
    """Keep the rows that have something in every column, and note how many each column costs."""
    notes: list[str] = []
    kept = list(enumerate(rows, start=1))
    for column in columns:
        filled = [(number, row) for number, row in kept if row.get(column, "").strip()]
        if len(filled) < len(kept):
            notes.append(f"left out: {counted(len(kept) - len(filled))} with nothing in column '{column}'")
        kept = filled
    text, label, *split = columns
    return [_Record(n, row[text], row[label].strip(), *(row[column] for column in split)) for n, row in kept], notes


def _choose_task(labels: Sequence[str], task: str | None) -> tuple[Task, str]:
    if task is not None:
        if task not in get_args(Task):
            raise ExperimentError(f"unknown task '{task}': allowed are {' and '.join(get_args(Task))}")
        return cast("Task", task), f"task: {task}, as asked"
    numbers = [_as_number(label) for label in labels]
    if None in numbers:
        return "classification", "task: classification, since not every label is a number"
    if all(number == int(number) for number in numbers if number is not None):
        return "classification", "task: classification, since every label is a whole number"
    return "regression", "task: regression, since every label is a number and not all are whole"


def _as_number(label: str) -> float | None:
    try:
        number = float(label)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _number(record: _Record, column: str) -> float:
    number = _as_number(record.label)
    if number is None:
        raise ExperimentError(f"row {record.row}: '{record.label}' in column '{column}' is no number to regress on")
    return number


def _deciles(targets: Sequence[float]) -> list[Hashable]:
    ranks = np.argsort(np.argsort(targets, kind="stable"), kind="stable")
    return (ranks * REGRESSION_STRATA // len(targets)).tolist()


def _splits(
    records: Sequence[_Record], targets: Sequence[float], places: Sequence[str], task: Task
) -> dict[str, Split]:
    splits: dict[str, Split] = {}
    for split in SPLITS:
        members = [index for index, place in enumerate(places) if place == split]
        splits[split] = Split(
            rows=tuple(records[index].row for index in members),
            texts=tuple(records[index].text for index in members),
            targets=np.array([targets[index] for index in members], dtype=int if task == "classification" else float),
        )
    return splits
