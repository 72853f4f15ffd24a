"""The names of tensors in published files: from theirs to ours, and back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

_WRAPPERS = re.compile(r"^(?:module\.)+|_orig_mod\.")  # DistributedDataParallel; torch.compile, at any depth


class CheckpointError(ValueError):
    """A checkpoint that can't be loaded; the message says what it is and why."""


@dataclass(frozen=True)
class KeyTable:
    """How one published layout names its tensors.

    Our names here are those of the bare model, without the prefix that a model with a head puts before them, and those
    of the heads as they are.

    Attributes:
        prefixes: what published heads put before the names of the bare model, such as "norbert3.".
        renames: pairs of a published name and ours, in which a * stands for one part between dots. Without pairs the
            names are the same; with pairs, what none of them names has no place in our models.
        spellings: pairs of an ending in older files and the ending in newer ones.
        ignored: regular expressions for tensors that are computed here or never used, searched for in their names.
    """

    prefixes: tuple[str, ...] = ()
    renames: tuple[tuple[str, str], ...] = ()
    spellings: tuple[tuple[str, str], ...] = ()
    ignored: tuple[str, ...] = ()

    def plain(self, name: str) -> str:
        """Return a published name without wrappers, prefix and old spelling."""
        name = _WRAPPERS.sub("", name)
        prefix = next((prefix for prefix in self.prefixes if name.startswith(prefix)), "")
        name = name.removeprefix(prefix)
        for old, new in self.spellings:
            if name.endswith(old):
                name = name.removesuffix(old) + new
        return name

    def ignores(self, name: str) -> bool:
        """Tell whether a published tensor is left out on purpose."""
        return any(re.search(pattern, name) for pattern in self.ignored)

    def ours(self, name: str) -> str | None:
        """Return our name of a published tensor, None if there is no place for it."""
        return _rename(self.plain(name), self._forth) if self.renames else self.plain(name)

    def published(self, name: str) -> str:
        """Return the published name of one of our tensors, without a prefix."""
        renamed = _rename(name, self._back) if self.renames else name
        return name if renamed is None else renamed

    @cached_property
    def _forth(self) -> list[tuple[re.Pattern[str], str]]:
        return [_rule(published, ours) for published, ours in self.renames]

    @cached_property
    def _back(self) -> list[tuple[re.Pattern[str], str]]:
        return [_rule(ours, published) for published, ours in self.renames]


def matches_pattern(name: str, pattern: str) -> bool:
    """Tell whether a name fits a pattern in which a * stands for one part between dots."""
    return _rule(pattern, "")[0].fullmatch(name) is not None


def _rule(source: str, target: str) -> tuple[re.Pattern[str], str]:
    """Return a pattern and a template that re.Match.expand fills: the n-th * stands for the n-th group."""
    parts = target.split("*")
    template = "".join(rf"{part}\{number}" for number, part in enumerate(parts[:-1], start=1)) + parts[-1]
    return re.compile(re.escape(source).replace(r"\*", r"([^.]+)")), template


def _rename(name: str, rules: Iterable[tuple[re.Pattern[str], str]]) -> str | None:
    matches = ((pattern.fullmatch(name), template) for pattern, template in rules)
    return next((match.expand(template) for match, template in matches if match), None)
