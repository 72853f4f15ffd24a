"""Minimal filtering: the same numbers as a convolution, and how exact in single precision."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from encoders.helmbert.convolution import OF_INPUTS, OF_PRODUCTS, TILE, convolve
from encoders_shared.packing import spread_out


def draw(batch: int, length: int, inputs: int, outputs: int, dtype=torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    states, weight = torch.randn(batch, length, inputs, dtype=dtype), torch.randn(outputs, inputs, 3, dtype=dtype)
    return states, weight, torch.randn(outputs, dtype=dtype)


def of_torch(states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return F.conv1d(states.transpose(1, 2), weight, bias, padding=1).transpose(1, 2)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("batch", [1, 3])
def test_a_convolution_in_exact_numbers(batch, length):
    tensors = draw(batch, length, 5, 7)
    torch.testing.assert_close(convolve(*tensors), of_torch(*tensors), rtol=0, atol=1e-13)
    without_bias = (*tensors[:2], None)
    torch.testing.assert_close(convolve(*without_bias), of_torch(*without_bias), rtol=0, atol=1e-13)


def test_its_gradients():
    tensors = [tensor.requires_grad_() for tensor in draw(2, 6, 3, 2)]
    assert torch.autograd.gradcheck(convolve, tensors)
    assert torch.autograd.gradgradcheck(convolve, tensors)


def test_six_products_for_four_outputs():
    assert OF_INPUTS.shape == (6, 6)
    assert OF_PRODUCTS.shape == (TILE, 6) == (4, 6)


def test_error_in_single_precision():
    """Of states and of all gradients, as a share of their norm: below 1e-6, for torch's own below 5e-7."""
    states, weight, bias = draw(4, 128, 768, 768)
    d_output = torch.randn(4, 128, 768, dtype=torch.float64)

    def found(function, dtype):
        leaves = [tensor.to(dtype).requires_grad_() for tensor in (states, weight, bias)]
        output = function(*leaves)
        return [output, *torch.autograd.grad(output, leaves, d_output.to(dtype))]

    exact = found(of_torch, torch.float64)
    for function, allowed in ((convolve, 1e-6), (of_torch, 5e-7)):
        for one, right in zip(found(function, torch.float32), exact, strict=True):
            assert (one - right).norm() < allowed * right.norm()


def test_sequences_of_a_packed_row_know_nothing_of_each_other():
    lengths = [5, 6, 1, 2, 9]
    states, weight, bias = draw(1, sum(lengths), 4, 4, torch.float32)
    for lost in range(len(lengths)):
        others = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths)) != lost
        spoilt = states.masked_fill(~others[:, None], float("nan"))
        found = []
        for one in (states, spoilt):
            spread, place = spread_out(one, lengths, margin=1, multiple=TILE)
            found.append(convolve(spread, weight, bias)[0, place[others]])
        assert torch.equal(*found)
