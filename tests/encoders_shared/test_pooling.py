"""From states to one vector for each sequence."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis.extra import numpy as arrays

from encoders_shared.pooling import POOLINGS, cls_pool, mean_pool

ROWS = torch.tensor([[1, 1, 0], [0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=torch.bool)


def states(dtype=torch.float64):
    return torch.arange(4 * 3 * 2, dtype=dtype).reshape(4, 3, 2)


@settings(max_examples=50, deadline=None)
@given(arrays.arrays(np.bool_, arrays.array_shapes(min_dims=2, max_dims=2, max_side=6)))
def test_mean_over_the_real_tokens(tokens):
    values = np.random.default_rng(0).normal(size=(*tokens.shape, 3))
    expected = [row[real].mean(0) if real.any() else np.zeros(3) for row, real in zip(values, tokens, strict=True)]
    got = mean_pool(torch.from_numpy(values), torch.from_numpy(tokens))
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_mean_of_a_long_sequence_in_half_precision(dtype):
    many = torch.full((1, 4096, 1), 100.0, dtype=dtype)  # the sum of them does not fit float16
    pooled = mean_pool(many, torch.ones(1, 4096, dtype=torch.bool))
    assert pooled.dtype == dtype
    assert pooled.item() == 100


def test_state_of_the_first_real_token():
    assert cls_pool(states(), ROWS).tolist() == [[0, 1], [8, 9], [16, 17], [0, 0]]


@pytest.mark.parametrize("pooling", POOLINGS)
def test_what_padding_holds_does_not_matter(pooling):
    changed = states().masked_fill(~ROWS[:, :, None], 1e9)
    assert torch.equal(POOLINGS[pooling](changed, ROWS)[:3], POOLINGS[pooling](states(), ROWS)[:3])


@pytest.mark.parametrize("pooling", POOLINGS)
def test_gradients(pooling):
    assert torch.autograd.gradcheck(lambda x: POOLINGS[pooling](x, ROWS), states().requires_grad_())


@pytest.mark.parametrize("pooling", POOLINGS)
def test_an_empty_batch(pooling):
    assert POOLINGS[pooling](states()[:0], ROWS[:0]).shape == (0, 2)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_compiled(pooling):
    compiled = torch.compile(POOLINGS[pooling], fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(states(), ROWS), POOLINGS[pooling](states(), ROWS))


def test_names():
    assert {"mean": mean_pool, "cls": cls_pool} == POOLINGS
