"""Which family, and which of its published layouts, does a checkpoint have?

Evidence in this order: the class names in `architectures`, those in `auto_map`, the names of the tensors, `model_type`.
Class names are only read, nothing is looked up by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from encoders.checkpoints.layout import Layout
from encoders.family import Family
from encoders.registry import families
from encoders_shared.checkpoints import CheckpointError, KeyTable, matches_pattern
from encoders_shared.errors import listed


@dataclass(frozen=True)
class Recognised:
    """What a checkpoint was found to be.

    Attributes:
        family: whose weights these are.
        layout: how they were published.
        class_names: the class names that config.json mentions, `architectures` first.
        evidence: what it was recognised by.
    """

    family: Family
    layout: Layout
    class_names: tuple[str, ...]
    evidence: str


def recognise(source: str, config: dict[str, Any], tensors: Iterable[str]) -> Recognised:
    """Tell what a checkpoint is.

    Args:
        source: what to call it in messages.
        config: the content of its config.json.
        tensors: the published names of its tensors.

    Raises:
        CheckpointError: it is of no family here, or of a sibling that can't be loaded; says which, and why.
    """
    architectures, mapped = _architectures(config), _mapped_classes(config)
    names = (*architectures, *mapped)
    tensors = list(tensors)
    _refuse_strangers(source, names, tensors)
    candidates = [
        (family, layout) for family, layout in _all_layouts() if _has_all(layout.tensors, layout.keys, tensors)
    ]
    for evidence, fits in (
        ("architectures", lambda layout: _names_fit(architectures, layout.class_names)),
        ("auto_map", lambda layout: _names_fit(mapped, layout.class_names)),
        ("tensor names", lambda layout: layout.tensors_suffice),
        ("model_type", lambda layout: not names and config.get("model_type") in layout.model_types),
    ):
        for family, layout in candidates:
            if fits(layout):
                return Recognised(family, layout, names, evidence)
    says = f"class names {listed(names)}" if names else "no class names"
    raise CheckpointError(
        f"{source} is of no family here: config.json has {says} and model_type {config.get('model_type')!r}, and its "
        f"{len(tensors)} tensors begin with {listed(sorted(tensors)[:3])}. These can be loaded: "
        f"{listed(f'{layout.name} ({family.name})' for family, layout in _all_layouts())}."
    )


def layouts_of(family: Family) -> tuple[Layout, ...]:
    """Return a family's layouts; a family that declares none has the one that it saves."""
    if family.layouts:
        return family.layouts
    bare = family.tasks[None]
    return (
        Layout(
            name=family.name,
            class_names=tuple(cls.__name__ for cls in family.tasks.values()),
            tensors=(),
            keys=KeyTable(prefixes=(f"{bare.base_model_prefix}.",)),
            model_types=(family.config_class.model_type,),
        ),
    )


def _all_layouts() -> Iterator[tuple[Family, Layout]]:
    for family in families().values():
        for layout in layouts_of(family):
            yield family, layout


def _refuse_strangers(source: str, names: tuple[str, ...], tensors: list[str]) -> None:
    for family in families().values():
        for stranger in family.strangers:
            pattern = re.compile("|".join(stranger.tensors))
            sign = next(filter(pattern.search, tensors), None) or next(
                (name for name in names if _names_fit((name,), stranger.class_names)), None
            )
            if sign is not None:
                raise CheckpointError(
                    f"{source} is {stranger.name} (seen by {sign!r}), which can't be loaded: it {stranger.reason}."
                )


def _has_all(patterns: tuple[str, ...], keys: KeyTable, tensors: list[str]) -> bool:
    plain = [keys.plain(name) for name in tensors]
    return all(any(matches_pattern(name, pattern) for name in plain) for pattern in patterns)


def _names_fit(names: tuple[str, ...], patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def _architectures(config: dict[str, Any]) -> tuple[str, ...]:
    given = config.get("architectures")
    return tuple(name for name in given if isinstance(name, str)) if isinstance(given, list) else ()


def _mapped_classes(config: dict[str, Any]) -> tuple[str, ...]:
    """Class names of `auto_map`, whose values look like "modeling_x.XForMaskedLM" or "owner/name--modeling_x.X"."""
    mapped = config.get("auto_map")
    values = mapped.values() if isinstance(mapped, dict) else ()
    return tuple(value.rpartition(".")[2] for value in values if isinstance(value, str))
