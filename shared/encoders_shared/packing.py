"""Ragged batches without work on padding: all real tokens of a batch in one row.

Linear layers, norms and activations do not care which sequence a token belongs to; attention, n-grams and positions do.
A batch is packed once, after it was checked, and its states are put back into padded form once, at the end; padded
positions of the result are zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from encoders_shared.errors import can_read
from encoders_shared.masks import AttentionMask

FULLEST = 0.95  # measured: above it, copying tokens about costs what the padding does


@dataclass(frozen=True)
class Packing:
    """Where the tokens of a packed row come from.

    Attributes:
        tokens: True at real tokens of the padded batch [batch, length].
        lengths: real tokens of each sequence that has any; and the filling, if there is some.
        filling: length of a last sequence, a copy of the first tokens, that only makes the row longer; nothing of it
            comes back.
    """

    tokens: Tensor
    lengths: list[int]
    filling: int = 0

    def filled(self, filling: int) -> Packing:
        """Return the same with a filling; or without, if it would be longer than every sequence."""
        if not 0 < filling <= max(self.lengths):
            return self
        return replace(self, lengths=[*self.lengths, filling], filling=filling)

    def pack(self, padded: Tensor) -> Tensor:
        """[batch, length, ...] -> [1, tokens, ...]."""
        row = padded[self.tokens]
        return torch.cat((row, row[: self.filling]))[None] if self.filling else row[None]

    def unpack(self, packed: Tensor) -> Tensor:
        """[1, tokens, ...] -> [batch, length, ...], zero at padding."""
        padded = packed.new_zeros(*self.tokens.shape, *packed.shape[2:])
        padded[self.tokens] = packed[0, : packed.shape[1] - self.filling]
        return padded


def plan_packing(mask: AttentionMask, wanted: bool | None) -> Packing | None:
    """Decide whether to pack a batch.

    Args:
        mask: the batch's mask.
        wanted: True packs whenever it is possible, False never does, None does where it pays: on a CPU, where a batch
            is at most 95 % full.

    Returns:
        How to pack, or None: nothing is masked, the values may not be read, the mask differs by query, or a sequence
        has gaps.
    """
    if wanted is False or mask.allowed is None or not can_read(mask.tokens) or mask.allowed.shape[2] != 1:
        return None
    tokens = mask.tokens
    if wanted is None and (tokens.device.type != "cpu" or tokens.float().mean() > FULLEST):
        return None
    borders = (tokens[:, 1:] != tokens[:, :-1]).sum(dim=1) + tokens[:, 0].int() + tokens[:, -1].int()
    if (borders > 2).any():  # more than one run of real tokens
        return None
    lengths = [length for length in tokens.sum(dim=1).tolist() if length]
    return Packing(tokens, lengths) if lengths else None


def spread_out(packed: Tensor, lengths: list[int], margin: int, multiple: int) -> tuple[Tensor, Tensor]:
    """Put zeros between the sequences of a packed row, so that a convolution does not look across their borders.

    Args:
        packed: [1, tokens, hidden].
        lengths: lengths of the sequences.
        margin: zeros before each sequence, and at least so many behind it.
        multiple: a sequence and its zeros are a multiple of this long, so that one that is computed in tiles of so many
            tokens shares none with another.

    Returns:
        The longer row [1, tokens and zeros, hidden], and where the tokens stand in it, int64 [tokens].
    """
    sizes = torch.tensor(lengths)
    taken = (sizes + 2 * margin + multiple - 1) // multiple * multiple
    zeros_before = margin + (taken.cumsum(0) - taken) - (sizes.cumsum(0) - sizes)
    place = (torch.arange(packed.shape[1]) + torch.repeat_interleave(zeros_before, sizes)).to(packed.device)
    spread = packed.new_zeros(1, int(taken.sum()), packed.shape[2])
    return spread.index_copy(1, place, packed), place
