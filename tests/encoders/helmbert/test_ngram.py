"""The n-gram convolution against torch's."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encoders.helmbert import ngram
from encoders.helmbert.ngram import NgramConvolution
from encoders_shared import linear
from encoders_shared.linear import HAS_ONEDNN
from tests.support import Watch, assert_all_close

WIDTH = 6
TOKENS = pytest.mark.parametrize("tokens", [1, 3, 5])


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def derivatives(convolution: nn.Conv1d, states: Tensor, frozen=(), expanded=False) -> list[Tensor | None]:
    """The output [batch, hidden, length], its gradients, and gradients of a combination of those."""
    leaves = [states.detach(), convolution.weight, convolution.bias]
    leaves = [leaf.requires_grad_(i not in frozen) for i, leaf in enumerate(leaves)]
    output = convolution(leaves[0])
    d_output = draw(*output.shape, seed=3).to(output)
    d_output = (d_output[:1, :1].expand(output.shape) if expanded else d_output).requires_grad_()
    trained = [leaf for leaf in leaves if leaf.requires_grad]
    first = torch.autograd.grad(output, trained, d_output, create_graph=True)
    combined = sum((gradient * draw(*gradient.shape, seed=4).to(gradient)).sum() for gradient in first)
    second = torch.autograd.grad(combined, [*trained, d_output], allow_unused=True)
    return [output, *first, *second]


def make(tokens: int) -> tuple[NgramConvolution, nn.Conv1d]:
    """A convolution and torch's of the same weights."""
    convolution, of_torch = (kind(WIDTH, WIDTH, tokens, padding=tokens // 2) for kind in (NgramConvolution, nn.Conv1d))
    with torch.no_grad():
        convolution.weight.copy_(draw(*convolution.weight.shape, seed=1))
        convolution.bias.copy_(draw(WIDTH, seed=2))
    of_torch.load_state_dict(convolution.state_dict())
    return convolution, of_torch


@pytest.fixture
def never_own(monkeypatch):
    """Fail where the own gradients are used."""
    monkeypatch.setattr(linear, "HAS_ONEDNN", True)
    monkeypatch.setattr(ngram._Convolution, "forward", lambda *_: pytest.fail("left torch's operations"))


@TOKENS
@pytest.mark.parametrize("shape", [(1, 9), (3, 9), (3, 1), (1, 1), (2, 2), (2, 4)], ids=str)
@pytest.mark.parametrize("expanded", [True, False], ids=["expanded gradient", "dense gradient"])
def test_as_in_double_precision(tokens, shape, expanded):
    convolution, of_torch = make(tokens)
    states = draw(shape[0], WIDTH, shape[1])
    for laid_out in (states, states.transpose(0, 2).contiguous().transpose(0, 2), states[..., :1].expand_as(states)):
        found = derivatives(convolution, laid_out, expanded=expanded)
        expected = derivatives(of_torch.double(), laid_out.double(), expanded=expanded)
        assert_all_close(found, expected, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("frozen", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)], ids=str)
def test_frozen_parts(frozen):
    (convolution, of_torch), states, kept = make(3), draw(2, WIDTH, 7), []
    found = derivatives(convolution, states, frozen)
    assert_all_close(found, derivatives(of_torch.double(), states.double(), frozen), rtol=1e-5, atol=2e-5)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(tuple(t.shape)) or t, lambda t: t):
        convolution(states.requires_grad_(0 not in frozen))
    if HAS_ONEDNN:
        assert (convolution.weight.shape in kept) == (0 not in frozen)
        assert (states.shape in kept) == (1 not in frozen)


@pytest.mark.skipif(not HAS_ONEDNN, reason="oneDNN is not called on this processor")
def test_the_gradients_are_its_own():
    convolution = make(3)[0]
    assert type(convolution(draw(2, WIDTH, 7)).grad_fn).__name__ == "_ConvolutionBackward"
    assert convolution.requires_grad_(False)(draw(2, WIDTH, 7)).grad_fn is None
    with torch.inference_mode():
        convolution(draw(2, WIDTH, 7))


@pytest.mark.parametrize(
    ("context", "tolerance"),
    [
        (lambda: torch.autocast("cpu", dtype=torch.bfloat16), 0.1),
        (lambda: torch.backends.mkldnn.flags(enabled=False), 2e-5),
        (Watch, 2e-5),
        (torch.autograd.forward_ad.dual_level, 2e-5),
    ],
    ids=["autocast", "oneDNN is off", "dispatch mode", "forward mode"],
)
@TOKENS
@pytest.mark.filterwarnings("ignore:TF32 acceleration")  # by `flags`
@pytest.mark.usefixtures("never_own")
def test_torchs_operations_where_they_are_watched(context, tolerance, tokens):
    convolution, of_torch = make(tokens)
    states = draw(2, WIDTH, 7)
    with context():
        found = derivatives(convolution, states)
    assert_all_close(found, derivatives(of_torch.double(), states.double()), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
@pytest.mark.usefixtures("never_own")
def test_other_precisions(dtype):
    convolution, of_torch = (one.to(dtype) for one in make(3))
    states = draw(2, WIDTH, 7).to(dtype)
    assert_all_close(derivatives(convolution, states), derivatives(of_torch, states))


@pytest.mark.usefixtures("never_own")
def test_transforms_of_functions():
    (convolution, of_torch), states = make(3), draw(4, WIDTH, 7)
    parameters = dict(convolution.named_parameters())

    def found(weights, row):
        return torch.func.functional_call(convolution, weights, (row[None],)).sin().sum()

    by_row = torch.vmap(torch.func.grad(found), (None, 0))(parameters, states)
    for row, weight in zip(states, by_row["weight"], strict=True):
        output = F.conv1d(row[None], of_torch.weight, of_torch.bias, padding=1).sin().sum()
        torch.testing.assert_close(weight, torch.autograd.grad(output, of_torch.weight)[0], rtol=1e-5, atol=2e-5)


def test_compiled():
    convolution, of_torch = make(3)
    torch._dynamo.reset()
    output = torch.compile(convolution, fullgraph=True, backend="aot_eager")(draw(2, WIDTH, 7))
    expected = of_torch(draw(2, WIDTH, 7))
    torch.testing.assert_close(output, expected)
    found = torch.autograd.grad(output.sin().sum(), list(convolution.parameters()))
    assert_all_close(
        found, torch.autograd.grad(expected.sin().sum(), list(of_torch.parameters())), rtol=1e-5, atol=2e-5
    )


@pytest.mark.parametrize("form", [{"stride": 2}, {"dilation": 2}, {"groups": 2}, {"padding": 0}], ids=str)
@pytest.mark.usefixtures("never_own")
def test_other_forms_are_torchs_matter(form):
    torch.manual_seed(0)
    convolution, states = NgramConvolution(WIDTH, WIDTH, 3, **{"padding": 1, **form}), draw(2, WIDTH, 7)
    expected = F.conv1d(states, convolution.weight, convolution.bias, **{"padding": 1, **form})
    assert torch.equal(convolution(states), expected)


def test_the_output_may_be_changed_in_place():
    (convolution, of_torch), states = make(3), draw(2, WIDTH, 7)
    for one in (convolution, of_torch):
        one(states).mul_(2).relu_().sum().backward()
    found, expected = ([parameter.grad for parameter in one.parameters()] for one in (convolution, of_torch))
    assert_all_close(found, expected, rtol=1e-5, atol=2e-5)
