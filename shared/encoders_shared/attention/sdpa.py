"""Attention by torch's fused function."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from encoders_shared.attention.eager import position_scores
from encoders_shared.attention.interface import AttentionSettings, RelativePositions, mask_heads


def sdpa(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    settings: AttentionSettings,
    scale: float,
    dropout: float,
    positions: RelativePositions | None,
) -> tuple[Tensor, None]:
    """Use torch's fused attention; the position scores, if any, enter as its additive mask."""
    query = query * scale  # before the products, so that half precision does not overflow
    attended, mask = None, None
    if settings.allowed is not None:
        attended = settings.allowed.any(dim=-1, keepdim=True)  # [batch, 1, 1 or query, 1]
        mask = settings.allowed | ~attended  # a row of nothing would be 0 / 0: let it attend, then drop its context
    if positions is not None:
        bias = position_scores(query, key, positions, scale)
        mask = bias if mask is None else bias.masked_fill(~mask, float("-inf"))
    context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout, scale=1.0)
    if attended is not None:
        context = context.masked_fill(~attended, 0.0)
    return mask_heads(context, settings.head_mask), None


def jagged_sdpa(
    query: Tensor, key: Tensor, value: Tensor, settings: AttentionSettings, scale: float, dropout: float
) -> Tensor:
    """Use torch's fused attention once for all sequences of a packed row, for attention without positions.

    On a GPU that is one kernel, which is told where the sequences end (Dao et al. 2022, FlashAttention); on a CPU torch
    has none and works through copies.
    """
    assert settings.lengths is not None
    ends = torch.tensor([0, *settings.lengths], device=query.device).cumsum(0)
    nested = (
        torch.nested.nested_tensor_from_jagged(
            states[0].transpose(0, 1).contiguous(),  # [tokens, heads, head size]
            ends,
            min_seqlen=min(settings.lengths),
            max_seqlen=max(settings.lengths),
        ).transpose(1, 2)
        for states in (query * scale, key, value)
    )
    context = F.scaled_dot_product_attention(*nested, dropout_p=dropout, scale=1.0)
    return mask_heads(context.transpose(1, 2).values().transpose(0, 1)[None], settings.head_mask)
