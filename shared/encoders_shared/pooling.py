"""From the states of a sequence to one vector."""

from __future__ import annotations

import torch
from torch import Tensor

from encoders_shared.masks import first_token


def mean_pool(states: Tensor, tokens: Tensor) -> Tensor:
    """Mean over the real tokens; zero for a sequence that has none. [batch, length, hidden] -> [batch, hidden]."""
    weights = tokens.to(torch.promote_types(states.dtype, torch.float32))[:, :, None]
    return ((states * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1.0)).to(states.dtype)


def cls_pool(states: Tensor, tokens: Tensor) -> Tensor:
    """State of the first real token; zero for a sequence that has none. [batch, length, hidden] -> [batch, hidden]."""
    first = states[torch.arange(states.shape[0], device=states.device), first_token(tokens)]
    return first.masked_fill(~tokens.any(dim=1)[:, None], 0.0)


POOLINGS = {"mean": mean_pool, "cls": cls_pool}
