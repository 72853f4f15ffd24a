"""Attention in tiles that stay in the processor's cache: no tensor of length x length, forward or backward.

Each tile is scored, normalised and multiplied with the values before the next begins. Training keeps query, key, value
and the position tables, and computes the weights of each tile again on the way back (Dao et al. 2022, FlashAttention,
section 3.1; here the keys are not split, so that a plain softmax does). Only of short sequences it keeps the weights
too, which are no larger than query, key and value there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from encoders_shared.attention.interface import AttentionInputs, mask_heads
from encoders_shared.attention.tiling import Part, Tile, cut
from encoders_shared.dropout import kept_factors
from encoders_shared.softmax import masked_softmax

KEPT = 3  # weights are kept up to a length of so many head sizes: there they are as large as query, key and value


@dataclass(frozen=True)
class Plan:
    """All that is no tensor with a gradient: how to cut, scale and drop, and whose weights to keep."""

    lengths: list[int]
    allowed: Tensor | None
    rows: Tensor
    scale: float
    dropout: float
    seed: int
    longest_kept: int

    def parts(self, heads: int) -> Iterator[Part]:
        return cut(heads, self.lengths, self.allowed, self.rows)

    def generator(self, device: torch.device) -> torch.Generator:
        """Return the source of the dropped weights: the same on the way back as on the way there."""
        return torch.Generator(device).manual_seed(self.seed)

    def keeps(self, part: Part) -> bool:
        """Tell whether the weights of a part are kept for the way back."""
        return part.length <= self.longest_kept


def tiled(inputs: AttentionInputs) -> tuple[Tensor, None]:
    """Attend tile by tile."""
    batch, _, length, size = inputs.query.shape
    settings, positions, dropout = inputs.settings, inputs.positions, inputs.dropout
    keys, queries, rows = None, None, torch.empty(0, dtype=torch.int64, device=inputs.query.device)
    if positions is not None:
        tables = (positions.keys, positions.queries)
        keys, queries = (None if table is None else table.contiguous() for table in tables)  # to select rows from
        rows = positions.rows
    lengths = [length] * batch if settings.lengths is None else settings.lengths
    seed = int(torch.randint(2**62, (), device="cpu")) if dropout else 0
    longest_kept = KEPT * size if torch.is_grad_enabled() else 0
    plan = Plan(lengths, settings.allowed, rows, inputs.scale, dropout, seed, longest_kept)
    in_one_row = (_in_one_row(states) for states in (inputs.query, inputs.key, inputs.value))
    context = _Tiled.apply(*_as_autocast(*in_one_row, keys, queries), plan)[0]
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
    """Context [heads, tokens, head size] of query, key and value of that shape and tables [heads, rows, head size].

    Behind it come the weights that are kept for the way back.
    """

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, ...]:
        *tensors, plan = inputs
        context, kept_weights = _attend(tensors, plan)
        return context, *kept_weights

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        *tensors, ctx.plan = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*tensors, *output[1:])

    @staticmethod
    def backward(ctx: Any, d_context: Tensor, *_: Any) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        needed = ctx.needs_input_grad[:-1]
        saved = ctx.saved_tensors  # may be read once: gradient checkpointing makes them anew
        tensors, kept_weights = saved[: len(needed)], saved[len(needed) :]
        if not torch.is_grad_enabled():
            return *_gradients(tensors, ctx.plan, d_context, iter(kept_weights)), None
        # the gradients will be differentiated in turn: leave that to autograd
        leaves = [tensor for tensor, need in zip(tensors, needed, strict=True) if need]
        context = _attend(tensors, ctx.plan)[0]
        found = iter(torch.autograd.grad(context, leaves, d_context, create_graph=True))
        return *(next(found) if need else None for need in needed), None


def _attend(tensors: Sequence[Any], plan: Plan) -> tuple[Tensor, list[Tensor]]:
    """Return the context, and the weights of each tile that is to be kept."""
    query, key, value, keys, queries = tensors
    generator = plan.generator(query.device)
    context = torch.empty_like(value)  # with the strides of value: heads side by side in memory
    kept_weights = []
    for part in plan.parts(len(query)):
        part_key, part_value = key[part.heads, part.tokens], value[part.heads, part.tokens]
        table = _table(keys, part)
        by_key = _by_key(queries, part, part_key, plan.scale)
        for tile in part.tiles:
            tile_query = query[part.heads, tile.queries] * plan.scale
            weights = _weights(tile_query, part_key, table, by_key, tile)
            if plan.keeps(part):
                kept_weights.append(weights)
            if plan.dropout:
                weights = weights * kept_factors(weights, plan.dropout, generator)
            context[part.heads, tile.queries] = weights @ part_value
    return context, kept_weights


def _gradients(
    tensors: Sequence[Any], plan: Plan, d_context: Tensor, kept_weights: Iterator[Tensor]
) -> tuple[Tensor | None, ...]:
    query, key, value, keys, queries = tensors
    generator = plan.generator(query.device)
    summed = torch.promote_types(query.dtype, torch.float32)  # many tiles add to one gradient
    d_query = torch.empty_like(query)
    d_key, d_value = (torch.zeros_like(states, dtype=summed) for states in (key, value))
    d_keys, d_queries = (None if table is None else torch.zeros_like(table, dtype=summed) for table in (keys, queries))
    for part in plan.parts(len(query)):
        own = part.heads, part.tokens
        part_key, part_value, d_part_key, d_part_value = key[own], value[own], d_key[own], d_value[own]
        table, query_table = _table(keys, part), _table(queries, part)
        by_key = None if plan.keeps(part) else _by_key(queries, part, part_key, plan.scale)
        d_by_key: Any = None if query_table is None else d_context.new_zeros(*query_table.shape[:2], part.length)
        for tile in part.tiles:
            asked = part.heads, tile.queries
            tile_query = query[asked] * plan.scale
            kept = plan.keeps(part)
            weights = next(kept_weights) if kept else _weights(tile_query, part_key, table, by_key, tile)
            factors = kept_factors(weights, plan.dropout, generator) if plan.dropout else None
            d_tile_context = d_context[asked]
            d_weights = d_tile_context @ part_value.transpose(1, 2)
            if factors is not None:
                d_weights *= factors
            d_part_value += (weights if factors is None else weights * factors).transpose(1, 2) @ d_tile_context
            d_scores = _softmax_backward(weights, d_weights)
            d_tile_query = d_scores @ part_key
            d_part_key += d_scores.transpose(1, 2) @ tile_query
            if table is not None:
                d_by_query = _scattered(d_scores, table.shape[1], tile)
                d_tile_query += d_by_query @ table
                _add(d_keys, part, d_by_query.transpose(1, 2) @ tile_query)
            if d_by_key is not None:
                _add_by_key(d_by_key, d_scores, tile)
            d_query[asked] = d_tile_query * plan.scale
        if d_by_key is not None:
            d_by_key *= plan.scale
            _add(d_queries, part, d_by_key @ part_key)
            d_part_key += d_by_key.transpose(1, 2) @ query_table
    d_keys, d_queries = (None if table is None else table.to(query.dtype) for table in (d_keys, d_queries))
    return d_query, d_key.to(query.dtype), d_value.to(query.dtype), d_keys, d_queries


def _table(table: Tensor | None, part: Part) -> Any:
    """Rows of a position table that a part can reach [heads, rows, head size]; None without a table."""
    if table is None:
        return None
    table = table[part.heads]
    return table if part.reached is None else table.index_select(1, part.reached)


def _add(d_table: Any, part: Part, gradient: Tensor) -> None:
    """Add the gradient of these rows to that of the whole table."""
    if part.reached is None:
        d_table[part.heads] += gradient
    else:
        d_table[part.heads].index_add_(1, part.reached, gradient.to(d_table.dtype))


def _by_key(queries: Tensor | None, part: Part, key: Tensor, scale: float) -> Tensor | None:
    """Position-to-content scores of each table row with each key [heads, rows, keys]."""
    return None if queries is None else (_table(queries, part) * scale) @ key.transpose(1, 2)


def _weights(query: Tensor, key: Tensor, keys: Tensor | None, by_key: Tensor | None, tile: Tile) -> Tensor:
    """Weights of one tile; `query` is already scaled. [heads, queries, keys]."""
    scores = query @ key.transpose(1, 2)
    if keys is not None:
        scores += (query @ keys.transpose(1, 2)).gather(2, tile.rows)
    if by_key is not None:
        scores += _look_up_by_key(by_key, tile)
    return masked_softmax(scores, tile.allowed)


def _look_up_by_key(by_key: Tensor, tile: Tile) -> Tensor:
    """Score of each pair [heads, queries, keys]. Several heads share the work of finding the cells."""
    if len(by_key) == 1:
        return by_key.gather(1, tile.rows)
    return by_key.flatten(1).index_select(1, tile.cells).view(tile.rows.shape)


def _add_by_key(d_by_key: Tensor, d_scores: Tensor, tile: Tile) -> None:
    """Add the gradient of each pair's score to that of what `_look_up_by_key` read."""
    if len(d_by_key) == 1:
        d_by_key.scatter_add_(1, tile.rows, d_scores)
    else:
        d_by_key.flatten(1).index_add_(1, tile.cells, d_scores.flatten(1))


def _softmax_backward(weights: Tensor, d_weights: Tensor) -> Tensor:
    """Gradient of the scores, in at least float32 like the softmax: a row's error would go to one table row."""
    weights, d = (one.to(torch.promote_types(one.dtype, torch.float32)) for one in (weights, d_weights))
    return torch.ops.aten._softmax_backward_data(d, weights, -1, weights.dtype).to(d_weights.dtype)


def _scattered(d_scores: Tensor, rows: int, tile: Tile) -> Tensor:
    """Sum the gradients of scores by table row [heads, queries, rows]."""
    return d_scores.new_zeros(*d_scores.shape[:2], rows).scatter_add_(2, tile.rows, d_scores)
