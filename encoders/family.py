"""How a family of encoders presents itself to the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import cast

from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from encoders.checkpoints.layout import Layout, Published, Stranger
from encoders_shared.config import EncoderConfig
from encoders_shared.model import EncoderPreTrainedModel

AUTO_CLASSES = MappingProxyType(
    {
        None: AutoModel,
        "masked-lm": AutoModelForMaskedLM,
        "sequence-classification": AutoModelForSequenceClassification,
        "token-classification": AutoModelForTokenClassification,
        "question-answering": AutoModelForQuestionAnswering,
        "multiple-choice": AutoModelForMultipleChoice,
    }
)
TASKS = tuple(task for task in AUTO_CLASSES if task is not None)


@dataclass(frozen=True)
class Preset:
    """A named size.

    Attributes:
        config: returns the configuration.
        summary: one line for the list of encoders.
        languages: what it was made for.
        checkpoint: where its weights are published, or None if there are none (nano sizes).
        licence: licence of these weights.
    """

    config: Callable[[], EncoderConfig]
    summary: str
    languages: str
    checkpoint: str | None = None
    licence: str | None = None


@dataclass(frozen=True)
class Family:
    """One architecture with its tasks and sizes.

    Attributes:
        name: short name, lower case.
        tasks: the model class of each task; None stands for the bare model. All of `TASKS` must be there.
        presets: the named sizes.
        paper: where the architecture is described.
        positions: what kind of positions it has.
        position_ids: what passing them does.
        padding: on which sides padding is harmless.
        maximum_length: from a configuration and a task (None: the bare model) to the longest sequence, or None for any.
        beyond_maximum: what happens to, or can be done about, longer sequences.
        notes: what else a person should know before using it.
        tokenizer_class: what AutoTokenizer should load for it.
        train_tokenizer: from texts, a vocabulary size and a least frequency; None if the vocabulary is fixed.
        layouts: the forms in which its weights were published; by default the one that its models save.
        strangers: architectures that could be mistaken for it and are refused.
        publish: writes a model in the form that the family's own published code reads, or None if there is none.
    """

    name: str
    tasks: Mapping[str | None, type[EncoderPreTrainedModel]]
    presets: Mapping[str, Preset]
    paper: str
    positions: str
    position_ids: str
    padding: str
    maximum_length: Callable[[EncoderConfig, str | None], int | None]
    beyond_maximum: str
    notes: tuple[str, ...] = ()
    tokenizer_class: type[PreTrainedTokenizerBase] | None = field(default=None)
    train_tokenizer: Callable[[Iterable[str], int, int], PreTrainedTokenizerFast] | None = None
    layouts: tuple[Layout, ...] = ()
    strangers: tuple[Stranger, ...] = ()
    publish: Callable[[EncoderPreTrainedModel], Published] | None = None

    @property
    def config_class(self) -> type[EncoderConfig]:
        """The configuration class of all its models."""
        return cast(type[EncoderConfig], self.tasks[None].config_class)

    def register_with_transformers(self) -> None:
        """Tell transformers' Auto classes about this family.

        A model type that transformers has a class of its own for stays with that class; there, only configurations of
        our class lead to our models.
        """
        config_class = self.config_class
        if config_class.model_type not in CONFIG_MAPPING:
            AutoConfig.register(config_class.model_type, config_class)
            if self.tokenizer_class is not None:
                AutoTokenizer.register(config_class, fast_tokenizer_class=self.tokenizer_class)
        for task, auto_class in AUTO_CLASSES.items():
            auto_class.register(config_class, self.tasks[task], exist_ok=True)
