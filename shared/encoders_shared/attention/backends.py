"""The backends, and the one place where "auto" is decided."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import torch
from torch import Tensor

from encoders_shared.attention.eager import eager
from encoders_shared.attention.flex import flex
from encoders_shared.attention.interface import AttentionInputs, AttentionSettings
from encoders_shared.attention.sdpa import jagged_sdpa, sdpa
from encoders_shared.attention.tiled import tiled
from encoders_shared.errors import is_captured_or_transformed

Backend = Callable[[AttentionInputs], tuple[Tensor, Tensor | None]]


def by_sequence(backend: Backend) -> Backend:
    """Let a backend that knows no packed rows work through one sequence by sequence."""

    @wraps(backend)
    def over_sequences(inputs: AttentionInputs) -> tuple[Tensor, Tensor | None]:
        if inputs.settings.lengths is None:
            return backend(inputs)
        return torch.cat([backend(one)[0] for one in inputs.of_sequences()], dim=2), None

    return over_sequences


def at_once_on_gpu(backend: Backend) -> Backend:
    """Leave packed rows on a GPU to one call for all their sequences, as far as torch has a kernel for it."""

    @wraps(backend)
    def chosen(inputs: AttentionInputs) -> tuple[Tensor, Tensor | None]:
        if inputs.settings.lengths is None or inputs.positions is not None or not inputs.query.is_cuda:
            return backend(inputs)
        return jagged_sdpa(inputs)

    return chosen


BACKENDS: dict[str, Backend] = {
    "eager": by_sequence(eager),
    "sdpa": at_once_on_gpu(by_sequence(sdpa)),
    "tiled": tiled,
    "flex": flex,
}


def choose(settings: AttentionSettings, device: torch.device, *, plain: bool) -> str:
    """Return the backend that a call runs on.

    Where a caller asks for weights, it is eager: no other backend has them. While a graph is captured, or a function
    transformed, tiles can't be cut, and sdpa takes their place. Beyond that "auto" means, as measured
    (docs/performance.md):

    - sdpa on a GPU, and for plain attention on a CPU: torch's own kernels are the best there are.
    - tiled on a CPU for attention with relative positions or dropout. There sdpa falls back to tensors of length x
      length, which are slow to make and large.

    Args:
        settings: what was asked for.
        device: where the tensors are.
        plain: there are neither relative positions nor dropout.
    """
    if settings.need_weights:
        return "eager"
    if settings.backend in ("auto", "tiled") and is_captured_or_transformed():
        return "sdpa"
    if settings.backend != "auto":
        return settings.backend
    return "tiled" if device.type == "cpu" and not plain else "sdpa"


def read_backend(implementation: str | None) -> str:
    """Return the backend that an `attn_implementation` of transformers stands for.

    "sdpa" is what transformers calls its default, whose kernel torch picks; here it is the same as "auto".

    Raises:
        ValueError: it stands for none.
    """
    if implementation in (None, "sdpa", "auto"):
        return "auto"
    if implementation not in BACKENDS:
        allowed = ", ".join(repr(name) for name in BACKENDS)
        raise ValueError(
            f'Specified `attn_implementation="{implementation}"` is not supported by these encoders; allowed: '
            f"'auto', {allowed}."
        )
    return implementation
