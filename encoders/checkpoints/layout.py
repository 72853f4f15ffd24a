"""What a family says of the forms in which its weights were published."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from encoders.checkpoints.folder import CheckpointFolder
from encoders_shared.checkpoints import KeyTable


@dataclass(frozen=True)
class Completion:
    """What a checkpoint's configuration leaves open, decided.

    Attributes:
        fields: values for our configuration; they win over those of config.json, but not over the caller's.
        notes: where each came from, for the report.
        warning: what the user should know at once, or None.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warning: str | None = None


def nothing_open(folder: CheckpointFolder, fields: Mapping[str, Any]) -> Completion:
    """Leave the configuration as it is."""
    return Completion()


@dataclass(frozen=True)
class AddedRow:
    """One row of a published table that is added to every row of another.

    Attributes:
        to: our name of the table that takes it.
        table: published name of the table that it comes from, without a prefix.
        row: its number there.
    """

    to: str
    table: str
    row: int


@dataclass(frozen=True)
class Layout:
    """One form in which a family's weights were published.

    Attributes:
        name: what people call it.
        class_names: patterns of the class names in config.json, with * and ?.
        tensors: published names, without a prefix, that it must have; a * stands for one part between dots.
        keys: how it names its tensors.
        model_types: values of `model_type` that it goes by where nothing else tells.
        tensors_suffice: the tensors alone tell it, whatever config.json says or leaves out.
        complete: decides what config.json leaves open; given the folder, and the fields so far under our names.
        added_rows: tables that our models have no place for but whose effect they can carry.
    """

    name: str
    class_names: tuple[str, ...]
    tensors: tuple[str, ...]
    keys: KeyTable
    model_types: tuple[str, ...] = ()
    tensors_suffice: bool = False
    complete: Callable[[CheckpointFolder, Mapping[str, Any]], Completion] = nothing_open
    added_rows: tuple[AddedRow, ...] = ()


@dataclass(frozen=True)
class Stranger:
    """An architecture that is near enough to a family to be mistaken for it; it is recognised in order to be refused.

    Attributes:
        name: what people call it.
        class_names: patterns of its class names in config.json, with * and ?.
        tensors: regular expressions, searched for in the names of tensors; one match is enough.
        reason: why it can't be loaded; a clause that follows "it".
    """

    name: str
    class_names: tuple[str, ...]
    tensors: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Published:
    """A model in the form that a family's own code reads.

    Attributes:
        config: the content of config.json.
        extra_tensors: tensors that our models compute but that code expects to find, by name.
        with_tokenizer: the tokenizer's files go with it; otherwise that code has its vocabulary in itself.
    """

    config: Mapping[str, Any]
    extra_tensors: Mapping[str, Tensor] = field(default_factory=dict)
    with_tokenizer: bool = True
