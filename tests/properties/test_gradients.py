"""Gradient checkpointing computes the same gradients with less memory."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.properties.strategies import assert_same_gradients, backends, batches, fields, make_small, packings
from tests.support import ALL_TASKS, NANO, loss_of


def gradients_in_training(model, batch):
    """With dropout, whose random numbers are drawn anew from the same seed."""
    model.zero_grad()
    torch.manual_seed(3)
    loss_of(model(**batch), batch["attention_mask"]).backward()
    return {name: one.grad.clone() for name, one in model.named_parameters() if one.grad is not None}


@pytest.mark.parametrize("name", NANO)
@pytest.mark.parametrize("task", ALL_TASKS)
@given(data=st.data())
def test_checkpointing(name, task, data):
    """Reentrant or not, packed or not, on every backend, with frozen embeddings, and with the dropout of before."""
    model = make_small(name, task, data.draw(fields(name)), data.draw(backends), data.draw(packings)).train()
    batch = data.draw(batches(task))
    model.get_input_embeddings().requires_grad_(data.draw(st.booleans(), label="trained embeddings"))
    expected = gradients_in_training(model, batch)
    reentrant = data.draw(st.booleans(), label="reentrant")
    model.activation_checkpointing_enable({"use_reentrant": reentrant})
    if reentrant:
        model.enable_input_require_grads()
    assert_same_gradients(gradients_in_training(model, batch), expected)
