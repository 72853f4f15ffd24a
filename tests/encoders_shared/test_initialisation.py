"""Initial values."""

import math

import pytest
import torch
from torch import nn

from encoders_shared.initialisation import ltg_normal, torch_default_convolution


@pytest.mark.parametrize("gain", [1.0, 0.25])
@pytest.mark.parametrize("hidden_size", [64, 384])
def test_ltg_normal(hidden_size, gain):
    torch.manual_seed(0)
    weight = torch.empty(400, 400)
    ltg_normal(weight, hidden_size, gain)
    std = gain * math.sqrt(2 / (5 * hidden_size))
    assert weight.abs().max().item() == pytest.approx(2 * std, rel=0.01)
    assert weight.abs().max().item() <= 2 * std
    assert weight.mean().item() == pytest.approx(0, abs=0.01 * std)
    # variance of a standard normal cut at +-2: 1 - 2 * 2 * density(2) / (probability of -2 .. 2)
    variance = 1 - 4 * math.exp(-2) / math.sqrt(2 * math.pi) / math.erf(math.sqrt(2))
    assert weight.std().item() == pytest.approx(std * math.sqrt(variance), rel=0.01)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolution_starts_as_torch_would_start_it(bias, groups):
    torch.manual_seed(1)
    expected = nn.Conv1d(4, 6, 3, bias=bias, groups=groups)
    convolution = nn.Conv1d(4, 6, 3, bias=bias, groups=groups)
    torch.manual_seed(1)
    torch_default_convolution(convolution)
    assert torch.equal(convolution.weight, expected.weight)
    if bias:
        assert torch.equal(convolution.bias, expected.bias)


def test_loaded_tensors_are_left_alone():
    """Transformers marks what came from a checkpoint; only what is missing may get a value."""
    convolution = nn.Conv1d(4, 6, 3)
    weight = nn.Parameter(torch.ones(3, 3))
    for parameter in (weight, convolution.weight):
        parameter._is_hf_initialized = True
    loaded, missing = convolution.weight.clone(), convolution.bias.clone()
    torch_default_convolution(convolution)
    ltg_normal(weight, 3)
    assert (weight == 1).all()
    assert torch.equal(convolution.weight, loaded)
    assert not torch.equal(convolution.bias, missing)
