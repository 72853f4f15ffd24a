"""Dropout with factors drawn four at a time: the distribution, and everything else as in torch's."""

import pytest
import torch
from torch import nn

from encoders_shared.dropout import Dropout, kept_factors

MANY = torch.ones(400, 1001)


@pytest.mark.parametrize("dropout", [0.0, 0.1, 0.5, 0.9])
def test_share_and_size_of_the_factors(dropout):
    torch.manual_seed(0)
    factors = kept_factors(MANY, dropout)
    assert (factors == 0).double().mean().item() == pytest.approx(dropout, abs=4e-3)  # five standard deviations
    assert factors.mean().item() == pytest.approx(1, abs=3e-2 * dropout)
    assert factors[factors != 0].unique().tolist() == pytest.approx([1 / (1 - dropout)], rel=1e-4)


def test_neighbours_are_independent():
    """Four factors come from one draw of 64 bits."""
    torch.manual_seed(0)
    kept = kept_factors(MANY, 0.5).flatten() != 0
    for distance in (1, 2, 3, 4, 1001):
        same = (kept[distance:] == kept[:-distance]).double().mean().item()
        assert same == pytest.approx(0.5, abs=4e-3), distance


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_formats_and_seeds(dtype):
    draws = []
    for _ in range(2):
        torch.manual_seed(7)
        draws.append(kept_factors(torch.empty(3, 5, 7, dtype=dtype), 0.3))
    assert torch.equal(*draws)
    assert draws[0].dtype == dtype
    own = [kept_factors(torch.empty(9), 0.3, torch.Generator().manual_seed(1)) for _ in range(2)]
    assert torch.equal(*own)


def test_everything_dropped():
    assert not kept_factors(MANY, 1.0).any()


@pytest.mark.parametrize("shape", [(0,), (1,), (2, 3), (5, 0, 2)])
def test_the_module(shape):
    torch.manual_seed(0)
    values = torch.randn(shape, requires_grad=True)
    before = values.detach().clone()
    module = Dropout(0.5)
    output = module(values)
    (gradient,) = torch.autograd.grad(output.sum(), values)
    assert torch.equal(output, values * gradient)
    assert set(gradient.unique().tolist()) <= {0.0, 2.0}
    assert torch.equal(values, before)
    assert module.eval()(values) is values or torch.equal(module(values), values)
    assert torch.equal(Dropout(0.0)(values), values)
    assert isinstance(module, nn.Dropout)


def test_it_can_be_compiled():
    torch._dynamo.reset()
    compiled = torch.compile(Dropout(0.5), fullgraph=True, backend="eager")
    assert set(compiled(torch.ones(64)).unique().tolist()) == {0.0, 2.0}
