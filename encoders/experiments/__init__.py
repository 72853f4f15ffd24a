"""Experiments that swap encoders: `compare` trains several on the same task and reports how they do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from encoders.experiments.comparison import compare
    from encoders.experiments.results import Comparison

__all__ = ["Comparison", "compare"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, and say what to install where that is not possible."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from encoders.experiments.errors import require_extras

    require_extras()
    if name == "compare":
        from encoders.experiments.comparison import compare

        return compare
    from encoders.experiments.results import Comparison

    return Comparison


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
