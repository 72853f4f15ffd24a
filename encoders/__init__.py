"""Transformer encoders under one contract: create by name, swap, compare, trust the numbers."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from encoders.agreement import ParityReport, parity
    from encoders.cards import EncoderCard
    from encoders.checkpoints.report import LoadReport
    from encoders.family import TASKS
    from encoders.loading import load, load_tokenizer
    from encoders.registry import card, create, list_encoders, register_family
    from encoders.swap import SwapReport, swap_report
    from encoders.tokenization import train_tokenizer
    from encoders_shared.checkpoints import CheckpointError
    from encoders_shared.errors import ConfigurationError

__version__ = "0.1.0.dev0"

__all__ = [
    "TASKS",
    "CheckpointError",
    "ConfigurationError",
    "EncoderCard",
    "LoadReport",
    "ParityReport",
    "SwapReport",
    "card",
    "create",
    "list_encoders",
    "load",
    "load_tokenizer",
    "parity",
    "register_family",
    "swap_report",
    "train_tokenizer",
]

_HOMES = {
    "TASKS": "encoders.family",
    "CheckpointError": "encoders_shared.checkpoints",
    "ConfigurationError": "encoders_shared.errors",
    "EncoderCard": "encoders.cards",
    "LoadReport": "encoders.checkpoints.report",
    "ParityReport": "encoders.agreement",
    "SwapReport": "encoders.swap",
    "card": "encoders.registry",
    "create": "encoders.registry",
    "list_encoders": "encoders.registry",
    "load": "encoders.loading",
    "load_tokenizer": "encoders.loading",
    "parity": "encoders.agreement",
    "register_family": "encoders.registry",
    "swap_report": "encoders.swap",
    "train_tokenizer": "encoders.tokenization",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import encoders` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
