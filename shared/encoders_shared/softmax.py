"""Softmax over the entries that a mask leaves."""

from __future__ import annotations

import torch
from torch import Tensor


def masked_softmax(scores: Tensor, mask: Tensor | None, dim: int = -1) -> Tensor:
    """Softmax of `scores` along `dim` over the entries where `mask` is True.

    Masked entries, whatever they hold (inf and nan too), get exactly zero and receive a zero gradient; so does every
    entry of a row in which nothing is left. The computation runs in at least float32 and is cast back: this is the one
    place where the precision of the attention weights is decided.

    Args:
        scores: any floating dtype and shape; not changed.
        mask: bool, broadcastable to `scores`; None keeps every entry.
        dim: the axis to normalise over.

    Returns:
        Weights of the shape and dtype of `scores`.
    """
    working = scores.to(torch.promote_types(scores.dtype, torch.float32))
    if mask is None:
        return torch.softmax(working, dim).to(scores.dtype)
    masked = ~mask
    weights = torch.softmax(working.masked_fill(masked, torch.finfo(working.dtype).min), dim)
    return weights.masked_fill(masked, 0.0).to(scores.dtype)
