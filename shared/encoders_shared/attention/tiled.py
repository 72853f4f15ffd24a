"""Attention in tiles that stay in the processor's cache: no tensor of length x length, forward or backward.

Each tile is scored, normalised and multiplied with the values before the next begins. Training keeps query, key, value
and the position tables, and computes the weights of each tile again on the way back (Dao et al. 2022, FlashAttention,
section 3.1; here the keys are not split, so that a plain softmax does).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from encoders_shared.attention.interface import AttentionSettings, RelativePositions, mask_heads
from encoders_shared.attention.tiling import Part, Tile, cut
from encoders_shared.softmax import masked_softmax


@dataclass(frozen=True)
class Plan:
    """All that is no tensor with a gradient: how to cut, scale and drop."""

    lengths: list[int]
    allowed: Tensor | None
    rows: Tensor
    scale: float
    dropout: float
    seed: int

    def parts(self, heads: int) -> Iterator[Part]:
        return cut(heads, self.lengths, self.allowed, self.rows)

    def generator(self, device: torch.device) -> torch.Generator:
        """Return the source of the dropped weights: the same on the way back as on the way there."""
        return torch.Generator(device).manual_seed(self.seed)


def tiled(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    settings: AttentionSettings,
    scale: float,
    dropout: float,
    positions: RelativePositions | None,
) -> tuple[Tensor, None]:
    """Attend tile by tile. Gradients of gradients are refused."""
    batch, _, length, _ = query.shape
    keys, queries, rows = None, None, torch.empty(0, dtype=torch.int64)
    if positions is not None:
        keys, queries, rows = positions.keys, positions.queries, positions.rows
    lengths = [length] * batch if settings.lengths is None else settings.lengths
    seed = int(torch.randint(2**62, ())) if dropout else 0
    plan = Plan(lengths, settings.allowed, rows, scale, dropout, seed)
    in_one_row = (_in_one_row(states) for states in (query, key, value))
    context = _Tiled.apply(*_as_autocast(*in_one_row, keys, queries), plan)
    context = context.unflatten(1, (batch, length)).transpose(0, 1)  # [batch, heads, length, head size]
    return mask_heads(context, settings.head_mask), None


def _in_one_row(states: Tensor) -> Tensor:
    """[batch, heads, length, head size] -> [heads, batch * length, head size]."""
    return states.transpose(1, 2).flatten(0, 1).transpose(0, 1)


def _as_autocast(*tensors: Tensor | None) -> list[Tensor | None]:
    """Cast as autocast would for a matrix product; products into given memory are not seen by it."""
    device = next(tensor.device.type for tensor in tensors if tensor is not None)
    if not torch.is_autocast_enabled(device):
        return list(tensors)
    dtype = torch.get_autocast_dtype(device)
    return [tensor if tensor is None or tensor.dtype == torch.float64 else tensor.to(dtype) for tensor in tensors]


class _Tiled(torch.autograd.Function):
    """Context [heads, tokens, head size] of query, key and value of that shape and tables [heads, rows, head size]."""

    @staticmethod
    def forward(
        query: Tensor, key: Tensor, value: Tensor, keys: Tensor | None, queries: Tensor | None, plan: Plan
    ) -> Tensor:
        generator = plan.generator(query.device)
        context = torch.empty_like(value)  # with the strides of value: heads side by side in memory
        for part in plan.parts(len(query)):
            part_key, part_value = key[part.heads, part.tokens], value[part.heads, part.tokens]
            by_key = _by_key(queries, part, part_key, plan.scale)
            for tile in part.tiles:
                tile_query = query[part.heads, tile.queries] * plan.scale
                weights = _weights(tile_query, part_key, _table(keys, part), by_key, tile)
                kept = _kept(weights, plan.dropout, generator)
                torch.bmm(
                    weights if kept is None else weights * kept, part_value, out=context[part.heads, tile.queries]
                )
        return context

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        *tensors, ctx.plan = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, d_context: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        if torch.is_grad_enabled():
            raise RuntimeError(
                "the tiled attention backend has no gradients of gradients (create_graph=True); "
                "call model.set_attn_implementation('eager') first."
            )
        query, key, value, keys, queries = ctx.saved_tensors
        plan: Plan = ctx.plan
        generator = plan.generator(query.device)
        d_query, d_key, d_value = torch.empty_like(query), torch.zeros_like(key), torch.zeros_like(value)
        d_keys, d_queries = (None if table is None else torch.zeros_like(table) for table in (keys, queries))
        for part in plan.parts(len(query)):
            own = part.heads, part.tokens
            table = _table(keys, part)
            by_key = _by_key(queries, part, key[own], plan.scale)
            d_by_key = None if by_key is None else torch.zeros_like(by_key)
            for tile in part.tiles:
                asked = part.heads, tile.queries
                tile_query = query[asked] * plan.scale
                weights = _weights(tile_query, key[own], table, by_key, tile)
                kept = _kept(weights, plan.dropout, generator)
                d_weights = d_context[asked] @ value[own].transpose(1, 2)
                if kept is not None:
                    d_weights *= kept
                d_value[own] += (weights if kept is None else weights * kept).transpose(1, 2) @ d_context[asked]
                d_scores = weights * (d_weights - (d_weights * weights).sum(-1, keepdim=True))
                d_tile_query = d_scores @ key[own]
                d_key[own] += d_scores.transpose(1, 2) @ tile_query
                if table is not None:
                    assert d_keys is not None
                    d_by_query = _scattered(d_scores, table.shape[1], tile)
                    d_tile_query += d_by_query @ table
                    d_keys[part.heads] += d_by_query.transpose(1, 2) @ tile_query
                if d_by_key is not None:
                    d_by_key.scatter_add_(1, tile.rows, d_scores)
                d_query[asked] = d_tile_query * plan.scale
            if d_by_key is not None:
                assert d_queries is not None
                d_by_key *= plan.scale
                d_queries[part.heads] += d_by_key @ key[own]
                d_key[own] += d_by_key.transpose(1, 2) @ queries[part.heads]
        return d_query, d_key, d_value, d_keys, d_queries, None


def _table(keys: Tensor | None, part: Part) -> Tensor | None:
    return None if keys is None else keys[part.heads]


def _by_key(queries: Tensor | None, part: Part, key: Tensor, scale: float) -> Tensor | None:
    """Position-to-content scores of each table row with each key [heads, rows, keys]."""
    return None if queries is None else (queries[part.heads] * scale) @ key.transpose(1, 2)


def _weights(query: Tensor, key: Tensor, keys: Tensor | None, by_key: Tensor | None, tile: Tile) -> Tensor:
    """Weights of one tile; `query` is already scaled. [heads, queries, keys]."""
    scores = query @ key.transpose(1, 2)
    if keys is not None:
        scores += (query @ keys.transpose(1, 2)).gather(2, tile.rows)
    if by_key is not None:
        scores += by_key.gather(1, tile.rows)
    return masked_softmax(scores, tile.allowed)


def _scattered(d_scores: Tensor, rows: int, tile: Tile) -> Tensor:
    """Sum the gradients of scores by table row [heads, queries, rows]."""
    return d_scores.new_zeros(*d_scores.shape[:2], rows).scatter_add_(2, tile.rows, d_scores)


def _kept(weights: Tensor, dropout: float, generator: torch.Generator) -> Tensor | None:
    """Draw the factors of weights under dropout: 0 or 1 / (1 - dropout); None if all are kept."""
    if not dropout:
        return None
    kept = torch.empty_like(weights).bernoulli_(1 - dropout, generator=generator)
    return kept / (1 - dropout) if dropout < 1 else kept
