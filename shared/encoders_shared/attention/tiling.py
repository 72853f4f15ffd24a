"""How the tiled backend cuts its work: sequences, then heads, then queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

TILE = 2**18  # scores in one tile: 1 MB in float32
FEWEST_QUERIES = 32  # with fewer, matrix products are slow


@dataclass(frozen=True)
class Tile:
    """Some queries of one part, with all of its keys.

    Attributes:
        queries: where the queries stand in the row of all tokens.
        allowed: bool, broadcastable to [heads, queries, keys]; None attends to everything.
        rows: row of the position table for each pair, int64 [heads, queries, keys]; empty without positions.
    """

    queries: slice
    allowed: Tensor | None
    rows: Tensor

    @cached_property
    def cells(self) -> Tensor:
        """Where each pair's row and key meet in a flat table [rows * keys], int64 [queries * keys]."""
        keys = self.rows.shape[2]
        return torch.arange(keys, device=self.rows.device).add(self.rows[0], alpha=keys).flatten()


@dataclass(frozen=True)
class Part:
    """Some heads of one sequence.

    Attributes:
        heads: which heads.
        tokens: where the sequence stands in the row of all tokens.
        reached: which rows of the position table the sequence can reach, int64; None for all. The tiles count these.
        tiles: what it is cut into, each made when its turn comes: together they would be as large as all scores.
    """

    heads: slice
    tokens: slice
    reached: Tensor | None
    tiles: Iterator[Tile]

    @property
    def length(self) -> int:
        return self.tokens.stop - self.tokens.start


def cut(heads: int, lengths: list[int], allowed: Tensor | None, rows: Tensor) -> Iterator[Part]:
    """Cut the attention of sequences that stand behind one another in one row of tokens.

    Args:
        heads: number of heads.
        lengths: tokens of each sequence.
        allowed: bool [1 or batch, 1 or heads, 1 or query, key]; None attends to everything.
        rows: the table row of each offset of the longest sequence, int64 [2 * longest - 1]; empty without positions.
    """
    start, middle = 0, len(rows) // 2  # where the offset 0 stands
    for sequence, length in enumerate(lengths):
        tokens = slice(start, start + length)
        reached, own_rows = None, rows
        if 2 * length - 1 < len(rows):
            reached, own_rows = rows[middle - length + 1 : middle + length].unique(return_inverse=True)
        own = None if allowed is None else allowed[sequence if len(allowed) > 1 else 0]
        queries = min(length, max(FEWEST_QUERIES, TILE // length))
        together = min(heads, max(1, TILE // (queries * length)))
        for group in _slices(heads, together):
            yield Part(group, tokens, reached, _tiles(group, tokens, queries, own, own_rows))
        start += length


def _tiles(heads: slice, tokens: slice, queries: int, allowed: Tensor | None, rows: Tensor) -> Iterator[Tile]:
    length = tokens.stop - tokens.start
    if allowed is not None and len(allowed) > 1:
        allowed = allowed[heads]
    for block in _slices(length, queries):
        yield Tile(
            queries=slice(tokens.start + block.start, tokens.start + block.stop),
            allowed=allowed if allowed is None or allowed.shape[1] == 1 else allowed[:, block],
            rows=_rows(rows, length, block).expand(heads.stop - heads.start, -1, -1),
        )


def _slices(size: int, step: int) -> Iterator[slice]:
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))


def _rows(rows: Tensor, length: int, queries: slice) -> Tensor:
    """Table row of each pair of these queries and all keys of a sequence [queries, keys]."""
    if not len(rows):
        return rows.new_empty(0, 0)
    windows = rows.flip(0).unfold(0, length, 1)  # the last query reads window 0, from its farthest left key on
    return windows[length - queries.stop : length - queries.start].flip(0)
