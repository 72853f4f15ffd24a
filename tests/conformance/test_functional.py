"""Models under torch.func: several at once, and the gradients of each sample."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch.func import functional_call, grad, stack_module_state, vmap

from tests.support import (
    ALL_TASKS,
    BACKENDS,
    NANO,
    assert_close,
    inputs_of,
    make_batch,
    make_model,
    predictions,
    real,
)

pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop")  # where vmap goes through a loop


@pytest.mark.parametrize("name", NANO)
@pytest.mark.parametrize("task", ALL_TASKS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_two_models_at_once(name, task, backend):
    model, other = (make_model(name, task, backend) for _ in range(2))
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(1.01)
        batch = inputs_of(make_batch(task))
        states = stack_module_state([model, other])
        both = vmap(lambda *state: predictions(functional_call(model, state, kwargs=batch)))(*states)
        for found, one in zip(both, (model, other), strict=True):
            expected = predictions(one(**batch))
            assert_close(real(found, batch["attention_mask"]), real(expected, batch["attention_mask"]))


def loss_of_sample(model, weights, sample):
    """The loss of one sample, without its dimension of the batch."""
    sample = {key: value[None] for key, value in sample.items()}
    output = functional_call(model, weights, kwargs=sample)
    if "loss" in output:
        return output.loss
    return output.last_hidden_state.masked_fill(sample["attention_mask"][..., None] == 0, 0.0).square().sum()


@pytest.mark.parametrize("name", NANO)
@pytest.mark.parametrize("task", ALL_TASKS)
def test_gradients_of_each_sample(name, task):
    model = make_model(name, task)
    batch = make_batch(task)
    weights = {key: value.detach() for key, value in model.named_parameters()}
    together = vmap(grad(partial(loss_of_sample, model)), (None, 0))(weights, batch)
    for row in range(len(batch["input_ids"])):
        model.zero_grad()
        loss_of_sample(
            model, dict(model.named_parameters()), {key: value[row] for key, value in batch.items()}
        ).backward()
        found = torch.cat([gradient[row].flatten() for gradient in together.values()])
        expected = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
        assert_close(found, torch.cat([gradient.flatten() for gradient in expected]))


@pytest.mark.parametrize("name", NANO)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("randomness", ["same", "different"])
def test_gradients_of_each_sample_with_dropout(name, backend, randomness):
    model = make_model(name, None, backend).train()
    batch = {key: value[:1].expand(3, -1) for key, value in make_batch(None).items()}
    weights = {key: value.detach() for key, value in model.named_parameters()}
    losses = partial(loss_of_sample, model)
    (first, *others), gradients = vmap(
        lambda w, s: (losses(w, s), grad(losses)(w, s)), (None, 0), randomness=randomness
    )(weights, batch)
    assert all((other == first) == (randomness == "same") for other in others)
    assert all(gradient.isfinite().all() for gradient in gradients.values())


@pytest.mark.parametrize("name", NANO)
def test_what_is_wrong_is_refused_under_grad(name):
    """Where values can be read, they are."""
    model, batch = make_model(name, "token-classification"), make_batch("token-classification")

    def loss(weights, **changed):
        return functional_call(model, weights, kwargs={**batch, **changed}).loss

    weights = {key: value.detach() for key, value in model.named_parameters()}
    assert grad(loss)(weights).keys() == weights.keys()
    with pytest.raises(ValueError, match="attention_mask holds -9"):
        grad(loss)(weights, attention_mask=(batch["attention_mask"] - 1) * 9)
    with pytest.raises(ValueError, match="the vocabulary size is 140"):
        grad(loss)(weights, input_ids=batch["input_ids"] + 100)
