"""A convolution over three tokens in half the multiplications: minimal filtering.

Four outputs take six multiplications, where three for each would be twelve (Winograd 1980; Lavin and Gray 2016,
section 4; error and points: Barabasz et al. 2020). The kernel is read as a polynomial, first + middle x + last x^2. Its
values at five points, and its last coefficient, are multiplied with six combinations of the six tokens that four
neighbouring outputs see; output i is the sum of these products, each times its point to the power of i. In exact
numbers that is the convolution. In single precision, with these points, the error is 6e-7 of the output's norm,
where torch's is 2e-7.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from encoders_shared.errors import is_captured

TILE = 4  # outputs that are computed together
PAIRS = (0.75, 1.5)  # points with the opposite ones; 0 is a point too
FEWEST_TOKENS = 192  # measured: where combining the weights pays
SMALLEST_WIDTH = 128  # measured, likewise


def pays(states: Tensor) -> bool:
    """Tell whether `convolve` takes less time than torch's convolution. [batch, length, width].

    Captured graphs keep torch's: a choice by the number of tokens would hold for that number alone.
    """
    return (
        not is_captured()
        and states.device.type == "cpu"
        and states.dtype == torch.float32
        and states.shape[:2].numel() >= FEWEST_TOKENS
        and states.shape[2] >= SMALLEST_WIDTH
        and not torch.is_autocast_enabled("cpu")
    )


def convolve(states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Convolve to the same length; beyond the ends are zeros.

    Args:
        states: [batch, length, inputs].
        weight: [outputs, inputs, 3].
        bias: [outputs], or None.

    Returns:
        [batch, length, outputs].
    """
    batch, length, width = states.shape
    tiles = -(-length // TILE)
    padded = F.pad(states, (0, 0, 1, TILE * (tiles + 1) - length - 1)).unflatten(1, (tiles + 1, TILE))
    own, following = padded[:, :-1], padded[:, 1:, :2]
    seen = torch.cat([part.permute(2, 0, 1, 3) for part in (own, following)])  # [6, batch, tiles, inputs]
    combined = (_matrix(OF_INPUTS, seen) @ seen.flatten(1)).view(-1, batch * tiles, width)
    products = torch.cat([rows @ kernel.t() for rows, kernel in zip(combined, _kernels(weight), strict=True)])
    found = _matrix(OF_PRODUCTS, products) @ products.view(len(combined), -1)  # [4, batch * tiles * outputs]
    output = found.view(TILE, batch, tiles, -1).permute(1, 2, 0, 3).flatten(1, 2)[:, :length]
    return output if bias is None else output + bias


def _kernels(weight: Tensor) -> list[Tensor]:
    """Return the values of the kernel [outputs, inputs, 3] at the points, and its last coefficient."""
    first, middle, last = (part.contiguous() for part in weight.unbind(2))
    values = [first]
    for point in PAIRS:
        even = torch.add(first, last, alpha=point**2)
        values += [torch.add(even, middle, alpha=point), torch.sub(even, middle, alpha=point)]
    return [*values, last]


def _matrix(factors: np.ndarray, like: Tensor) -> Tensor:
    return torch.as_tensor(factors, dtype=like.dtype, device=like.device)


def _of_inputs(points: np.ndarray) -> np.ndarray:
    """Coefficients of the polynomials that are 1 at one point and 0 at all others; and of the one that is 0 at all."""
    others = [np.delete(points, i) for i in range(len(points))]
    ones = [[*np.poly(zeros)[::-1] / np.prod(point - zeros), 0] for point, zeros in zip(points, others, strict=True)]
    return np.array([*ones, np.poly(points)[::-1]])


def _of_products(points: np.ndarray) -> np.ndarray:
    """Powers of the points; the last coefficient belongs to the highest output alone."""
    powers = np.vander(points, TILE, increasing=True).T
    return np.column_stack([powers, np.eye(TILE)[:, -1]])


_POINTS = np.array([0.0, *(sign * point for point in PAIRS for sign in (1, -1))])
OF_INPUTS, OF_PRODUCTS = _of_inputs(_POINTS), _of_products(_POINTS)
