"""HELM-BERT with its heads: parts only; the forward passes are in `encoders_shared.tasks`."""

from __future__ import annotations

import warnings

from torch import nn

from encoders.helmbert.config import HELMBertConfig
from encoders.helmbert.encoder import HELMBertModel, HELMBertPreTrainedModel
from encoders_shared.dropout import Dropout
from encoders_shared.heads import SkipMLPHead, TransformHead
from encoders_shared.linear import Linear
from encoders_shared.tasks import (
    MaskedLM,
    MultipleChoice,
    QuestionAnswering,
    SequenceClassification,
    TokenClassification,
)


class HELMBertForMaskedLM(MaskedLM, HELMBertPreTrainedModel):
    """HELM-BERT that predicts masked tokens, with the enhanced mask decoder unless `use_emd=False` is passed."""

    head_parts = ("lm_head",)
    forward_options = ("use_emd",)
    encode_defaults = {"use_emd": True}
    _tied_weights_keys = {"lm_head.decoder.weight": "helmbert.embeddings.word_embeddings.weight"}

    def __init__(self, config: HELMBertConfig):
        super().__init__(config)
        if config.num_hidden_layers < 2:
            warnings.warn(
                "a HELM-BERT with num_hidden_layers=1 has no enhanced mask decoder (it needs 2): the states of the "
                "only layer are used, as in the published code.",
                stacklevel=2,
            )
        self.helmbert = HELMBertModel(config)
        self.lm_head = TransformHead(hidden_size=config.hidden_size, outputs=config.vocab_size)
        self.post_init()


class HELMBertForSequenceClassification(SequenceClassification, HELMBertPreTrainedModel):
    """HELM-BERT that classifies peptides or predicts numbers for them."""

    head_parts = ("dropout", "classifier")

    def __init__(self, config: HELMBertConfig):
        super().__init__(config)
        self.helmbert = HELMBertModel(config)
        if config.classifier_num_layers:
            self.dropout = nn.Identity()
            self.classifier = SkipMLPHead(
                hidden_size=config.hidden_size,
                outputs=config.num_outputs,
                layers=config.classifier_num_layers,
                dropout=config.classifier_dropout,
            )
        else:
            self.dropout = Dropout(config.classifier_dropout)
            self.classifier = Linear(config.hidden_size, config.num_outputs)
        self.post_init()


class HELMBertForTokenClassification(TokenClassification, HELMBertPreTrainedModel):
    """HELM-BERT that classifies tokens."""

    head_parts = ("dropout", "classifier")

    def __init__(self, config: HELMBertConfig):
        super().__init__(config)
        self.helmbert = HELMBertModel(config)
        self.dropout = Dropout(config.classifier_dropout)
        self.classifier = Linear(config.hidden_size, config.num_outputs)
        self.post_init()


class HELMBertForQuestionAnswering(QuestionAnswering, HELMBertPreTrainedModel):
    """HELM-BERT that finds spans."""

    head_parts = ("dropout", "qa_outputs")

    def __init__(self, config: HELMBertConfig):
        super().__init__(config)
        self.helmbert = HELMBertModel(config)
        self.dropout = Dropout(config.classifier_dropout)
        self.qa_outputs = Linear(config.hidden_size, 2)
        self.post_init()


class HELMBertForMultipleChoice(MultipleChoice, HELMBertPreTrainedModel):
    """HELM-BERT that chooses between sequences."""

    head_parts = ("dropout", "classifier")

    def __init__(self, config: HELMBertConfig):
        super().__init__(config)
        self.helmbert = HELMBertModel(config)
        self.dropout = Dropout(config.classifier_dropout)
        self.classifier = Linear(config.hidden_size, 1)
        self.post_init()
