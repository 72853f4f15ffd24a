"""Prediction heads against numpy, in float64."""

import math

import numpy as np
import pytest
import torch

from encoders_shared.heads import LTGHead, ReservedIds, SkipMLPHead, TransformHead

HIDDEN, OUTPUTS, EPS = 6, 4, 0.1
HEADS = {
    "ltg": lambda dropout=0.0: LTGHead(hidden_size=HIDDEN, outputs=OUTPUTS, dropout=dropout, layer_norm_eps=EPS),
    "transform": lambda: TransformHead(hidden_size=HIDDEN, outputs=OUTPUTS),
    "skip": lambda dropout=0.0, layers=2: SkipMLPHead(
        hidden_size=HIDDEN, outputs=OUTPUTS, layers=layers, dropout=dropout
    ),
}
NAMES = {
    "ltg": ["nonlinearity.1", "nonlinearity.5"],
    "transform": ["dense", "layer_norm", "decoder"],
    "skip": ["layers.0", "layers.1", "norms.0", "norms.1", "output_layer"],
}
gelu = np.vectorize(lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))))


def made(name, **options):
    """A head with random values in all its parameters, in float64."""
    head = HEADS[name](**options).double()
    generator = torch.Generator().manual_seed(0)
    for parameter in head.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return head


def states(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def norm(x, eps):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)


def by_hand(name, head, x):
    """The head's formula, from its parameters by name."""
    value = {key: parameter.detach().numpy() for key, parameter in head.named_parameters()}

    def linear(part, x):
        return x @ value[f"{part}.weight"].T + value[f"{part}.bias"]

    def affine(part, x):
        return norm(x, 1e-5) * value[f"{part}.weight"] + value[f"{part}.bias"]

    if name == "ltg":
        return linear("nonlinearity.5", norm(gelu(linear("nonlinearity.1", norm(x, EPS))), EPS))
    if name == "transform":
        return linear("decoder", affine("layer_norm", gelu(linear("dense", x))))
    for layer in ("0", "1"):
        x = affine(f"norms.{layer}", gelu(linear(f"layers.{layer}", x) + x))
    return linear("output_layer", x)


@pytest.mark.parametrize("shape", [(3, HIDDEN), (2, 5, HIDDEN)])
@pytest.mark.parametrize("name", HEADS)
def test_formula(name, shape):
    head, x = made(name), states(*shape)
    expected = by_hand(name, head, x.numpy())
    assert expected.shape == (*shape[:-1], OUTPUTS)
    np.testing.assert_allclose(head(x).detach().numpy(), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", HEADS)
def test_parameter_names_are_the_published_ones(name):
    expected = {f"{part}.{kind}" for part in NAMES[name] for kind in ("weight", "bias")}
    assert set(HEADS[name]().state_dict()) == expected


@pytest.mark.parametrize("name", ["ltg", "skip"])
def test_dropout_of_everything_leaves_the_last_bias(name):
    head = made(name, dropout=1.0)
    bias = list(head.parameters())[-1]
    assert torch.equal(head.train()(states(3, HIDDEN)), bias.expand(3, OUTPUTS))
    assert not torch.equal(head.eval()(states(3, HIDDEN)), bias.expand(3, OUTPUTS))


def test_skip_head_without_layers_is_linear():
    head, x = made("skip", layers=0), states(3, HIDDEN)
    expected = x.numpy() @ head.output_layer.weight.detach().numpy().T + head.output_layer.bias.detach().numpy()
    np.testing.assert_allclose(head(x).detach().numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_reserved_ids(count, dtype):
    logits = states(2, 3, 5).to(dtype)
    before = logits.clone()
    scores = ReservedIds(count)(logits)
    assert scores.dtype == dtype
    assert (scores[..., :count] == float("-inf")).all()
    assert torch.equal(scores[..., count:], before[..., count:])
    assert torch.equal(logits, before)


def test_reserved_ids_get_no_gradient():
    logits = states(2, 5).requires_grad_()
    torch.softmax(ReservedIds(2)(logits), -1)[:, 2].sum().backward()
    assert (logits.grad[:, :2] == 0).all()
    assert (logits.grad[:, 2:] != 0).all()
    assert not list(ReservedIds(2).parameters())
