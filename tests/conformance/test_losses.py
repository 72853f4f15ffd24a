"""Losses of the tasks: what counts, what is ignored, and that nothing the caller passes is changed."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F

from encoders.family import TASKS
from tests.support import NANO, assert_close, make_batch, make_model, predictions

every_encoder = pytest.mark.parametrize("name", NANO)
every_task = pytest.mark.parametrize("task", TASKS)


@every_encoder
@every_task
def test_loss_by_hand(name, task):
    batch = make_batch(task)
    with torch.no_grad():
        output = make_model(name, task)(**batch)
    scores = predictions(output).double()
    if task == "question-answering":
        first, last = (
            F.cross_entropy(scores[..., i], batch[f"{end}_positions"]) for i, end in ((0, "start"), (1, "end"))
        )
        expected = (first + last) / 2
    else:
        expected = F.cross_entropy(scores.flatten(0, -2), batch["labels"].flatten())
    assert_close(output.loss.double(), expected, 1e-5)


@every_encoder
@every_task
def test_nothing_is_mutated(name, task):
    model = make_model(name, task).train()
    batch = make_batch(task)
    before, config = copy.deepcopy(batch), model.config.to_dict()
    model(**batch).loss.backward()
    assert model.config.to_dict() == config
    assert all(torch.equal(value, before[key]) for key, value in batch.items())


@every_encoder
@every_task
def test_no_active_target(name, task):
    """A finite zero, and zero gradients."""
    model = make_model(name, task)
    batch = make_batch(task)
    for key in ("labels", "start_positions", "end_positions"):
        if key in batch:
            batch[key] = torch.full_like(batch[key], -100)
    loss = model(**batch).loss
    assert loss.item() == 0
    loss.backward()
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


@every_encoder
@pytest.mark.parametrize("task", ["masked-lm", "token-classification"])
def test_labels_alone_decide_what_counts(name, task):
    """Not the mask: transformers' rule, which an old DistilBERT document did not follow for token classification."""
    model = make_model(name, task)
    batch = make_batch(task)
    batch["labels"] = batch["labels"].where(batch["labels"] != -100, batch["labels"][0, 0])
    with torch.no_grad():
        output = model(**batch)
    assert_close(output.loss, F.cross_entropy(output.logits.flatten(0, 1), batch["labels"].flatten()), 1e-5)


@every_encoder
def test_the_problem_is_decided_for_each_call(name):
    model = make_model(name, "sequence-classification")
    inputs = make_batch(None)
    with torch.no_grad():
        one = model(**inputs, labels=torch.tensor([0, 2, 1]))
        many = model(**inputs, labels=torch.tensor([[0.0, 1, 1], [1, 0, 0], [0, 0, 0]]))
        again = model(**inputs, labels=torch.tensor([0, 2, 1]))
    assert model.config.problem_type is None
    assert torch.equal(one.loss, again.loss)
    targets = torch.tensor([[0.0, 1, 1], [1, 0, 0], [0, 0, 0]])
    assert_close(many.loss, F.binary_cross_entropy_with_logits(many.logits, targets), 1e-6)


@every_encoder
@pytest.mark.parametrize("labels", [torch.tensor([1, 2, 3]), torch.tensor([[1.0], [2.0], [3.0]])])
def test_regression(name, labels):
    model = make_model(name, "sequence-classification", num_labels=1)
    with torch.no_grad():
        output = model(**make_batch(None), labels=labels)
    assert_close(output.loss, ((output.logits[:, 0] - torch.tensor([1.0, 2, 3])) ** 2).mean(), 1e-6)


@every_encoder
def test_regression_with_several_outputs(name):
    model = make_model(name, "sequence-classification", problem_type="regression")
    labels = torch.randn(3, 3)
    with torch.no_grad():
        output = model(**make_batch(None), labels=labels)
        assert_close(output.loss, ((output.logits - labels) ** 2).mean(), 1e-6)
        with pytest.raises(ValueError, match=r"labels for regression have shape \[3\]; expected \[3, 3\]"):
            model(**make_batch(None), labels=labels[0])


@every_encoder
def test_answers_outside_the_sequence_are_ignored(name):
    model = make_model(name, "question-answering")
    inputs = make_batch(None)
    starts, ends = torch.tensor([2, 99, -1]), torch.tensor([[3], [4], [12]])
    with torch.no_grad():
        output = model(**inputs, start_positions=starts, end_positions=ends)
    expected = F.cross_entropy(output.start_logits[:1], starts[:1]) + F.cross_entropy(
        output.end_logits[:2], ends[:2, 0]
    )
    assert_close(output.loss, expected / 2, 1e-6)
    assert starts.tolist() == [2, 99, -1]
    assert ends.tolist() == [[3], [4], [12]]


@every_encoder
@every_task
def test_wrong_labels_are_refused(name, task):
    model = make_model(name, task)
    batch = make_batch(task)
    if task == "question-answering":
        with pytest.raises(ValueError, match=r"have shape \[2\]; expected \[3\]"):
            model(**{**batch, "start_positions": torch.tensor([0, 1])})
        return
    with pytest.raises(ValueError, match=r"label 500 is out of range; allowed: \d+ \.\. \d+, or -100"):
        model(**{**batch, "labels": batch["labels"].clone().fill_(500)})
    with pytest.raises(ValueError, match=r"labels .*have shape"):
        model(**{**batch, "labels": batch["labels"][:2]})
