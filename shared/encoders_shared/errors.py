"""What the error messages of the library have in common."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import torch
from torch import Tensor


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

    Checks on values are skipped while a graph is being captured or a function transformed, and for tensors without
    storage, where there are no values to check.
    """
    return not (is_captured() or any(tensor.is_meta for tensor in tensors))


def is_captured() -> bool:
    """Tell whether operations stand for more than these tensors.

    A graph is being captured (torch.compile, torch.export, torch.jit.trace), or a function transformed (torch.func).
    """
    return (
        torch.compiler.is_compiling()
        or torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]
        or torch._C._are_functorch_transforms_active()
    )


def check_tensor(name: str, value: object) -> None:
    """Refuse what is not a tensor.

    Raises:
        TypeError: naming the argument and what it is.
    """
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(value).__name__}.")
