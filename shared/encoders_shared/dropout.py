"""Dropout that is cheap on a CPU."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encoders_shared.errors import is_captured_or_transformed

CHOICES = 2**16  # four numbers of 16 bits come from one draw of 64; torch makes a draw for each value


def kept_factors(like: Tensor, dropout: float, generator: torch.Generator | None = None) -> Tensor:
    """Draw the factors of values under dropout (Srivastava et al. 2014): 0, or such that their mean is 1.

    Args:
        like: the factors get its shape, format and device.
        dropout: probability of a 0, kept to 1 / 65,536.
        generator: where to draw from; by default torch's own, so that `torch.manual_seed` holds.
    """
    dropped = round(dropout * CHOICES)
    if dropped == CHOICES:
        return torch.zeros_like(like)
    draws = torch.empty((like.numel() + 3) // 4, dtype=torch.int64, device=like.device)
    draws.random_(-(2**63), None, generator=generator)
    numbers = draws.view(torch.int16)[: like.numel()].view(like.shape)  # from -CHOICES / 2 on
    kept = torch.ge(numbers, dropped - CHOICES // 2, out=torch.empty_like(like))  # 0 or 1, in one pass
    return kept.mul_(CHOICES / (CHOICES - dropped))


class Dropout(nn.Dropout):
    """torch's dropout, with factors that are drawn four at a time where torch is slow."""

    def forward(self, input: Tensor) -> Tensor:
        if not self.training or not self.p or input.device.type != "cpu" or is_captured_or_transformed():
            return F.dropout(input, self.p, self.training)
        return input * kept_factors(input, self.p)
