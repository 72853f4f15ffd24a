"""Every backend gives the values and gradients of the written-out one."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.properties.strategies import (
    assert_same_gradients,
    batches,
    fields,
    gradients,
    make_small,
    masks,
    packings,
    seeds,
)
from tests.support import ALL_TASKS, BACKENDS, NANO, assert_close, predictions


def outcome(model, batch):
    """Predictions at all positions, padding too, and gradients, that of the head mask among them."""
    head_mask = batch["head_mask"].clone().requires_grad_()
    output = model(**{**batch, "head_mask": head_mask})
    values = predictions(output)
    loss = values[values.isfinite()].square().mean()  # words that are never predicted score -inf
    loss = loss + output.loss if "loss" in output else loss
    return values.detach(), gradients(model, loss, head_mask=head_mask)


@pytest.mark.parametrize("name", NANO)
@pytest.mark.parametrize("task", ALL_TASKS)
@pytest.mark.parametrize("backend", [backend for backend in ("auto", *BACKENDS) if backend != "eager"])
@given(data=st.data())
def test_values_and_gradients(name, task, backend, data):
    """For every kind of mask, packed or not, with heads that count in part."""
    chosen, packing, batch = data.draw(fields(name)), data.draw(packings), data.draw(batches(task))
    factors = torch.rand(chosen["num_attention_heads"], generator=torch.Generator().manual_seed(data.draw(seeds)))
    given_to_both = {**batch, "attention_mask": data.draw(masks(batch)), "head_mask": factors.double()}
    expected, actual = (
        outcome(make_small(name, task, chosen, one, packing), given_to_both) for one in ("eager", backend)
    )
    assert_close(actual[0], expected[0], 1e-9)
    assert_same_gradients(actual[1], expected[1])
