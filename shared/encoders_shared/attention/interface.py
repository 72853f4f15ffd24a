"""What every attention backend takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from torch import Tensor

Made = TypeVar("Made")


@dataclass(frozen=True)
class RelativePositions:
    """Projected position tables of one layer.

    Attributes:
        keys: P, position keys for the content-to-position scores [heads, rows, head size], or None.
        queries: R, position queries for the position-to-content scores [heads, rows, head size], or None.
        rows: the table row of each offset -(length - 1) .. length - 1, int64 [2 * length - 1]. No table of length x
            length is ever kept.

    Raises:
        ValueError: there are neither keys nor queries.
    """

    keys: Tensor | None
    queries: Tensor | None
    rows: Tensor

    def __post_init__(self):
        if self.keys is None and self.queries is None:
            raise ValueError("RelativePositions needs keys, queries or both; got neither.")

    def for_length(self, length: int) -> RelativePositions:
        """Return the same tables for shorter sequences."""
        cut = (len(self.rows) + 1) // 2 - length
        return replace(self, rows=self.rows[cut : len(self.rows) - cut])


@dataclass(frozen=True)
class AttentionSettings:
    """What one layer's attention needs beside its tensors.

    Attributes:
        backend: a name in `BACKENDS`, or "auto".
        allowed: bool, broadcastable to [batch, heads, query, key]; None attends to everything.
        head_mask: factor of each head's weights [heads], or None.
        need_weights: also return the attention weights; that is done by the eager path, whatever the backend.
        lengths: lengths of the sequences, if they stand behind one another in a single row; they do not see each other.
        made: what a backend has made of these settings; see `once`.
    """

    backend: str
    allowed: Tensor | None
    head_mask: Tensor | None
    need_weights: bool
    lengths: list[int] | None = None
    made: dict[Any, Any] = field(default_factory=dict, repr=False)

    def once(self, make: Callable[[AttentionSettings, Tensor], Made], query: Tensor) -> Made:
        """Return what `make` makes of these settings, the same object in every layer.

        It may depend on the mask or the lengths, and on the size and the device of the queries.
        """
        key = make, query.device
        if key not in self.made:
            self.made[key] = make(self, query)
        return self.made[key]

    def for_heads(self, heads: list[int]) -> AttentionSettings:
        """Return the settings for a layer of which only some heads are left."""
        if self.head_mask is None or len(heads) == len(self.head_mask):
            return self
        return replace(self, head_mask=self.head_mask[heads])


@dataclass(frozen=True)
class AttentionInputs:
    """What a backend takes: the arguments of `encoders_shared.attention.attention`."""

    query: Tensor
    key: Tensor
    value: Tensor
    settings: AttentionSettings
    scale: float
    dropout: float
    positions: RelativePositions | None

    def of_sequences(self) -> Iterator[AttentionInputs]:
        """Yield the same for each sequence of a packed row."""
        lengths = self.settings.lengths
        assert lengths is not None
        alone = replace(self.settings, lengths=None, made={})
        for query, key, value in zip(
            *(one.split(lengths, dim=2) for one in (self.query, self.key, self.value)), strict=True
        ):
            positions = None if self.positions is None else self.positions.for_length(query.shape[2])
            yield AttentionInputs(query, key, value, alone, self.scale, self.dropout, positions)


def mask_heads(context: Tensor, head_mask: Tensor | None) -> Tensor:
    """Multiply each head's context [batch, heads, length, head size] by its factor."""
    return context if head_mask is None else context * head_mask[:, None, None]  # [heads, 1, 1]
