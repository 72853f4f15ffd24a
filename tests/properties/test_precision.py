"""Automatic mixed precision in training, on every backend."""

from __future__ import annotations

import pytest
import torch

from tests.properties.strategies import gradients, make_small
from tests.support import ALL_TASKS, BACKENDS, NANO, loss_of, make_batch, make_model


@pytest.mark.parametrize("name", NANO)
@pytest.mark.parametrize("task", ALL_TASKS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_under_autocast(name, task, backend):
    """They have the format of the parameters, and are those of double precision but for the rounding to bfloat16."""
    batch, layers = make_batch(task), {"num_hidden_layers": 2}
    exact = make_small(name, task, layers, backend)
    expected = gradients(exact, loss_of(exact(**batch), batch["attention_mask"]))
    model = make_model(name, task, backend, **layers)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = loss_of(model(**batch), batch["attention_mask"])
    actual = gradients(model, loss)
    assert {gradient.dtype for gradient in actual.values()} == {torch.float32}
    assert actual.keys() == expected.keys()
    difference = sum((actual[key] - expected[key]).square().sum() for key in expected)
    assert difference <= 0.25**2 * sum(gradient.square().sum() for gradient in expected.values())
