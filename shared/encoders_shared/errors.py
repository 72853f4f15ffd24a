"""What the error messages of the library have in common."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import torch
from torch import Tensor
from torch._C._functorch import TransformType, get_interpreter_stack


class ConfigurationError(ValueError):
    """A configuration that contradicts itself, or a field with a value that is not allowed."""


def suggestion(name: str, allowed: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the nearest allowed name, or an empty string if none is near."""
    near = difflib.get_close_matches(name, list(allowed), n=1, cutoff=0.6)
    return f" Did you mean {near[0]!r}?" if near else ""


def listed(names: Iterable[object]) -> str:
    """Return names as one readable, comma-separated string."""
    return ", ".join(str(name) for name in names)


def can_read(*tensors: Tensor) -> bool:
    """Tell whether the values of these tensors may be looked at.

    They may not while a graph is being captured or under vmap, where a tensor stands for many, nor without storage.
    Then checks on values are skipped.
    """
    return not (is_captured() or any(tensor.is_meta for tensor in tensors) or _under_vmap())


def is_captured() -> bool:
    """Tell whether a graph is being captured (torch.compile, torch.export, torch.jit.trace)."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]


def is_captured_or_transformed() -> bool:
    """Tell whether a graph is being captured or a function transformed by torch.func: both want torch's operations."""
    return is_captured() or torch._C._are_functorch_transforms_active()


def _under_vmap() -> bool:
    return any(level.key() == TransformType.Vmap for level in get_interpreter_stack() or ())


def check_tensor(name: str, value: object) -> None:
    """Refuse what is not a tensor.

    Raises:
        TypeError: naming the argument and what it is.
    """
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(value).__name__}.")
