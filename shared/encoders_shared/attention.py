"""The one place where scores become context.

    scores[q, k] = scale * (Q_q . K_k  +  Q_q . P_row(q - k)  +  K_k . R_row(q - k))
    context_q    = sum_k softmax_k(scores[q, k]) V_k

The second term is content-to-position, the third position-to-content (He et al. 2021, DeBERTa, section 3.1). A family
supplies query, key, value and, if it has relative positions, its small tables P and R; scaling, mask, look-up, softmax,
dropout and the choice of the backend are decided here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from encoders_shared.errors import listed
from encoders_shared.relative_position import pair_index
from encoders_shared.softmax import masked_softmax


@dataclass(frozen=True)
class RelativePositions:
    """Projected position tables of one layer.

    Attributes:
        keys: P, position keys for the content-to-position scores [heads, rows, head size], or None.
        queries: R, position queries for the position-to-content scores [heads, rows, head size], or None.
        rows: the table row of each offset -(length - 1) .. length - 1, int64 [2 * length - 1]. No table of length x
            length is ever kept.
    """

    keys: Tensor | None
    queries: Tensor | None
    rows: Tensor

    def for_length(self, length: int) -> RelativePositions:
        """Return the same tables for shorter sequences."""
        cut = (len(self.rows) + 1) // 2 - length
        return replace(self, rows=self.rows[cut : len(self.rows) - cut])


@dataclass(frozen=True)
class AttentionSettings:
    """What one layer's attention needs beside its tensors.

    Attributes:
        backend: a name in `BACKENDS`.
        allowed: bool, broadcastable to [batch, heads, query, key]; None attends to everything.
        head_mask: factor of each head's weights [heads], or None.
        need_weights: also return the attention weights; that is done by the eager path, whatever the backend.
        lengths: lengths of the sequences, if they stand behind one another in a single row; they do not see each other.
    """

    backend: str
    allowed: Tensor | None
    head_mask: Tensor | None
    need_weights: bool
    lengths: list[int] | None = None

    def for_heads(self, heads: list[int]) -> AttentionSettings:
        """Return the settings for a layer of which only some heads are left."""
        if self.head_mask is None or len(heads) == len(self.head_mask):
            return self
        return replace(self, head_mask=self.head_mask[heads])


def split_heads(states: Tensor, heads: int) -> Tensor:
    """[batch, length, heads * head size] -> [batch, heads, length, head size]."""
    return states.unflatten(-1, (heads, -1)).transpose(1, 2)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    settings: AttentionSettings,
    *,
    scale: float,
    dropout: float = 0.0,
    positions: RelativePositions | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Attend.

    A query that may attend to nothing gets a context of zero on every backend.

    Args:
        query: [batch, heads, length, head size].
        key: as query.
        value: as query.
        settings: mask, head mask, backend.
        scale: factor of all scores, applied before the products so that half precision does not overflow.
        dropout: probability of dropping a weight; 0 outside training.
        positions: the tables of relative positions, if the family has them.

    Returns:
        The context [batch, length, heads * head size], and the weights [batch, heads, query, key] before dropout if
        they were asked for, else None.
    """
    backend = eager if settings.need_weights else BACKENDS[settings.backend]
    query = query * scale
    if settings.lengths is None:
        context, weights = backend(query, key, value, settings, scale, dropout, positions)
    else:
        contexts, weights = [], None
        sequences = (states.split(settings.lengths, dim=2) for states in (query, key, value))
        for q, k, v in zip(*sequences, strict=True):
            own_positions = None if positions is None else positions.for_length(q.shape[2])
            contexts.append(backend(q, k, v, settings, scale, dropout, own_positions)[0])
        context = torch.cat(contexts, dim=2)
    return context.transpose(1, 2).flatten(2), weights  # [batch, length, heads * head size]


def eager(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    settings: AttentionSettings,
    scale: float,
    dropout: float,
    positions: RelativePositions | None,
) -> tuple[Tensor, Tensor]:
    """Written out, with the weights; the definition that every other backend is compared with."""
    scores = query @ key.transpose(-1, -2)  # [batch, heads, query, key]
    if positions is not None:
        scores = scores + _position_scores(query, key, positions, scale)
    weights = masked_softmax(scores, settings.allowed)
    if settings.head_mask is not None:
        weights = weights * settings.head_mask[:, None, None]  # [heads, 1, 1]
    return F.dropout(weights, dropout) @ value, weights


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
    attended, mask = None, None
    if settings.allowed is not None:
        attended = settings.allowed.any(dim=-1, keepdim=True)  # [batch, 1, 1 or query, 1]
        mask = settings.allowed | ~attended  # a row of nothing would be 0 / 0: let it attend, then drop its context
    if positions is not None:
        bias = _position_scores(query, key, positions, scale)
        mask = bias if mask is None else bias.masked_fill(~mask, float("-inf"))
    context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout, scale=1.0)
    if attended is not None:
        context = context.masked_fill(~attended, 0.0)
    if settings.head_mask is not None:
        context = context * settings.head_mask[:, None, None]  # [heads, 1, 1]
    return context, None


BACKENDS = {"eager": eager, "sdpa": sdpa}


def check_backend(name: str) -> str:
    """Return `name` if it is a backend of this library.

    Raises:
        ValueError: it is not.
    """
    if name not in BACKENDS:
        raise ValueError(f"attention backend {name!r} is not supported by these encoders; allowed: {listed(BACKENDS)}.")
    return name


def _position_scores(query: Tensor, key: Tensor, positions: RelativePositions, scale: float) -> Tensor:
    """Content-to-position and position-to-content scores; `query` is already scaled. [batch, heads, query, key]."""
    length = query.shape[-2]
    row = positions.rows[pair_index(length, query.device)]  # [query, key]
    row = row.expand(*query.shape[:2], length, length)  # [batch, heads, query, key]
    scores = None
    if positions.keys is not None:
        by_row = query @ positions.keys.transpose(-1, -2)  # [batch, heads, query, rows]
        scores = by_row.gather(-1, row)
    if positions.queries is not None:
        by_row = (positions.queries * scale) @ key.transpose(-1, -2)  # [batch, heads, rows, key]
        position_to_content = by_row.gather(-2, row)
        scores = position_to_content if scores is None else scores + position_to_content
    if scores is None:
        raise ValueError("RelativePositions needs keys, queries or both; got neither.")
    return scores
