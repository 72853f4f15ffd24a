"""The one owner of attention masks.

Every encoder accepts the same masks and turns them, once, into an `AttentionMask`. 1 or True means "attend".
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from encoders_shared.errors import can_read, check_tensor

_SHAPES = "[batch, length], [batch, 1, 1, length], [batch, length, length] or [batch, 1, length, length]"


@dataclass(frozen=True)
class AttentionMask:
    """Which tokens are real, and which key each query may attend to.

    Attributes:
        tokens: bool [batch, length]; True at real tokens. Where the mask differs by query, a token is real if any query
            attends to it.
        allowed: bool [batch, 1, 1 or query, key]; True where a query attends to a key. None if nothing is masked.
    """

    tokens: Tensor
    allowed: Tensor | None

    def clear(self, states: Tensor) -> Tensor:
        """Return the states with zeros at padding. [batch, length, hidden], same shape."""
        return states if self.allowed is None else states.masked_fill(~self.tokens[:, :, None], 0.0)


def read_attention_mask(mask: Tensor | None, batch: int, length: int, device: torch.device) -> AttentionMask:
    """Check an attention mask and bring it into one form.

    Args:
        mask: bool, integer or float, values 0 and 1, of shape [batch, length], [batch, 1, 1, length],
            [batch, length, length] or [batch, 1, length, length]. None attends to everything.
        batch: number of sequences.
        length: number of tokens of each sequence, padding included.
        device: where the token flags are made if there is no mask.

    Raises:
        TypeError: the mask is not a tensor.
        ValueError: the mask has another shape, or values other than 0 and 1 (an additive mask).
    """
    if mask is None:
        return AttentionMask(tokens=torch.ones(batch, length, dtype=torch.bool, device=device), allowed=None)
    check_tensor("attention_mask", mask)
    _check_shape(mask, batch, length)
    queries = 1 if mask.dim() == 2 else mask.shape[-2]
    allowed = _as_bool(mask).reshape(batch, 1, queries, length)  # [batch, 1, 1 or query, key]
    tokens = allowed.any(dim=2).squeeze(1)  # [batch, key]
    nothing_masked = can_read(allowed) and bool(allowed.all())
    return AttentionMask(tokens=tokens, allowed=None if nothing_masked else allowed)


def first_token(tokens: Tensor) -> Tensor:
    """Return the index of the first real token of each sequence, 0 where there is none. [batch, length] -> [batch]."""
    return tokens.int().argmax(dim=1)


def _check_shape(mask: Tensor, batch: int, length: int) -> None:
    accepted = {
        2: [(batch, length)],
        3: [(batch, length, length)],
        4: [(batch, 1, 1, length), (batch, 1, length, length)],
    }
    if mask.dim() not in accepted:
        raise ValueError(f"attention_mask has {mask.dim()} dimensions, shape {list(mask.shape)}; allowed: {_SHAPES}.")
    if not any(tuple(mask.shape) == shape for shape in accepted[mask.dim()]):
        raise ValueError(
            f"attention_mask has shape {list(mask.shape)}, which does not fit batch {batch} and length {length}; "
            f"allowed: {_SHAPES}."
        )


def _as_bool(mask: Tensor) -> Tensor:
    if mask.dtype == torch.bool:
        return mask
    if can_read(mask):
        wrong = mask[(mask != 0) & (mask != 1)]
        if wrong.numel():
            raise ValueError(
                f"attention_mask holds {wrong[0].item()}; allowed are 0 (ignore) and 1 (attend). Additive masks "
                "(0 and -inf) are not accepted: pass `mask == 0` of such a mask instead."
            )
    return mask != 0
