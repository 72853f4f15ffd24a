"""A cursor over a HELM string, and the error that points into the string."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Element = TypeVar("Element")

QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
REPEAT = re.compile(r"'([0-9]{1,9})(?:-([0-9]{1,9}))?'")
RATIO = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?(?:-[0-9]{1,9}(?:\.[0-9]{1,9})?)?|\?")
SHOWN = 40  # characters on either side of the caret


class HELMSyntaxError(ValueError):
    """A HELM string that can't be read.

    Attributes:
        reason: what is wrong, and what is allowed.
        text: the whole string.
        position: the offset of the character that is wrong.
    """

    def __init__(self, reason: str, text: str, position: int):
        super().__init__(reason, text, position)
        self.reason, self.text, self.position = reason, text, position

    def __str__(self) -> str:
        start = max(0, self.position - SHOWN)
        line = "".join(c if c.isprintable() else "·" for c in self.text[start : self.position + SHOWN])
        return f"{self.reason} (position {self.position})\n  {line}\n  {' ' * (self.position - start)}^"


@dataclass(frozen=True)
class Span:
    """A part of the source: `source[start:end] == text`."""

    text: str
    start: int
    end: int


class Scanner:
    """Reads a string from left to right; each method leaves `position` behind what it has read."""

    def __init__(self, text: str):
        self.text = text
        self.position = 0

    def peek(self) -> str:
        """The next character, empty at the end."""
        return self.text[self.position : self.position + 1]

    def found(self) -> str:
        """The next character as error messages name it."""
        return repr(self.peek()) if self.peek() else "the end of the text"

    def span(self, start: int) -> dict[str, Any]:
        """The fields of the `Span` from `start` to the cursor."""
        return {"text": self.text[start : self.position], "start": start, "end": self.position}

    def error(self, reason: str, position: int | None = None) -> HELMSyntaxError:
        """The error to raise for what stands at `position`, by default at the cursor."""
        return HELMSyntaxError(reason, self.text, self.position if position is None else position)

    def take(self, literal: str) -> bool:
        """Read `literal` if it is next."""
        if not self.text.startswith(literal, self.position):
            return False
        self.position += len(literal)
        return True

    def expect(self, literal: str, place: str) -> None:
        """Read `literal`, which must be next; `place` tells the error where it belongs."""
        if not self.take(literal):
            raise self.error(f"expected {literal!r} {place}, found {self.found()}")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read what `pattern` matches here."""
        match = pattern.match(self.text, self.position)
        if match is not None:
            self.position = match.end()
        return match

    def bracketed(self) -> str:
        """Read from `[` to the `]` that closes it; give what is between.

        Inside, only brackets count: inline SMILES hold `$`, `|`, `.`, `;` and braces.
        """
        start, depth = self.position, 0
        for position in range(start, len(self.text)):
            depth += (self.text[position] == "[") - (self.text[position] == "]")
            if depth == 0:
                self.position = position + 1
                return self.text[start + 1 : position]
        raise self.error("unbalanced '[': the bracket that opens here is never closed")

    def note(self) -> str | None:
        """Read a note in double quotes, if there is one; a backslash escapes the next character."""
        if self.peek() != '"':
            return None
        match = self.match(QUOTED)
        if match is None:
            raise self.error("unbalanced '\"': the note that starts here is never closed")
        return match[1]

    def repeat(self) -> tuple[int, int]:
        """Read how often a monomer is repeated, `'3'` or `'2-5'`, if it is."""
        start = self.position
        if self.peek() != "'":
            return 1, 1
        match = self.match(REPEAT)
        if match is None:
            raise self.error("a repeat is a number or a range in single quotes, as in '3' or '2-5'")
        least, greatest = int(match[1]), int(match[2] or match[1])
        if least > greatest:
            raise self.error(f"the repeat {match[0]} runs backwards: write '{greatest}-{least}'", start)
        return least, greatest

    def ratio(self) -> str | None:
        """Read a share, `:2.5`, `:1-3` or `:?`, if there is one."""
        if not self.take(":"):
            return None
        match = self.match(RATIO)
        if match is None:
            raise self.error(f"expected a share behind ':': a number, a range or '?', found {self.found()}")
        return match[0]

    def listed(self, element: Callable[[], Element]) -> tuple[Element, ...]:
        """Read one or more elements, separated by `|`."""
        elements = [element()]
        while self.take("|"):
            elements.append(element())
        return tuple(elements)

    def parenthesised(self, element: Callable[[], Element], separators: str) -> tuple[list[Element], str]:
        """Read elements in parentheses, joined by the same one of `separators`; give them and the separator."""
        start, separator = self.position, ""
        self.expect("(", "before a group")
        elements = [element()]
        while not self.take(")"):
            if not self.peek():
                raise self.error("unbalanced '(': the group that opens here is never closed", start)
            allowed = separator or separators
            if self.peek() not in allowed:
                raise self.error(
                    f"expected ')' or {' or '.join(map(repr, allowed))} in the group that opens at position {start} "
                    f"(the same throughout), found {self.found()}"
                )
            separator = self.peek()
            self.position += 1
            elements.append(element())
        return elements, separator
