"""Attention written out."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from encoders_shared.attention.interface import AttentionInputs, RelativePositions
from encoders_shared.relative_position import pair_index
from encoders_shared.softmax import masked_softmax


def eager(inputs: AttentionInputs) -> tuple[Tensor, Tensor]:
    """Written out, with the weights; the definition that every other backend is compared with."""
    query, key = inputs.query * inputs.scale, inputs.key
    scores = query @ key.transpose(-1, -2)  # [batch, heads, query, key]
    if inputs.positions is not None:
        scores = scores + position_scores(query, key, inputs.positions, inputs.scale)
    weights = masked_softmax(scores, inputs.settings.allowed)
    if inputs.settings.head_mask is not None:
        weights = weights * inputs.settings.head_mask[:, None, None]  # [heads, 1, 1]
    return F.dropout(weights, inputs.dropout) @ inputs.value, weights


def position_scores(query: Tensor, key: Tensor, positions: RelativePositions, scale: float) -> Tensor:
    """Content-to-position and position-to-content scores; `query` is already scaled. [batch, heads, query, key]."""
    length = query.shape[-2]
    row = positions.rows[pair_index(length, query.device)]  # [query, key]
    row = row.expand(*query.shape[:2], length, length)  # [batch, heads, query, key]
    scores = None
    if positions.keys is not None:
        by_query = query @ positions.keys.transpose(-1, -2)  # [batch, heads, query, rows]
        scores = by_query.gather(-1, row)
    if positions.queries is not None:
        by_key = (positions.queries * scale) @ key.transpose(-1, -2)  # [batch, heads, rows, key]
        position_to_content = by_key.gather(-2, row)
        scores = position_to_content if scores is None else scores + position_to_content
    assert scores is not None
    return scores
