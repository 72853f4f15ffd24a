"""Initial values that torch and transformers have no name for.

All go through transformers' initialisers, which leave a tensor alone that was loaded from a checkpoint.
"""

from __future__ import annotations

import math

from torch import Tensor, nn

from encoders_shared.compat import initialization as init


def ltg_normal(weight: Tensor, hidden_size: int, gain: float = 1.0) -> None:
    """Normal with standard deviation gain * sqrt(2 / (5 * hidden_size)), cut at two of them (Samuel et al. 2023)."""
    std = gain * math.sqrt(2.0 / (5.0 * hidden_size))
    init.trunc_normal_(weight, mean=0.0, std=std, a=-2 * std, b=2 * std)


def torch_default_convolution(convolution: nn.Conv1d) -> None:
    """Give a convolution the values that torch itself would (He et al. 2015, with a = sqrt(5))."""
    init.kaiming_uniform_(convolution.weight, a=math.sqrt(5))
    if convolution.bias is not None:
        bound = 1 / math.sqrt(convolution.in_channels // convolution.groups * convolution.kernel_size[0])
        init.uniform_(convolution.bias, -bound, bound)
