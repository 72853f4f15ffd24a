"""Attention by torch's fused function."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from encoders_shared.attention.eager import position_scores
from encoders_shared.attention.interface import AttentionInputs, AttentionSettings, mask_heads


def sdpa(inputs: AttentionInputs) -> tuple[Tensor, None]:
    """Use torch's fused attention; the position scores, if any, enter as its additive mask."""
    settings, key = inputs.settings, inputs.key
    query = inputs.query * inputs.scale  # before the products, so that half precision does not overflow
    attended, mask = None, None
    if settings.allowed is not None:
        attended = settings.allowed.any(dim=-1, keepdim=True)  # [batch, 1, 1 or query, 1]
        mask = settings.allowed | ~attended  # a row of nothing would be 0 / 0: let it attend, then drop its context
    if inputs.positions is not None:
        bias = position_scores(query, key, inputs.positions, inputs.scale)
        mask = bias if mask is None else bias.masked_fill(~mask, float("-inf"))
    context = F.scaled_dot_product_attention(
        query, key, inputs.value, attn_mask=mask, dropout_p=inputs.dropout, scale=1.0
    )
    if attended is not None:
        context = context.masked_fill(~attended, 0.0)
    return mask_heads(context, settings.head_mask), None


def jagged_sdpa(inputs: AttentionInputs) -> tuple[Tensor, None]:
    """Use torch's fused attention once for all sequences of a packed row, for attention without positions.

    On a GPU that is one kernel, which is told where the sequences end (Dao et al. 2022, FlashAttention); on a CPU torch
    has none and works through copies.
    """
    lengths = inputs.settings.lengths
    assert lengths is not None
    borders = inputs.settings.once(_borders, inputs.query)
    nested = (
        torch.nested.nested_tensor_from_jagged(
            states[0].transpose(0, 1).contiguous(),  # [tokens, heads, head size]
            borders,
            min_seqlen=min(lengths),
            max_seqlen=max(lengths),
        ).transpose(1, 2)
        for states in (inputs.query * inputs.scale, inputs.key, inputs.value)
    )
    context = F.scaled_dot_product_attention(*nested, dropout_p=inputs.dropout, scale=1.0)
    in_one_row = context.transpose(1, 2).values()  # [tokens, heads, head size]
    return mask_heads(in_one_row.transpose(0, 1)[None], inputs.settings.head_mask), None


def _borders(settings: AttentionSettings, query: Tensor) -> Tensor:
    """Where the sequences of a packed row begin, and where the last one ends, int64 [sequences + 1]."""
    return torch.tensor([0, *(settings.lengths or ())]).cumsum(0).to(query.device)
