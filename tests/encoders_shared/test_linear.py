"""The linear layer by oneDNN against torch's: what it computes, and when it leaves the work to torch."""

from __future__ import annotations

import copy
import itertools
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.autograd import forward_ad
from torch.nn.utils import parametrizations
from torch.utils.flop_counter import FlopCounterMode

import encoders_shared.linear as module
from encoders_shared.linear import HAS_ONEDNN, Linear, _round_up, linear, rows_to_add
from tests.support import Watch, assert_all_close

PAYS = module._pays
with_onednn = pytest.mark.skipif(not HAS_ONEDNN, reason="oneDNN is not called on this processor")
BIASED = pytest.mark.parametrize("biased", [True, False], ids=["bias", "no bias"])
LAYOUTS = {
    "plain": lambda tensor: tensor,
    "columns": lambda tensor: tensor.transpose(0, -1).contiguous().transpose(0, -1),
    "every other": lambda tensor: torch.stack([tensor, tensor], -1)[..., 0],
    "expanded": lambda tensor: tensor[:1].expand(tensor.shape),
    "negative view": lambda tensor: torch._neg_view(-tensor),
}
SHAPES = [
    ((6,), 5),
    ((8, 6), 5),
    ((1, 6), 5),
    ((7, 6), 5),
    ((7, 6), 1),
    ((7, 1), 5),
    ((1, 1), 1),
    ((2, 3, 6), 5),
    ((2, 1, 3, 6), 4),
]


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def operands(shape=(7, 6), outputs=5, biased=True) -> list[Tensor | None]:
    return [draw(*shape), draw(outputs, shape[-1], seed=1), draw(outputs, seed=2) if biased else None]


def derivatives(product, tensors, d_output=None, frozen=()) -> list[Tensor | None]:
    """The output, its gradients, and gradients of a combination of those."""
    leaves = [None if t is None else t.detach().requires_grad_(i not in frozen) for i, t in enumerate(tensors)]
    output = product(*leaves)
    d_output = (draw(*output.shape, seed=3) if d_output is None else d_output).to(output).requires_grad_()
    trained = [leaf for leaf in leaves if leaf is not None and leaf.requires_grad]
    first = torch.autograd.grad(output, trained, d_output, create_graph=True)
    combined = sum((gradient * draw(*gradient.shape, seed=4).to(gradient)).sum() for gradient in first)
    second = torch.autograd.grad(combined, [*trained, d_output], allow_unused=True)
    return [output, *first, *second]


@pytest.fixture(autouse=True)
def any_size(monkeypatch):
    """Small products are oneDNN's too."""
    monkeypatch.setattr(module, "_pays", lambda *_: True)


@pytest.fixture
def never_own(monkeypatch):
    """Fail where the product of oneDNN is called."""
    monkeypatch.setattr(module, "HAS_ONEDNN", True)
    monkeypatch.setattr(module, "_product", lambda *_: pytest.fail("left torch's operations"))


@pytest.fixture(params=[pytest.param(True, marks=with_onednn), False], ids=["oneDNN", "without"])
def either_way(request, monkeypatch):
    monkeypatch.setattr(module, "HAS_ONEDNN", request.param)


@BIASED
@pytest.mark.parametrize(("shape", "outputs"), SHAPES)
@pytest.mark.usefixtures("either_way")
def test_as_in_double_precision(shape, outputs, biased):
    states, weight, bias = operands(shape, outputs, biased)
    for names in itertools.product(LAYOUTS, repeat=3):
        of_states, of_weight, of_gradient = (LAYOUTS[name] for name in names)
        tensors = [of_states(states), of_weight(weight), bias]
        d_output = of_gradient(draw(*shape[:-1], outputs, seed=3))
        doubled = [None if tensor is None else tensor.double() for tensor in tensors]
        found = derivatives(linear, tensors, d_output)
        assert {tensor.dtype for tensor in found if tensor is not None} == {torch.float32}
        assert_all_close(found, derivatives(F.linear, doubled, d_output), rtol=1e-5, atol=1e-5)


@with_onednn
@BIASED
def test_the_product_is_onednns(biased, monkeypatch):
    calls, product = [], module._product
    monkeypatch.setattr(module, "_product", lambda *tensors: calls.append(len(tensors)) or product(*tensors))
    states, weight, bias = operands((8, 6), biased=biased)
    with torch.inference_mode():
        assert linear(states, weight, bias).grad_fn is None
    assert linear(states, weight, bias).grad_fn is None
    output = linear(states.requires_grad_(), weight.requires_grad_(), bias)
    assert type(output.grad_fn).__name__ == "_LinearBackward"
    assert len(calls) == 3
    output.sum().backward()
    assert len(calls) == 5  # for the states and the weight


@with_onednn
@pytest.mark.parametrize(("rows", "outputs", "own"), [(8, 5, True), (8, 6, False), (7, 5, False)])
def test_gradients_of_weights(rows, outputs, own, monkeypatch):
    """OneDNN's where there are fewer outputs than inputs, and a round number of rows."""
    calls, product = [], module._product
    monkeypatch.setattr(module, "_product", lambda *tensors: calls.append(tensors) or product(*tensors))
    d_rows, states = draw(rows, outputs), draw(rows, 6, seed=1)
    torch.testing.assert_close(module._weight_gradient(d_rows, states), d_rows.t() @ states)
    assert bool(calls) is own


def test_large_products_of_round_numbers_of_rows():
    """OneDNN keeps a kernel for each number of rows: there are not many that it gets."""
    weight = torch.empty(512, 512)
    own = [rows for rows in range(1, 20_000) if PAYS(torch.empty(1, 1).expand(rows, 512), weight)]
    assert (own[:2], own[-1]) == ([8, 16], 16_384)
    assert 120 < len(own) < 140
    assert all(_round_up(rows) == next(one for one in own if one >= rows) for rows in range(1, own[-1]))
    assert PAYS(torch.empty(8, 128, 512), weight)
    assert not PAYS(torch.empty(8, 128, 512), torch.empty(511, 512))
    assert PAYS(torch.empty(64, 2_730), torch.empty(1_024, 2_730))  # NorBERT3-large's


def test_rows_to_add(monkeypatch):
    """Rows up to the next round number, if these are few among large products that oneDNN makes."""
    monkeypatch.setattr(module, "HAS_ONEDNN", True)

    def found(rows, width=768, dtype=torch.float32):
        return rows_to_add(rows, width, torch.empty(1, dtype=dtype))

    with torch.no_grad():
        assert [found(rows) for rows in (1, 32, 410, 480, 500, 1_228, 16_384, 16_385)] == [0, 0, 6, 0, 12, 20, 0, 0]
    assert [found(rows) for rows in (410, 500, 1_228)] == [6, 0, 20]  # less is gained with gradients
    assert [found(410, width) for width in (511, 512)] == [0, 6]
    assert found(410, dtype=torch.float64) == 0
    with Watch():
        assert found(410) == 0
    monkeypatch.setattr(module, "HAS_ONEDNN", False)
    assert found(410) == 0


@pytest.mark.usefixtures("either_way")
def test_the_output_may_be_changed_in_place():
    leaves = [tensor.requires_grad_() for tensor in operands((2, 3, 6))]
    found, expected = (
        torch.autograd.grad(product(*leaves).mul_(2).relu_().sum(), leaves) for product in (linear, F.linear)
    )
    assert_all_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("frozen", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)], ids=str)
@pytest.mark.usefixtures("either_way")
def test_frozen_parts(frozen):
    def found(product):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.numel()) or t, lambda t: t):
            product(*(t.detach().requires_grad_(i not in frozen) for i, t in enumerate(operands())))
        return derivatives(product, operands(), frozen=frozen)

    kept: list[int] = []
    own, kept_by_own = found(linear), sorted(kept)
    kept.clear()
    assert_all_close(own, found(F.linear), rtol=1e-5, atol=1e-5)
    assert kept_by_own == sorted(kept)  # no more than torch's


@pytest.mark.usefixtures("either_way")
def test_what_is_kept_may_not_change():
    states, weight, bias = operands()
    output = linear(states.requires_grad_(), weight, bias)
    weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.sum().backward()


class _Own(Tensor):
    """As quantised weights are."""


WATCHED = {
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "oneDNN is off": lambda: torch.backends.mkldnn.flags(enabled=False),
    "dispatch mode": Watch,
    "forward mode": forward_ad.dual_level,
}


@BIASED
@pytest.mark.parametrize("context", WATCHED.values(), ids=list(WATCHED))
@pytest.mark.filterwarnings("ignore:TF32 acceleration")  # by `flags`
@pytest.mark.usefixtures("never_own")
def test_torchs_operations_where_they_are_watched(context, biased):
    with context():
        tensors = operands(biased=biased)
        assert_all_close(derivatives(linear, tensors), derivatives(F.linear, tensors), rtol=0, atol=0)
        with torch.no_grad():
            assert torch.equal(linear(*tensors), F.linear(*tensors))


@with_onednn
@pytest.mark.parametrize("context", WATCHED.values(), ids=list(WATCHED))
@pytest.mark.filterwarnings("ignore:TF32 acceleration")
def test_watched_on_the_way_back(context):
    with context():
        expected = derivatives(F.linear, operands())[1:4]
    leaves = [tensor.requires_grad_() for tensor in operands()]
    output = linear(*leaves)
    with context():
        found = torch.autograd.grad(output, leaves, draw(*output.shape, seed=3))
    assert_all_close(found, expected, rtol=0.05, atol=0.05)


@BIASED
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.usefixtures("never_own")
def test_other_precisions(dtype, biased):
    tensors = [None if tensor is None else tensor.to(dtype) for tensor in operands(biased=biased)]
    assert_all_close(derivatives(linear, tensors), derivatives(F.linear, tensors), rtol=0, atol=0)


@pytest.mark.parametrize(("shape", "outputs"), [((0, 6), 5), ((7, 0), 5), ((7, 6), 0), ((2, 0, 6), 5)])
@pytest.mark.usefixtures("never_own")
def test_nothing_to_multiply(shape, outputs):
    tensors = operands(shape, outputs)
    assert_all_close(derivatives(linear, tensors), derivatives(F.linear, tensors), rtol=0, atol=0)


@pytest.mark.usefixtures("never_own")
def test_without_storage():
    output = Linear(6, 5, device="meta")(torch.empty(7, 6, device="meta"))
    assert (output.shape, output.is_meta) == ((7, 5), True)


@pytest.mark.usefixtures("either_way")
def test_all_products_are_counted():
    counts = []
    for layer in (Linear(6, 5), nn.Linear(6, 5)):
        with FlopCounterMode(display=False) as counter:
            layer(draw(7, 6).requires_grad_()).sum().backward()
        counts.append(counter.get_total_flops())
    assert counts == [3 * 2 * 7 * 6 * 5] * 2


def _jvp(product, *tensors):
    return torch.func.jvp(product, tensors, tuple(map(torch.ones_like, tensors)))[1]


def _dual(product, states, weight, bias):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(states, torch.ones_like(states))
        return forward_ad.unpack_dual(product(dual, weight, bias)).tangent


TRANSFORMS = {
    "vmap": lambda product, *tensors: torch.vmap(product, (0, None, None))(*tensors),
    "vmap over weights": lambda product, x, w, b: torch.vmap(product, (None, 0, 0))(
        x, w.expand(3, -1, -1), b.expand(3, -1)
    ),
    "grad": lambda product, *tensors: torch.func.grad(lambda *t: product(*t).sin().sum(), 1)(*tensors),
    "gradients by row": lambda product, x, w, b: torch.vmap(
        torch.func.grad(lambda w, x: product(x, w, b).sin().sum()), (None, 0)
    )(w, x),
    "hessian": lambda product, x, w, b: torch.func.hessian(lambda x: product(x, w, b).sin().sum())(x),
    "jvp": _jvp,
    "dual tensors": _dual,
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=list(TRANSFORMS))
@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # by torch's forward mode
@pytest.mark.usefixtures("never_own")
def test_transforms_of_functions(transform, trained):
    tensors = [tensor.requires_grad_(trained) for tensor in operands()]
    assert_all_close([transform(linear, *tensors)], [transform(F.linear, *tensors)], rtol=1e-5, atol=1e-5)


CAPTURES = {
    "compile": lambda layer, _: torch.compile(layer, fullgraph=True, backend="aot_eager"),
    "export": lambda layer, states: torch.export.export(layer, (states,)).module(),
    "symbolic trace": lambda layer, _: fx.symbolic_trace(layer),
}


@pytest.mark.parametrize("capture", CAPTURES.values(), ids=list(CAPTURES))
@pytest.mark.usefixtures("never_own")
def test_graphs_hold_torchs_operations(capture):
    layer, states = nn.Sequential(Linear(6, 5), nn.Tanh()), draw(7, 6)
    torch._dynamo.reset()
    output = capture(layer, states)(states)
    weight, bias = layer.parameters()
    expected = F.linear(states, weight, bias).tanh()
    torch.testing.assert_close(output, expected)
    found = torch.autograd.grad(output.sum(), (weight, bias))
    assert_all_close(found, torch.autograd.grad(expected.sum(), (weight, bias)))


@pytest.mark.parametrize("own", [0, 1, 2])
@pytest.mark.usefixtures("never_own")
def test_subclasses_of_tensors(own):
    tensors = operands()
    tensors[own] = tensors[own].as_subclass(_Own)
    found = linear(*tensors)
    assert type(found) is _Own
    assert torch.equal(found, F.linear(*tensors))


@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.usefixtures("either_way")
def test_other_shapes_are_torchs_matter(trained):
    states, weight, bias = operands()
    weight.requires_grad_(trained)
    with pytest.raises(RuntimeError, match=r"shapes cannot be multiplied \(7x4 and 6x5\)"):
        linear(draw(7, 4), weight, bias)
    assert torch.equal(linear(states, weight, bias[:1]), F.linear(states, weight, bias[:1]))


def _copied(layer: nn.Module, way: str) -> nn.Module:
    return copy.deepcopy(layer) if way == "deepcopy" else pickle.loads(pickle.dumps(layer))


@BIASED
@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_a_linear_layer_like_torchs(biased, way):
    layer, of_torch = Linear(6, 5, bias=biased), nn.Linear(6, 5, bias=biased)
    assert isinstance(layer, nn.Linear)
    of_torch.load_state_dict(layer.state_dict())
    copied = _copied(layer, way)
    assert type(copied) is Linear
    assert list(copied.state_dict()) == list(of_torch.state_dict())
    torch.testing.assert_close(copied(draw(7, 6)), of_torch(draw(7, 6)))


@pytest.mark.parametrize("parametrization", [parametrizations.weight_norm, parametrizations.orthogonal])
@pytest.mark.usefixtures("either_way")
def test_parametrized(parametrization):
    layer, of_torch = parametrization(Linear(6, 5)), parametrization(nn.Linear(6, 5))
    of_torch.load_state_dict(layer.state_dict())
    for one in (layer, of_torch):
        one(draw(7, 6)).sin().sum().backward()
    found, expected = ([parameter.grad for parameter in one.parameters()] for one in (layer, of_torch))
    assert_all_close(found, expected, rtol=1e-4, atol=1e-5)
