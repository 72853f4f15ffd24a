"""Models under torch.func: several at once, and the gradients of each sample."""

from __future__ import annotations

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


@pytest.mark.parametrize("name", NANO)
@pytest.mark.parametrize("task", ALL_TASKS)
def test_gradients_of_each_sample(name, task):
    model = make_model(name, task)
    batch = make_batch(task)
    weights = {key: value.detach() for key, value in model.named_parameters()}

    def loss(weights, sample):
        sample = {key: value[None] for key, value in sample.items()}
        output = functional_call(model, weights, kwargs=sample)
        return output.loss if task else output.last_hidden_state.masked_fill(~mask_of(sample), 0.0).square().sum()

    def mask_of(sample):
        return sample["attention_mask"].bool()[..., None]

    together = vmap(grad(loss), (None, 0))(weights, batch)
    for row in range(len(batch["input_ids"])):
        model.zero_grad()
        loss(dict(model.named_parameters()), {key: value[row] for key, value in batch.items()}).backward()
        found = torch.cat([gradient[row].flatten() for gradient in together.values()])
        expected = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
        assert_close(found, torch.cat([gradient.flatten() for gradient in expected]))
