"""What the configurations of all families have in common."""

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import wraps
from typing import Any, TypeVar, cast

import torch
from transformers import PreTrainedConfig

from encoders_shared.attention import read_backend
from encoders_shared.compat import StrictDataclassError, strict
from encoders_shared.errors import ConfigurationError, listed, suggestion
from encoders_shared.losses import check_problem_type
from encoders_shared.pooling import POOLINGS

ConfigClass = TypeVar("ConfigClass", bound=type)

DTYPES = ("float64", "float32", "bfloat16", "float16")
LABEL_FIELDS = ("num_labels", "id2label", "label2id")
MOST_LAYERS = 1_000
MOST_LABELS = 1_000_000
LEAST_MEMORY = 16 * 10**9
"""Bytes that a model may always ask for, so that a configuration doesn't depend on a small machine."""
LONGEST_INTEGER = 53
"""Bits of the largest whole number: products of a few still fit a float, sums an int64."""
_SETTERS = (  # of the class's own names, those that a configuration may come with
    "_attn_implementation",
    "_experts_implementation",
    "model_type",
    "name_or_path",
    "num_labels",
    "output_attentions",
    "torch_dtype",
)


def typed_fields(cls: ConfigClass) -> ConfigClass:
    """Make each annotated field of a configuration class refuse values of another type, with a `ConfigurationError`.

    The annotations must be real types: the module must not import annotations from __future__.
    """
    cls = strict(cls)
    for name, method in (("__init__", cls.__init__), ("__setattr__", _by_any_name(cls.__setattr__))):
        setattr(cls, name, _with_our_error(method))
    return cls


def _by_any_name(method: Callable[..., None]) -> Callable[..., None]:
    @wraps(method)
    def set_field(self, name: str, value: object) -> None:
        method(self, type(self).attribute_map.get(name, name), value)  # types are known by the fields' own names

    return set_field


def _with_our_error(method: Callable[..., None]) -> Callable[..., None]:
    @wraps(method)
    def translated(self, *args, **kwargs):
        try:
            method(self, *args, **kwargs)
        except StrictDataclassError as error:
            raise ConfigurationError(" ".join(str(error).split())) from error

    return translated


class EncoderConfig(PreTrainedConfig):
    """Configuration with checks across its fields.

    A family subclasses it with `typed_fields` and adds its own rules to `check`. Keys that the class does not know are
    kept, as published configurations carry them. The fields with a default here are transformers', whose types it
    doesn't check itself.
    """

    vocab_size: int
    pooling: str

    transformers_version: str | None = None
    architectures: list[str] | None = None
    output_hidden_states: bool | None = False
    return_dict: bool | None = True
    dtype: str | torch.dtype | None = None
    chunk_size_feed_forward: int = 0
    is_encoder_decoder: bool = False
    id2label: dict | None = None  # pyright: ignore[reportIncompatibleVariableOverride] - names may be numbers
    label2id: dict | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    problem_type: str | None = None  # pyright: ignore[reportIncompatibleVariableOverride] - `check` names the near one

    @property
    def output_attentions(self) -> bool | None:
        """Return the attention weights, whatever the backend: such calls run on the eager one."""
        return self._output_attentions

    @output_attentions.setter
    def output_attentions(self, value: bool | None) -> None:
        self._output_attentions = value

    @property
    def num_outputs(self) -> int:
        """Outputs of a classification head, one for each label."""
        return cast(int, self.num_labels)

    def __post_init__(self, **kwargs):
        self._check_keys(kwargs)
        if self.id2label is None and self.label2id:
            names = {number: name for name, number in self.label2id.items()}
            self.id2label = names  # pyright: ignore[reportIncompatibleVariableOverride] - as above
        _check_labels(self.id2label, kwargs.get("num_labels"))
        _check_dtype("dtype", self.dtype)
        _check_dtype("torch_dtype", kwargs.get("torch_dtype"))
        check_problem_type(self.problem_type)
        try:
            super().__post_init__(**kwargs)
        except ConfigurationError:
            raise
        except Exception as error:  # keys that transformers gives a meaning, which our models don't have
            raise ConfigurationError(
                f"{type(self).__name__} can't keep the values of {listed(kwargs) or 'its fields'}: {error}"
            ) from error
        self.check()

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any):
        """Read a configuration; labels given here, by number or by name, win over all that the file says of them.

        None for any of them, here or in the file, counts as not given.
        """
        labels = {name: kwargs.pop(name, None) for name in LABEL_FIELDS}
        given = {name: value for name, value in labels.items() if value is not None}
        kept = {
            name: value
            for name, value in config_dict.items()
            if name not in LABEL_FIELDS or (value is not None and not given)
        }
        return super().from_dict(kept | given, **kwargs)

    def to_diff_dict(self) -> dict[str, Any]:
        """Return what a file needs: the names of all labels too wherever label2id is there, which may lack some."""
        needed = super().to_diff_dict()
        if needed.get("label2id"):
            needed.setdefault("id2label", self.id2label)
        return needed

    def to_json_file(self, json_file_path: str | os.PathLike, use_diff: bool = True) -> None:
        """Write the configuration, unless it couldn't be read again; all ways of saving come through here.

        Raises:
            ConfigurationError: see `check`; nothing is written. Whether this machine has room doesn't matter.
        """
        with torch.device("meta"):
            self.from_dict(self.to_diff_dict() if use_diff else self.to_dict())
        super().to_json_file(json_file_path, use_diff=use_diff)

    def validate_architecture(self) -> None:
        """Leave out what transformers checks of keys that mean nothing here."""

    validate_layer_type = validate_architecture
    validate_output_attentions = validate_architecture  # weights are there whatever the backend

    def check(self) -> None:
        """Refuse values that contradict each other, and sizes that no machine has room for.

        Raises:
            ConfigurationError: naming the field, its value and what is allowed.
        """
        require_choice("pooling", self.pooling, POOLINGS)
        check_problem_type(self.problem_type)
        _check_dtype("dtype", self.dtype)
        self._check_backend()
        self._check_integers()
        for name in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"):
            require_at_least(name, getattr(self, name), 1)
        _check_labels(self.id2label, self.num_outputs)
        _check_same_labels(self.id2label or {}, self.label2id or {})
        if self.hidden_size % self.num_attention_heads:
            raise ConfigurationError(
                f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads {self.num_attention_heads}."
            )
        self._check_size()
        require_at_most("num_hidden_layers", self.num_hidden_layers, MOST_LAYERS)

    def count_parameters(self) -> int:
        """Estimate the parameters of the bare model; a family says them exactly.

        The embeddings, and in each layer four square matrices for attention and two for the feed-forward network
        (Kaplan et al. 2020, table 1).
        """
        width = self.hidden_size
        inner = getattr(self, "intermediate_size", 4 * width)
        return self.vocab_size * width + self.num_hidden_layers * (4 * width + 2 * inner) * width

    def _check_keys(self, kwargs: dict[str, Any]) -> None:
        """Refuse keys that would replace a part of the class, and one field under two names."""
        cls = type(self)
        defaults = {field.name: field.default for field in fields(cast(Any, cls))}
        for key, value in kwargs.items():
            name = cls.attribute_map.get(key)
            if name is not None and getattr(self, name) not in (defaults[name], value):
                raise ConfigurationError(
                    f"{key!r} and {name!r} are the same field, but {value!r} and {getattr(self, name)!r} were given; "
                    "pass one of them."
                )
            if name is None and hasattr(cls, key) and key not in _SETTERS:
                raise ConfigurationError(f"{cls.__name__} has no field {key!r}: the name is a part of its class.")

    def _check_backend(self) -> None:
        if not isinstance(self.output_attentions, bool | None):
            raise ConfigurationError(f"output_attentions is {self.output_attentions!r}; allowed: True, False, None.")
        if self._attn_implementation is not None:
            try:
                read_backend(str(self._attn_implementation))
            except ValueError as error:
                raise ConfigurationError(f"attn_implementation: {error}") from error

    def _integers(self) -> dict[str, int]:
        named = ((field.name, getattr(self, field.name)) for field in fields(cast(Any, self)))
        return {name: value for name, value in named if isinstance(value, int)}

    def _check_integers(self) -> None:
        for name, value in self._integers().items():
            if value.bit_length() > LONGEST_INTEGER:
                raise ConfigurationError(
                    f"{name} is a whole number of {value.bit_length()} bits; at most {LONGEST_INTEGER} are allowed."
                )

    def _check_size(self) -> None:
        """Refuse a model that this machine has no room for, before anything is allocated."""
        size, limit = 4 * self.count_parameters(), memory_limit()
        if size > limit and not torch.empty(0).is_meta:
            largest = sorted(self._integers().items(), key=lambda item: item[1], reverse=True)[:3]
            raise ConfigurationError(
                f"a model of this size takes {size / 1e9:,.0f} GB in float32; this machine has memory for "
                f"{limit / 1e9:,.0f} GB. The largest fields are "
                f"{listed(f'{name}={value:,}' for name, value in largest)}; make them smaller."
            )


def memory_limit() -> int:
    """Return how many bytes a model may take: the memory of this machine, and at least `LEAST_MEMORY`."""
    try:
        return max(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), LEAST_MEMORY)
    except (AttributeError, OSError, ValueError):  # not on every system
        return LEAST_MEMORY


def require_at_least(field: str, value: float, least: float) -> None:
    """Refuse a number below `least`."""
    if not value >= least:
        raise ConfigurationError(f"{field} is {value}; it must be at least {least}.")


def require_at_most(field: str, value: float, most: float) -> None:
    """Refuse a number above `most`."""
    if not value <= most:
        raise ConfigurationError(f"{field} is {value:,}; it must be at most {most:,}.")


def require_between(field: str, value: float, least: float, most: float) -> None:
    """Refuse a number outside `least` .. `most`."""
    if not least <= value <= most:
        raise ConfigurationError(f"{field} is {value}; it must be between {least} and {most}.")


def require_probability(field: str, value: float | None) -> None:
    """Refuse a number outside 0 .. 1."""
    if value is not None and not 0 <= value <= 1:
        raise ConfigurationError(f"{field} is {value}; a probability between 0 and 1 is needed.")


def require_choice(field: str, value: str, choices: Iterable[str]) -> None:
    """Refuse a name that is not among `choices`."""
    choices = list(choices)
    if value not in choices:
        raise ConfigurationError(f"{field} is {value!r}; allowed: {listed(choices)}.{suggestion(str(value), choices)}")


def require_token_id(field: str, value: int | None, vocab_size: int) -> None:
    """Refuse an id that is not in the vocabulary."""
    if value is not None and not 0 <= value < vocab_size:
        raise ConfigurationError(
            f"{field} is {value}; allowed: 0 .. {vocab_size - 1} (vocab_size is {vocab_size}), or None."
        )


def _check_labels(id2label: dict | None, num_labels: object) -> None:
    """Refuse labels that can't be numbered, and another number of them than there are names."""
    if num_labels is not None:
        if not isinstance(num_labels, int) or isinstance(num_labels, bool):
            raise ConfigurationError(f"num_labels is {num_labels!r}; a whole number of at least 1 is needed.")
        require_at_least("num_labels", num_labels, 1)
        require_at_most("num_labels", num_labels, MOST_LABELS)
    if id2label is None:
        return
    require_at_least("the number of labels in id2label", len(id2label), 1)
    for key in id2label:
        if isinstance(key, bool) or not isinstance(key, int | str) or not str(key).isdecimal():
            raise ConfigurationError(f"id2label (or label2id) has the id {key!r}; ids are whole numbers from 0 on.")
    if set(map(str, id2label)) != set(map(str, range(len(id2label)))):
        raise ConfigurationError(
            f"id2label (or label2id) has the ids {listed(list(id2label)[:10])}; its {len(id2label)} labels need the "
            f"ids 0 .. {len(id2label) - 1}, one for each output. Correct them, or pass num_labels alone."
        )
    if num_labels is not None and num_labels != len(id2label):
        raise ConfigurationError(
            f"num_labels is {num_labels}, but id2label names {len(id2label)} labels; pass one of them."
        )


def _check_same_labels(id2label: dict, label2id: dict) -> None:
    """Refuse a label that both know, with different numbers.

    In many published files label2id lacks labels, or has more names for one, or other letters, or still transformers'
    placeholders, LABEL_0 and so on. Names are compared in the form that JSON gives them: keys are strings there.
    """
    numbers: dict[str, list[str]] = {}
    for number, name in id2label.items():
        numbers.setdefault(_as_key(name), []).append(str(number))
    for name, number in label2id.items():
        there = numbers.get(_as_key(name))
        if there is not None and str(number) not in there:
            raise ConfigurationError(
                f"id2label and label2id contradict each other: label2id gives {name!r} the number {number!r}, but "
                f"id2label has it at {listed(there)}. Set label2id too, or set it to None; to load such a file, pass "
                "id2label alone."
            )


def _as_key(label: object) -> str:
    return label if isinstance(label, str) else json.dumps(label, default=str)


def _check_dtype(field: str, dtype: object) -> None:
    """Refuse what is not one of the number formats that models are made of."""
    name = str(dtype).removeprefix("torch.") if isinstance(dtype, torch.dtype) else dtype
    if name is not None and name not in DTYPES:
        raise ConfigurationError(f"{field} is {dtype!r}; allowed: {listed(DTYPES)}.{suggestion(str(dtype), DTYPES)}")
