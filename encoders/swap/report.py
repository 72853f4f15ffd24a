"""What changes when one encoder is replaced by another, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

Value = str | int | float | dict[str, str] | None

_INDENT = 6


@dataclass(frozen=True)
class SwapLine:
    """One point in which two encoders may differ.

    Attributes:
        topic: what it is about; numbers have their unit here.
        a: what holds for the first; None if it isn't known.
        b: what holds for the second.
        action: what to do because of it; None if there is nothing to do.
    """

    topic: str
    a: Value
    b: Value
    action: str | None = None

    def rows(self) -> list[tuple[str, str]]:
        """Return it as text: what is looked at, and how it changes; a row for each key where the values have keys."""
        if not (isinstance(self.a, dict) and isinstance(self.b, dict)):
            return [(self.topic, _change(self.a, self.b))]
        keys = dict.fromkeys((*self.a, *self.b))
        if not keys:
            return [(self.topic, "none")]
        parts = [(f"- {key}", _change(self.a.get(key, "none"), self.b.get(key, "none"))) for key in keys]
        return [(self.topic, ""), *parts]


@dataclass(frozen=True)
class SwapReport:
    """What changes when one encoder is replaced by another.

    Attributes:
        a: the encoder that is replaced, as it was given.
        b: the one that takes its place.
        lines: the points.
    """

    a: str
    b: str
    lines: tuple[SwapLine, ...]

    @property
    def actions(self) -> tuple[SwapLine, ...]:
        """The points that ask for something to be done."""
        return tuple(line for line in self.lines if line.action is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data, ready for JSON."""
        return asdict(self) | {"lines": [asdict(line) for line in self.lines]}

    def __str__(self) -> str:
        rows = {line.topic: line.rows() for line in self.lines}
        width = 2 + max(len(label) for line in rows.values() for label, _ in line)

        def shown(line: SwapLine) -> list[str]:
            return [f"  {label:<{width}}{change}".rstrip() for label, change in rows[line.topic]]

        todo, rest = [], []
        for line in self.lines:
            if line.action is None:
                rest += shown(line)
            else:
                todo += [*shown(line), f"{'':<{_INDENT}}action: {line.action}"]
        title = f"{self.a}  ->  {self.b}: {len(self.actions)} of {len(self.lines)} points need action"
        return "\n".join([title, "", *todo, "", "nothing to do", *rest])


def _change(a: Value, b: Value) -> str:
    first, second = _readable(a), _readable(b)
    return first if first == second else f"{first}  ->  {second}"


def _readable(value: Value) -> str:
    if value is None:
        return "not known"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)
