"""Encoders by name."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from encoders.cards import EncoderCard, make_card
from encoders.family import TASKS, Family
from encoders_shared.config import EncoderConfig
from encoders_shared.errors import ConfigurationError, listed, suggestion
from encoders_shared.model import EncoderPreTrainedModel

_modules = {"helmbert": "encoders.helmbert", "norbert": "encoders.norbert", "distilbert": "encoders.distilbert"}


def register_family(name: str, module: str) -> None:
    """Add a family of your own.

    Args:
        name: the family's name.
        module: path of a module with a `FAMILY`; it is imported when the family is first needed.

    Raises:
        ValueError: the name is taken by another module.
    """
    if _modules.setdefault(name, module) != module:
        raise ValueError(f"the family {name!r} is already registered, by {_modules[name]}.")


def families() -> dict[str, Family]:
    """Import and return all families, by name."""
    return {name: importlib.import_module(module).FAMILY for name, module in _modules.items()}


def list_encoders(pattern: str | None = None, *, family: str | None = None) -> list[str]:
    """List the names of encoders.

    Args:
        pattern: with the wildcards * and ?, as in "norbert3-*"; None lists all.
        family: list this family alone.

    Raises:
        ValueError: there is no such family.
    """
    known = families()
    if family is not None and family not in known:
        raise ValueError(f"unknown family {family!r}; known: {listed(known)}.{suggestion(family, known)}")
    wanted = known.values() if family is None else [known[family]]
    names = [name for one in wanted for name in one.presets]
    return names if pattern is None else [name for name in names if fnmatchcase(name, pattern)]


def card(name: str) -> EncoderCard:
    """Return the facts of an encoder.

    Raises:
        ValueError: there is no encoder of this name.
    """
    return make_card(name, family_of(name))


def create(name: str, *, task: str | None = None, **overrides: Any) -> EncoderPreTrainedModel:
    """Build an encoder with fresh weights.

    Args:
        name: a name from `list_encoders`.
        task: a name from `encoders.TASKS`, or None for the bare model.
        **overrides: fields of its configuration, such as `num_labels`, `pooling` or `vocab_size`.

    Raises:
        ValueError: the name, the task or a field is unknown, or a value is not allowed.
    """
    family = family_of(name)
    config = family.presets[name].config()
    check_task(task)
    return family.tasks[task](override(config, overrides))


def family_of(name: str) -> Family:
    """Return the family of a named encoder.

    Raises:
        ValueError: there is no encoder of this name.
    """
    for family in families().values():
        if name in family.presets:
            return family
    names = list_encoders()
    raise ValueError(f"unknown encoder {name!r}.{suggestion(name, names)} Known: {listed(names)}.")


def check_task(task: str | None) -> None:
    """Refuse a task that there is no model for.

    Raises:
        ValueError: naming the tasks there are.
    """
    if task is not None and task not in TASKS:
        raise ValueError(
            f"unknown task {task!r}.{suggestion(task, TASKS)} Known: {listed(TASKS)}, or None for the bare model."
        )


def override(config: EncoderConfig, overrides: Mapping[str, Any]) -> EncoderConfig:
    """Return a copy of a configuration with other values in some fields.

    Raises:
        ConfigurationError: a field does not exist, or a value is not allowed.
    """
    fields = {name: getattr(config, name) for name in _own_fields(type(config))}
    return type(config)(**{**fields, **checked_fields(type(config), overrides)})


def checked_fields(config_class: type[EncoderConfig], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields for a configuration under its own names for them.

    Raises:
        ConfigurationError: a field does not exist, or is given under two names.
    """
    allowed = sorted({*_own_fields(config_class), *config_class.attribute_map, *_COMMON_FIELDS})
    fields, names = {}, {}
    for name, value in given.items():
        if name not in allowed:
            raise ConfigurationError(
                f"{config_class.__name__} has no field {name!r}.{suggestion(name, allowed)} Fields: {listed(allowed)}."
            )
        field = config_class.attribute_map.get(name, name)
        if field in fields:
            raise ConfigurationError(f"{name!r} and {names[field]!r} are the same field; pass one of them.")
        names[field], fields[field] = name, value
    return fields


def _own_fields(config_class: type[EncoderConfig]) -> list[str]:
    return [name for name in config_class.__annotations__ if name not in ("model_type", "attribute_map")]


_COMMON_FIELDS = (
    "attn_implementation",
    "dtype",
    "id2label",
    "label2id",
    "num_labels",
    "output_attentions",
    "output_hidden_states",
    "problem_type",
    "return_dict",
)
