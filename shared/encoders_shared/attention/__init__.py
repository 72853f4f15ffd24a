"""The one place where scores become context.

    scores[q, k] = scale * (Q_q . K_k  +  Q_q . P_row(q - k)  +  K_k . R_row(q - k))
    context_q    = sum_k softmax_k(scores[q, k]) V_k

The second term is content-to-position, the third position-to-content (He et al. 2021, DeBERTa, section 3.1). A family
supplies query, key, value and, if it has relative positions, its small tables P and R; scaling, mask, look-up, softmax,
dropout and the choice of the backend are decided here.
"""

from __future__ import annotations

from torch import Tensor

from encoders_shared.attention.backends import BACKENDS, choose, read_backend
from encoders_shared.attention.interface import AttentionInputs, AttentionSettings, RelativePositions

__all__ = [
    "BACKENDS",
    "AttentionInputs",
    "AttentionSettings",
    "RelativePositions",
    "attention",
    "read_backend",
    "split_heads",
]


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
    backend = BACKENDS[choose(settings, query.device, plain=positions is None and not dropout)]
    context, weights = backend(AttentionInputs(query, key, value, settings, scale, dropout, positions))
    return context.transpose(1, 2).flatten(2), weights  # [batch, length, heads * head size]
