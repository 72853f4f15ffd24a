"""DistilBERT with its heads: parts only; the forward passes are in `encoders_shared.tasks`."""

from __future__ import annotations

from torch import nn
from transformers.activations import get_activation

from encoders.distilbert.config import DistilBertConfig
from encoders.distilbert.encoder import LAYER_NORM_EPS, DistilBertModel, DistilBertPreTrainedModel
from encoders_shared.dropout import Dropout
from encoders_shared.linear import Linear
from encoders_shared.tasks import (
    MaskedLM,
    MultipleChoice,
    QuestionAnswering,
    SequenceClassification,
    TokenClassification,
)


class DistilBertForMaskedLM(MaskedLM, DistilBertPreTrainedModel):
    """DistilBERT that predicts masked words."""

    head_parts = ("vocab_transform", "activation", "vocab_layer_norm", "vocab_projector")
    _tied_weights_keys = {"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"}

    def __init__(self, config: DistilBertConfig):
        super().__init__(config)
        self.distilbert = DistilBertModel(config)
        self.vocab_transform = Linear(config.dim, config.dim)
        self.activation = get_activation(config.activation)
        self.vocab_layer_norm = nn.LayerNorm(config.dim, eps=LAYER_NORM_EPS)
        self.vocab_projector = Linear(config.dim, config.vocab_size)
        self.post_init()


class DistilBertForSequenceClassification(SequenceClassification, DistilBertPreTrainedModel):
    """DistilBERT that classifies sequences or predicts numbers for them."""

    head_parts = ("pre_classifier", "activation", "dropout", "classifier")

    def __init__(self, config: DistilBertConfig):
        super().__init__(config)
        self.distilbert = DistilBertModel(config)
        self.pre_classifier = Linear(config.dim, config.dim)
        self.activation = nn.ReLU()
        self.dropout = Dropout(config.seq_classif_dropout)
        self.classifier = Linear(config.dim, config.num_outputs)
        self.post_init()


class DistilBertForTokenClassification(TokenClassification, DistilBertPreTrainedModel):
    """DistilBERT that classifies tokens."""

    head_parts = ("dropout", "classifier")

    def __init__(self, config: DistilBertConfig):
        super().__init__(config)
        self.distilbert = DistilBertModel(config)
        self.dropout = Dropout(config.dropout)
        self.classifier = Linear(config.dim, config.num_outputs)
        self.post_init()


class DistilBertForQuestionAnswering(QuestionAnswering, DistilBertPreTrainedModel):
    """DistilBERT that finds answers."""

    head_parts = ("dropout", "qa_outputs")

    def __init__(self, config: DistilBertConfig):
        super().__init__(config)
        self.distilbert = DistilBertModel(config)
        self.dropout = Dropout(config.qa_dropout)
        self.qa_outputs = Linear(config.dim, 2)
        self.post_init()


class DistilBertForMultipleChoice(MultipleChoice, DistilBertPreTrainedModel):
    """DistilBERT that chooses between sequences."""

    head_parts = ("pre_classifier", "activation", "dropout", "classifier")

    def __init__(self, config: DistilBertConfig):
        super().__init__(config)
        self.distilbert = DistilBertModel(config)
        self.pre_classifier = Linear(config.dim, config.dim)
        self.activation = nn.ReLU()
        self.dropout = Dropout(config.seq_classif_dropout)
        self.classifier = Linear(config.dim, 1)
        self.post_init()
