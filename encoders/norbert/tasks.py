"""NorBERT with its heads: parts only; the forward passes are in `encoders_shared.tasks`.

A model with a head is its own bare model, without a prefix in the names of its parameters.
"""

from __future__ import annotations

from encoders.norbert.config import NorbertConfig
from encoders.norbert.encoder import NorbertTrunk
from encoders_shared.errors import ConfigurationError
from encoders_shared.heads import LTGHead, ReservedIds
from encoders_shared.tasks import (
    MaskedLM,
    MultipleChoice,
    QuestionAnswering,
    SequenceClassification,
    TokenClassification,
)


def head(config: NorbertConfig, outputs: int, dropout: float) -> LTGHead:
    """Return the head that all tasks use, with the sizes of a configuration."""
    return LTGHead(
        hidden_size=config.hidden_size, outputs=outputs, dropout=dropout, layer_norm_eps=config.layer_norm_eps
    )


def task_dropout(config: NorbertConfig) -> float:
    """Return the dropout of the task heads."""
    return config.hidden_dropout_prob if config.classifier_dropout is None else config.classifier_dropout


class NorbertForMaskedLM(MaskedLM, NorbertTrunk):
    """NorBERT that predicts masked words; the reserved ids score -inf."""

    head_parts = ("classifier", "reserved_ids")
    _tied_weights_keys = {"classifier.nonlinearity.5.weight": "embedding.word_embedding.weight"}

    def __init__(self, config: NorbertConfig):
        super().__init__(config)
        if config.num_reserved_ids >= config.vocab_size:
            raise ConfigurationError(
                f"num_reserved_ids {config.num_reserved_ids} leaves nothing to predict of a vocabulary of "
                f"{config.vocab_size}; set num_reserved_ids to the number of special tokens, or to 0."
            )
        self.classifier = head(config, config.vocab_size, config.hidden_dropout_prob)
        self.num_reserved_ids = config.num_reserved_ids
        self.reserved_ids = ReservedIds(config.num_reserved_ids)
        self.post_init()


class NorbertForSequenceClassification(SequenceClassification, NorbertTrunk):
    """NorBERT that classifies sequences or predicts numbers for them."""

    head_parts = ("head",)

    def __init__(self, config: NorbertConfig):
        super().__init__(config)
        self.head = head(config, config.num_outputs, task_dropout(config))
        self.post_init()


class NorbertForTokenClassification(TokenClassification, NorbertTrunk):
    """NorBERT that classifies tokens."""

    head_parts = ("head",)

    def __init__(self, config: NorbertConfig):
        super().__init__(config)
        self.head = head(config, config.num_outputs, task_dropout(config))
        self.post_init()


class NorbertForQuestionAnswering(QuestionAnswering, NorbertTrunk):
    """NorBERT that finds answers."""

    head_parts = ("head",)

    def __init__(self, config: NorbertConfig):
        super().__init__(config)
        self.head = head(config, 2, task_dropout(config))
        self.post_init()


class NorbertForMultipleChoice(MultipleChoice, NorbertTrunk):
    """NorBERT that chooses between sequences, scoring the first token of each; upstream scores every token."""

    head_parts = ("head",)

    def __init__(self, config: NorbertConfig):
        super().__init__(config)
        self.head = head(config, 1, task_dropout(config))
        self.post_init()
