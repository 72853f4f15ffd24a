"""Linear layers by oneDNN.

In single precision on a CPU, torch gives the products of linear layers to MKL, which is made for Intel's processors.
oneDNN, which is part of torch too and serves its convolutions and half precisions, makes large ones faster where that
was measured: on AMD's with AVX-512 (docs/performance.md).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encoders_shared.errors import is_captured_or_transformed

HAS_ONEDNN = torch.backends.mkldnn.is_available() and torch.backends.cpu.get_cpu_capability() == "AVX512"
SMALLEST = 2**18  # weights of a product that is worth the call
MOST_ROWS = 2**14
MOST_ADDED = 0.04  # part of the rows: measured, less than what oneDNN gains
MOST_ADDED_WITH_GRADIENTS = 0.02


class Linear(nn.Linear):
    """torch's linear layer, with the products of oneDNN where they are faster. [..., inputs] -> [..., outputs]."""

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)


def linear(states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Compute `states @ weight.T + bias`.

    Args:
        states: [..., inputs].
        weight: [outputs, inputs].
        bias: [outputs], or None.
    """
    tensors = (states, weight) if bias is None else (states, weight, bias)
    if not (_suits_onednn(*tensors) and _fit(*tensors) and _pays(states, weight)):
        return F.linear(states, weight, bias)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return _Linear.apply(states, weight, bias)
    return _product(states, weight, bias)


def _weight_gradient(d_rows: Tensor, rows: Tensor) -> Tensor:
    """Compute `d_rows.T @ rows`, the gradient of a weight [outputs, inputs].

    oneDNN copies the first operand, since it is turned: that pays where there are fewer outputs than inputs. It makes a
    kernel for this number of rows too, which must be a round one.

    Args:
        d_rows: gradient of the outputs [rows, outputs].
        rows: the inputs [rows, inputs].
    """
    if d_rows.shape[1] < rows.shape[1] and len(rows) == _round_up(len(rows)):
        return linear(d_rows.t(), rows.t(), None)
    return d_rows.t() @ rows


def rows_to_add(rows: int, width: int, like: Tensor) -> int:
    """Tell how many rows more let oneDNN make the products of a model; 0 where they would cost what it gains.

    Args:
        rows: rows that the model's linear layers get.
        width: the model's width.
        like: one of its parameters.
    """
    added = _round_up(rows) - rows
    most = rows * (MOST_ADDED_WITH_GRADIENTS if torch.is_grad_enabled() else MOST_ADDED)
    pays = width**2 >= SMALLEST and rows + added <= MOST_ROWS and added <= most
    return added if pays and _suits_onednn(like) else 0


def _suits_onednn(*tensors: Tensor) -> bool:
    """Tell whether oneDNN may be called on these tensors, past torch's own operations.

    They are plain ones: subclasses, such as quantised weights, know their own products. And nobody wants to see torch's
    operations: graphs that are captured, transforms of torch.func, forward-mode differentiation, autocast, and dispatch
    modes, such as counters of operations, do.
    """
    return (
        HAS_ONEDNN
        and torch.backends.mkldnn.enabled
        and not is_captured_or_transformed()
        and all(map(_is_plain, tensors))
        and not torch.is_autocast_enabled("cpu")
        and torch._C._len_torch_dispatch_stack() == 0
        and torch.autograd.forward_ad._current_level < 0
    )


def _is_plain(tensor: Tensor) -> bool:
    return (
        type(tensor) in (Tensor, nn.Parameter)
        and tensor.dtype == torch.float32
        and tensor.device.type == "cpu"
        and tensor.layout == torch.strided
        and tensor.numel() > 0
    )


def _fit(states: Tensor, weight: Tensor, bias: Tensor | None = None) -> bool:
    """Tell whether the shapes are the usual ones; torch broadcasts a few more, and says what is wrong with others."""
    return states.shape[-1:] == weight.shape[1:] and (bias is None or bias.shape == weight.shape[:1])


def _pays(states: Tensor, weight: Tensor) -> bool:
    """Tell whether the product is large, and its number of rows a round one."""
    rows = states.shape[:-1].numel()
    return weight.numel() >= SMALLEST and rows <= MOST_ROWS and rows == _round_up(rows)


def _round_up(rows: int) -> int:
    """Return the next number of rows for which oneDNN is called.

    Multiples of 8, above 256 of 32, above 2,048 sixteen to an octave: oneDNN makes and keeps a kernel for each number
    of rows, 0.6 MB of code, and packed batches, each of another length, would fill hundreds of megabytes.
    """
    step = 8 if rows <= 256 else 32 if rows <= 2_048 else 2 ** ((rows - 1).bit_length() - 5)
    return -(-rows // step) * step


def _product(states: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    rows = torch.ops.mkldnn._linear_pointwise(_rows(states), weight, bias, "none", [], "")
    return torch.ops.aten._unsafe_view(rows, [*states.shape[:-1], len(weight)])  # a view could not be changed in place


def _rows(states: Tensor) -> Tensor:
    """[..., width] -> [rows, width]."""
    return states.reshape(-1, states.shape[-1])


class _Linear(torch.autograd.Function):
    """`_product` with gradients."""

    @staticmethod
    def forward(*tensors: Any) -> Tensor:
        return _product(*tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        states, weight, _ = inputs
        for_states, for_weight, _ = ctx.needs_input_grad
        ctx.save_for_backward(states if for_weight else None, weight if for_states else None)

    @staticmethod
    def backward(ctx: Any, d_output: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        states, weight = ctx.saved_tensors
        for_states, for_weight, for_bias = ctx.needs_input_grad
        d_rows = _rows(d_output)
        return (
            linear(d_output, weight.t(), None) if for_states else None,
            _weight_gradient(d_rows, _rows(states)) if for_weight else None,
            d_rows.sum(0) if for_bias else None,
        )
