"""What the configurations of all families have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TypeVar, cast

from transformers import PreTrainedConfig

from encoders_shared.compat import StrictDataclassError, strict
from encoders_shared.errors import ConfigurationError, listed, suggestion
from encoders_shared.losses import check_problem_type
from encoders_shared.pooling import POOLINGS

ConfigClass = TypeVar("ConfigClass", bound=type)


def typed_fields(cls: ConfigClass) -> ConfigClass:
    """Make each annotated field of a configuration class refuse values of another type, with a `ConfigurationError`.

    The annotations must be real types: the module must not import annotations from __future__.
    """
    cls = strict(cls)
    for name in ("__init__", "__setattr__"):
        setattr(cls, name, _with_our_error(getattr(cls, name)))
    return cls


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
    kept, as published configurations carry them.
    """

    vocab_size: int
    pooling: str

    @property
    def num_outputs(self) -> int:
        """Outputs of a classification head, one for each label."""
        return cast(int, self.num_labels)

    def __post_init__(self, **kwargs):
        super().__post_init__(**kwargs)
        self.check()

    def check(self) -> None:
        """Refuse values that contradict each other.

        Raises:
            ConfigurationError: naming the field, its value and what is allowed.
        """
        require_choice("pooling", self.pooling, POOLINGS)
        check_problem_type(self.problem_type)
        for name in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"):
            require_at_least(name, getattr(self, name), 1)
        require_at_least("num_labels", self.num_outputs, 1)
        if self.hidden_size % self.num_attention_heads:
            raise ConfigurationError(
                f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads {self.num_attention_heads}."
            )


def require_at_least(field: str, value: float, least: float) -> None:
    """Refuse a number below `least`."""
    if value < least:
        raise ConfigurationError(f"{field} is {value}; it must be at least {least}.")


def require_probability(field: str, value: float | None) -> None:
    """Refuse a number outside 0 .. 1."""
    if value is not None and not 0 <= value <= 1:
        raise ConfigurationError(f"{field} is {value}; a probability between 0 and 1 is needed.")


def require_choice(field: str, value: str, choices: Iterable[str]) -> None:
    """Refuse a name that is not among `choices`."""
    choices = list(choices)
    if value not in choices:
        raise ConfigurationError(f"{field} is {value!r}; allowed: {listed(choices)}.{suggestion(str(value), choices)}")
