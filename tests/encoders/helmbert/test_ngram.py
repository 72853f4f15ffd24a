"""The n-gram convolution against torch's: which of the two ways it goes, and what comes out."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encoders.helmbert import convolution
from encoders.helmbert.ngram import NgramConvolution
from tests.support import Watch, assert_all_close
from tests.test_golden import CASES
from tests.test_golden import test_outputs_and_gradients as agrees_with_published

WIDTH = 6


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def make(tokens: int = 3, width: int = WIDTH) -> tuple[NgramConvolution, nn.Conv1d]:
    """A convolution and torch's of the same weights."""
    ours, of_torch = NgramConvolution(width, tokens), nn.Conv1d(width, width, tokens, padding=tokens // 2)
    with torch.no_grad():
        ours.weight.copy_(draw(*ours.weight.shape, seed=1))
        ours.bias.copy_(draw(width, seed=2))
    of_torch.load_state_dict(ours.state_dict())
    return ours, of_torch


def derivatives(module: nn.Conv1d, states: Tensor) -> list[Tensor]:
    """The output [batch, hidden, length] and the gradients of states, weights and bias."""
    leaves = [states.detach().requires_grad_(), module.weight, module.bias]
    output = module(leaves[0])
    return [output, *torch.autograd.grad(output, leaves, draw(*output.shape, seed=3).to(output))]


@pytest.fixture
def always(monkeypatch):
    """Let small batches go the own way too."""
    monkeypatch.setattr(convolution, "FEWEST_TOKENS", 1)
    monkeypatch.setattr(convolution, "SMALLEST_WIDTH", 1)


@pytest.fixture
def calls(monkeypatch):
    """Shapes of the states that went the own way."""
    seen, convolve = [], convolution.convolve
    monkeypatch.setattr(convolution, "convolve", lambda s, *rest: seen.append(tuple(s.shape)) or convolve(s, *rest))
    return seen


@pytest.mark.parametrize("tokens", [1, 3, 5])
@pytest.mark.parametrize("shape", [(1, 9), (3, 8), (3, 1), (2, 4)], ids=str)
@pytest.mark.usefixtures("always")
def test_as_torchs(tokens, shape, calls):
    ours, of_torch = make(tokens)
    states = draw(shape[0], WIDTH, shape[1])
    for laid_out in (states, states.transpose(0, 2).contiguous().transpose(0, 2), states[..., :1].expand_as(states)):
        expected = derivatives(of_torch.double(), laid_out.double())
        assert_all_close(derivatives(ours, laid_out), expected, rtol=1e-5, atol=2e-5)
    assert calls == [(shape[0], shape[1], WIDTH)] * 3 * (tokens == 3)


@pytest.mark.parametrize("packing", [True, False])
@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("helmbert")])
@pytest.mark.usefixtures("always")
def test_as_published(case, packing, calls):
    agrees_with_published(case, packing, "tiled")
    assert bool(calls) == ("kernel5" not in case)


@pytest.mark.parametrize(
    ("tokens", "width", "length", "dtype", "context", "own"),
    [
        (3, 128, 96, torch.float32, nullcontext, True),
        (3, 128, 96, torch.float32, torch.inference_mode, True),
        (3, 128, 95, torch.float32, nullcontext, False),
        (3, 127, 96, torch.float32, nullcontext, False),
        (5, 128, 96, torch.float32, nullcontext, False),
        (3, 128, 96, torch.float64, nullcontext, False),
        (3, 128, 96, torch.bfloat16, nullcontext, False),
        (3, 128, 96, torch.float32, lambda: torch.autocast("cpu", dtype=torch.bfloat16), False),
    ],
)
def test_where_it_pays(tokens, width, length, dtype, context, own, calls):
    module, states = NgramConvolution(width, tokens).to(dtype), draw(2, width, length).to(dtype)
    with context():
        module(states)
    assert calls == [(2, length, width)] * own


@pytest.mark.usefixtures("always")
def test_graphs_have_torchs_convolution(calls):
    (ours, of_torch), states = make(), draw(2, WIDTH, 7)
    torch._dynamo.reset()
    output = torch.compile(ours, fullgraph=True, backend="aot_eager")(states)
    torch.testing.assert_close(output, of_torch(states))
    program = torch.export.export(ours, (states,))
    assert [node.target for node in program.graph.nodes if "conv" in node.name] == [torch.ops.aten.conv1d.default]
    assert not calls


@pytest.mark.parametrize(
    "context", [Watch, torch.autograd.forward_ad.dual_level], ids=["dispatch mode", "forward mode"]
)
@pytest.mark.usefixtures("always")
def test_where_operations_are_watched(context, calls):
    (ours, of_torch), states = make(), draw(2, WIDTH, 7)
    with context():
        found = derivatives(ours, states)
    assert_all_close(found, derivatives(of_torch.double(), states.double()), rtol=1e-5, atol=2e-5)
    assert calls


@pytest.mark.usefixtures("always")
def test_transforms_of_functions(calls):
    (ours, of_torch), states = make(), draw(4, WIDTH, 7)

    def found(weights, row):
        return torch.func.functional_call(ours, weights, (row[None],)).sin().sum()

    by_row = torch.vmap(torch.func.grad(found), (None, 0))(dict(ours.named_parameters()), states)
    for row, weight in zip(states, by_row["weight"], strict=True):
        output = F.conv1d(row[None], of_torch.weight, of_torch.bias, padding=1).sin().sum()
        torch.testing.assert_close(weight, torch.autograd.grad(output, of_torch.weight)[0], rtol=1e-5, atol=2e-5)
    one, other = make()[0], make()[0]
    with torch.no_grad():
        other.weight.mul_(2)
    states_of_both = torch.func.stack_module_state([one, other])[0]
    both = torch.vmap(lambda weights: torch.func.functional_call(ours, weights, (states,)))(states_of_both)
    torch.testing.assert_close(both, torch.stack([one(states), other(states)]), rtol=1e-5, atol=2e-5)
    assert calls


@pytest.mark.usefixtures("always")
def test_the_output_may_be_changed_in_place():
    (ours, of_torch), states = make(), draw(2, WIDTH, 7)
    for one in (ours, of_torch):
        one(states).mul_(2).relu_().sum().backward()
    found, expected = ([parameter.grad for parameter in one.parameters()] for one in (ours, of_torch))
    assert_all_close(found, expected, rtol=1e-5, atol=2e-5)
