"""Cutting attention heads out of linear layers, in place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import Tensor, nn


def remaining_heads(heads: Sequence[int], pruned: Iterable[int]) -> list[int]:
    """Return the heads that are left.

    Raises:
        ValueError: a head is not there, or none would be left.
    """
    pruned = set(pruned)
    if not pruned <= set(heads):
        raise ValueError(f"heads {sorted(pruned - set(heads))} can't be pruned; there are {list(heads)}.")
    if pruned == set(heads):
        raise ValueError(f"all heads of a layer would be pruned ({sorted(pruned)}); at least one must stay.")
    return [head for head in heads if head not in pruned]


def prune_rows(linear: nn.Linear, kept: Tensor) -> None:
    """Keep only some outputs of a linear layer."""
    _replace(linear, "weight", linear.weight.index_select(0, kept.to(linear.weight.device)))
    _replace(linear, "bias", linear.bias.index_select(0, kept.to(linear.bias.device)))
    linear.out_features = len(kept)


def prune_columns(linear: nn.Linear, kept: Tensor) -> None:
    """Keep only some inputs of a linear layer."""
    _replace(linear, "weight", linear.weight.index_select(1, kept.to(linear.weight.device)))
    linear.in_features = len(kept)


def _replace(linear: nn.Linear, name: str, value: Tensor) -> None:
    old = getattr(linear, name)
    setattr(linear, name, nn.Parameter(value.detach().clone(), requires_grad=old.requires_grad))
