"""The masked softmax against numpy in float64, and by its properties."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from torch import nn

from encoders_shared.softmax import masked_softmax

BAD_VALUES = (float("nan"), float("inf"), float("-inf"))
few_examples = settings(max_examples=60, deadline=None)


def numpy_softmax(scores, mask, axis=-1):
    """Sums over the entries that count, and nothing else."""
    shift = np.max(scores, axis=axis, keepdims=True, where=mask, initial=-np.inf)
    powers = np.where(mask, np.exp(np.where(mask, scores - np.where(np.isfinite(shift), shift, 0), 0)), 0)
    total = powers.sum(axis=axis, keepdims=True)
    return np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)


@st.composite
def problems(draw):
    """Scores and a mask of the same shape, float64 and bool tensors."""
    shape = draw(arrays.array_shapes(min_dims=1, max_dims=3, max_side=5))
    scores = draw(arrays.arrays(np.float64, shape, elements=st.floats(-300, 300)))
    mask = draw(arrays.arrays(np.bool_, shape))
    return torch.from_numpy(scores), torch.from_numpy(mask)


def example(dtype=torch.float64, seed=0):
    """Scores [2, 3, 4, 5] and a mask [2, 1, 4, 5] with fully masked and fully open rows."""
    generator = torch.Generator().manual_seed(seed)
    scores = 3 * torch.randn(2, 3, 4, 5, generator=generator, dtype=torch.float64)
    mask = torch.rand(2, 1, 4, 5, generator=generator) < 0.6
    mask[0, :, 1] = False
    mask[1, :, 2] = True
    return scores.to(dtype), mask


@few_examples
@given(problems(), st.data())
def test_equals_numpy_along_any_axis(problem, data):
    scores, mask = problem
    dim = data.draw(st.integers(-scores.dim(), scores.dim() - 1))
    expected = numpy_softmax(scores.numpy(), mask.numpy(), dim)
    np.testing.assert_allclose(masked_softmax(scores, mask, dim).numpy(), expected, rtol=1e-12, atol=1e-300)


@few_examples
@given(problems())
def test_rows_sum_to_one_or_to_zero(problem):
    scores, mask = problem
    weights = masked_softmax(scores, mask)
    torch.testing.assert_close(weights.sum(-1), mask.any(-1).double(), rtol=0, atol=1e-12)
    assert (weights >= 0).all()
    assert (weights[~mask] == 0).all()


@few_examples
@given(problems(), st.floats(-1000, 1000))
def test_shift_changes_nothing(problem, shift):
    scores, mask = problem
    torch.testing.assert_close(
        masked_softmax(scores + shift, mask), masked_softmax(scores, mask), rtol=1e-9, atol=1e-12
    )


@few_examples
@given(problems(), st.randoms(use_true_random=False))
def test_permutation_carries_over(problem, random):
    scores, mask = problem
    order = list(range(scores.shape[-1]))
    random.shuffle(order)
    permuted = masked_softmax(scores[..., order], mask[..., order])
    torch.testing.assert_close(permuted, masked_softmax(scores, mask)[..., order], rtol=1e-12, atol=1e-300)


@few_examples
@given(problems(), st.sampled_from((*BAD_VALUES, 1e308, -1e308)))
def test_masked_values_do_not_matter(problem, value):
    scores, mask = problem
    assert torch.equal(masked_softmax(scores.masked_fill(~mask, value), mask), masked_softmax(scores, mask))


def test_no_mask_keeps_every_entry():
    scores = example()[0]
    expected = numpy_softmax(scores.numpy(), np.ones_like(scores.numpy(), dtype=bool))
    np.testing.assert_allclose(masked_softmax(scores, None).numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("masked", [True, False])
def test_every_precision(dtype, masked):
    scores, mask = example(dtype)
    mask = mask if masked else None
    weights = masked_softmax(scores, mask)
    assert weights.dtype == dtype
    keep = np.broadcast_to(True if mask is None else mask.numpy(), scores.shape)
    expected = numpy_softmax(scores.double().numpy(), keep)
    # rounded once, from float32 at least: half a unit in the last place
    tolerance = torch.finfo(dtype).eps / 2 + (1e-6 if dtype != torch.float64 else 1e-14)
    np.testing.assert_allclose(weights.double().numpy(), expected, rtol=tolerance, atol=2e-7)
    if masked:
        assert (weights[0, :, 1] == 0).all()


def test_scores_at_the_ends_of_half_precision():
    ends = torch.tensor([[65504, -65504, 65504], [-65504, -65504, 65504]], dtype=torch.float16)
    weights = masked_softmax(ends, torch.tensor([[True, True, True], [True, False, False]]))
    assert weights.tolist() == [[0.5, 0, 0.5], [1, 0, 0]]


def test_arguments_are_left_alone():
    scores, mask = example()
    scores[~mask.expand_as(scores)] = float("nan")
    before = scores.clone(), mask.clone()
    masked_softmax(scores, mask)
    torch.testing.assert_close(scores, before[0], rtol=0, atol=0, equal_nan=True)
    assert torch.equal(mask, before[1])


@pytest.mark.parametrize("dim", [-1, 1])
@pytest.mark.parametrize("masked", [True, False])
def test_gradients_by_finite_differences(dim, masked):
    scores, mask = example()
    mask = mask if masked else None
    assert torch.autograd.gradcheck(lambda s: masked_softmax(s, mask, dim), scores.requires_grad_())


@pytest.mark.parametrize("value", BAD_VALUES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_gradients_are_finite_whatever_the_mask_hides(dtype, value):
    scores, mask = example(dtype)
    hidden = ~mask.expand_as(scores)

    def gradient(fill):
        leaf = scores.masked_fill(hidden, fill).requires_grad_()
        weight = torch.arange(5, dtype=dtype)
        (masked_softmax(leaf, mask) * weight).sum().backward()
        return leaf.grad

    got = gradient(value)
    assert (got[hidden] == 0).all()
    assert got[~hidden].abs().max() > 0
    assert torch.equal(got, gradient(0.0))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_autocast_keeps_the_precision_of_the_scores(dtype):
    scores, mask = example(dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        weights = masked_softmax(scores, mask)
    assert weights.dtype == dtype
    assert torch.equal(weights, masked_softmax(scores, mask))


@pytest.mark.parametrize("masked", [True, False])
def test_compiled(masked):
    scores, mask = example(torch.float32)
    mask = mask if masked else None
    compiled = torch.compile(masked_softmax, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(scores, mask), masked_softmax(scores, mask))


def test_exported_with_a_free_batch_size():
    class Softmax(nn.Module):
        def forward(self, scores, mask):
            return masked_softmax(scores, mask)

    batch = torch.export.Dim("batch", min=1, max=64)
    shapes = {"scores": {0: batch}, "mask": {0: batch}}
    exported = torch.export.export(Softmax(), example(torch.float32), dynamic_shapes=shapes).module()
    scores, mask = (tensor.repeat(3, 1, 1, 1) for tensor in example(torch.float32, seed=1))
    torch.testing.assert_close(exported(scores, mask), masked_softmax(scores, mask))
