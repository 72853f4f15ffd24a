"""Counting what torch computes and allocates."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

COUNTED = ("products", "operations", "bytes", "squares")
Work = dict[str, int]


class WorkCounter(TorchDispatchMode):
    """Counts the work of all torch operations within it.

    Args:
        length: a tensor is a square if two of its sides are at least this.

    Attributes:
        work: matrix products, their floating-point operations, bytes of new tensors, how many of these are squares.
    """

    def __init__(self, length: int):
        super().__init__()
        self.length = length
        self.work: Work = dict.fromkeys(COUNTED, 0)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        formula = FORMULAS.get(func.overloadpacket)
        if formula is not None:
            self.work["products"] += 1
            self.work["operations"] += int(formula(*args, **kwargs, out_val=result))
        known = {tensor.untyped_storage().data_ptr() for tensor in tensors_in((args, kwargs))}
        for tensor in tensors_in(result):
            storage = tensor.untyped_storage()
            if storage.nbytes() and storage.data_ptr() not in known:  # neither a view nor written in place
                known.add(storage.data_ptr())
                self.work["bytes"] += storage.nbytes()
                self.work["squares"] += sum(side >= self.length for side in tensor.shape) >= 2
        return result


def cpu_attention_operations(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any, **__: Any) -> int:
    """Operations of torch's fused attention on the CPU, which torch does not count."""
    return sdpa_flop_count(query.shape, key.shape, value.shape)


def cpu_attention_backward_operations(
    gradient: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any, **__: Any
) -> int:
    """Operations of its backward pass: scores again, then two products for each of the two."""
    return sdpa_flop_count(query.shape, key.shape, value.shape) * 5 // 2


FORMULAS = {
    **flop_registry,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: cpu_attention_operations,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: cpu_attention_backward_operations,
}


def tensors_in(values: Any) -> list[torch.Tensor]:
    """Return the tensors anywhere in nested values."""
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]
