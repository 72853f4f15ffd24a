"""Labels that an encoder does not take, and what it says then: every family, every task."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from encoders.family import TASKS
from tests.support import NANO, SMALL, inputs_of, make_batch, make_model

every_encoder = pytest.mark.parametrize("name", NANO)
LABELS = ("labels", "start_positions", "end_positions")
CLASSES = [task for task in TASKS if task != "question-answering"]
LAYERS = {"num_hidden_layers": 2, "hidden_size": 12, "num_attention_heads": 3, "intermediate_size": 16}


def small(name, task, **overrides) -> Any:
    return make_model(name, task, **LAYERS, **overrides)


def escaped(shape):
    return str(list(shape)).replace("[", r"\[")


@every_encoder
@pytest.mark.parametrize("task", TASKS)
def test_labels_of_another_shape(name, task):
    """Too few, too many, an axis too few or too many: the shape that was passed and the one that is needed."""
    model, batch = small(name, task), make_batch(task)
    for key in LABELS:
        if key in batch:
            right = batch[key]
            for wrong in (right[:2], torch.cat([right, right]), right[None], right.flatten()[0]):
                message = rf"labels .*have shape {escaped(wrong.shape)}; expected \[3"
                with pytest.raises(ValueError, match=message):
                    model(**{**batch, key: wrong})


@every_encoder
@pytest.mark.parametrize("task", CLASSES)
@pytest.mark.parametrize("wrong", [500, -1, -99])
def test_labels_out_of_range(name, task, wrong):
    """The value, and what is allowed: from the first word that can be predicted to the last, or a class."""
    model, batch = small(name, task), make_batch(task)
    first = model.num_reserved_ids if task == "masked-lm" else 0
    last = SMALL["vocab_size"] - 1 if task == "masked-lm" else 2
    labels = batch["labels"].clone()
    labels.view(-1)[1] = wrong
    message = rf"label {wrong} is out of range; allowed: {first} \.\. {last}, or -100 to ignore\."
    with pytest.raises(ValueError, match=message):
        model(**{**batch, "labels": labels})
    for allowed in (first, last, -100):
        assert model(**{**batch, "labels": torch.full_like(labels, allowed)}).loss.isfinite()


@every_encoder
def test_reserved_words_as_labels(name):
    model, batch = small(name, "masked-lm"), make_batch("masked-lm")
    reserved = model.num_reserved_ids
    batch["labels"][0, 0] = reserved - 1
    message = rf"The ids 0 \.\. {reserved - 1} are reserved \(num_reserved_ids\)" if reserved else "label -1 is out of"
    with pytest.raises(ValueError, match=message):
        model(**batch)


@every_encoder
@pytest.mark.parametrize("task", TASKS)
def test_labels_of_another_type(name, task):
    """Classes and positions are whole numbers; only sequences can have several labels or numbers."""
    model, batch = small(name, task, problem_type="single_label_classification"), make_batch(task)
    for key in LABELS:
        if key in batch:
            for dtype in (torch.float64, torch.complex64):
                with pytest.raises(ValueError, match=f"class or a position must be integers, got {dtype}"):
                    model(**{**batch, key: batch[key].to(dtype)})
            with pytest.raises(TypeError, match=rf"{key} must be a torch\.Tensor, got list"):
                model(**{**batch, key: batch[key].tolist()})


@every_encoder
def test_one_end_of_an_answer(name):
    model, batch = small(name, "question-answering"), make_batch("question-answering")
    for missing in ("start_positions", "end_positions"):
        with pytest.raises(ValueError, match=f"needs start_positions and end_positions; {missing} is missing"):
            model(**{key: value for key, value in batch.items() if key != missing})


@every_encoder
@pytest.mark.parametrize(
    ("kind", "wrong", "allowed"),
    [
        ("multi_label_classification", 2.0, r"0 \.\. 1"),
        ("multi_label_classification", -1.0, r"0 \.\. 1"),
        ("multi_label_classification", float("nan"), r"0 \.\. 1"),
        ("regression", float("nan"), "finite numbers"),
        ("regression", float("inf"), "finite numbers"),
    ],
)
def test_targets_out_of_range(name, kind, wrong, allowed):
    model = small(name, "sequence-classification", problem_type=kind)
    labels = torch.tensor([[0.0, 1.0, 0.5], [-100.0, wrong, 0.0], [0.0, 0.0, 0.0]])
    with pytest.raises(ValueError, match=rf"labels for {kind} hold {wrong}; allowed: {allowed}, or -100 to ignore"):
        model(**inputs_of(make_batch(None)), labels=labels)


@every_encoder
@pytest.mark.parametrize(
    ("kind", "shape"),
    [("regression", (3,)), ("multi_label_classification", (3,)), ("multi_label_classification", (3, 2))],
)
def test_labels_that_do_not_fit_the_problem(name, kind, shape):
    model = small(name, "sequence-classification", problem_type=kind)
    message = rf"labels for {kind} have shape {escaped(shape)}; expected \[3, 3\], one for each output"
    with pytest.raises(ValueError, match=message):
        model(**inputs_of(make_batch(None)), labels=torch.zeros(shape))
