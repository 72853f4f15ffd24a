"""From a published config.json to our configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

from encoders.checkpoints.folder import CheckpointFolder
from encoders.checkpoints.layout import Completion
from encoders.checkpoints.recognition import Recognised
from encoders.checkpoints.weights import Weights
from encoders_shared.checkpoints import CheckpointError
from encoders_shared.config import LABEL_FIELDS, EncoderConfig
from encoders_shared.errors import ConfigurationError

_LEFT_OUT = (  # never followed, or said anew by the model that is built
    "_attn_implementation",
    "_name_or_path",
    "architectures",
    "attn_implementation",
    "auto_map",
    "dtype",
    "model_type",
    "torch_dtype",
    "transformers_version",
)
_PROPERTIES = ("num_labels", "output_attentions")
SIZE_LIMIT = 4096
"""Numbers up to this are never absurd, however small the tensors are."""


def read_config(
    folder: CheckpointFolder, recognised: Recognised, weights: Weights, overrides: Mapping[str, Any]
) -> tuple[EncoderConfig, Completion]:
    """Return the configuration of a checkpoint, and what had to be decided for it.

    Keys that our configuration has no field for are kept as they are, unless they would replace a part of its class.

    Args:
        folder: where config.json is.
        recognised: what the checkpoint is.
        weights: its tensors; their sizes bound those of the configuration.
        overrides: fields from the caller, which win.

    Raises:
        CheckpointError: config.json contradicts itself, or asks for much more than the files hold.
        ConfigurationError: the overrides do.
    """
    config_class, layout = recognised.family.config_class, recognised.layout
    overrides = {
        name: value for name, value in overrides.items() if value is not None or name not in LABEL_FIELDS
    }  # None gives no labels
    fields = {
        config_class.attribute_map.get(name, name): value
        for name, value in folder.config.items()
        if name not in _LEFT_OUT and _can_be_set(config_class, name)
    }
    if any(name in overrides for name in LABEL_FIELDS):
        fields = {name: value for name, value in fields.items() if name not in LABEL_FIELDS}
    fields |= overrides
    completion = layout.complete(folder, fields)
    own = {*_own_fields(config_class), *_PROPERTIES} - overrides.keys()
    _refuse_absurd_sizes(folder, {name: value for name, value in fields.items() if name in own}, weights)
    fields = {**fields, **completion.fields, **overrides}
    try:
        config = config_class(**fields)
    except Exception as error:  # transformers' own fields are not checked before they are used
        if overrides and isinstance(error, ConfigurationError):
            raise
        raise CheckpointError(f"{folder.path / 'config.json'} can't be used: {error}") from error
    config.name_or_path = folder.source
    return config, completion


def unknown_keys(folder: CheckpointFolder, config_class: type[EncoderConfig]) -> tuple[str, ...]:
    """Return the keys of config.json that our configuration has no field for."""
    known = {*_own_fields(config_class), *config_class.attribute_map, *_LEFT_OUT, *_PROPERTIES}
    return tuple(name for name in folder.config if name not in known)


def _own_fields(config_class: type[EncoderConfig]) -> set[str]:
    return {field.name for field in dataclasses.fields(cast(Any, config_class))}


def _can_be_set(config_class: type[EncoderConfig], name: str) -> bool:
    return name in _own_fields(config_class) or name in _PROPERTIES or not hasattr(config_class, name)


def _refuse_absurd_sizes(folder: CheckpointFolder, fields: Mapping[str, Any], weights: Weights) -> None:
    """Refuse numbers that the files can't account for, before anything of that size is made."""
    shapes = [facts.shape for facts in weights.facts.values() if 0 not in facts.shape]
    longest = max((size for shape in shapes for size in shape), default=0)
    for name, value in fields.items():
        if isinstance(value, int) and value > max(longest, SIZE_LIMIT):
            raise CheckpointError(
                f"{folder.path}: the configuration asks for {name}={value:,}, but no tensor of the files is longer "
                f"than {longest:,}. At that size a single table can take {4 * value * longest / 1e9:,.1f} GB."
            )
    for name, value in fields.items():
        if name.endswith("layers") and isinstance(value, int) and value > len(weights.facts):
            raise CheckpointError(
                f"{folder.path}: the configuration asks for {name}={value:,}, but the files hold only "
                f"{len(weights.facts):,} tensors."
            )
