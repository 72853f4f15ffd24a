"""DistilBERT (Sanh et al. 2019)."""

from encoders.distilbert.checkpoints import LAYOUTS, publish
from encoders.distilbert.config import DistilBertConfig
from encoders.distilbert.encoder import DistilBertModel, DistilBertPreTrainedModel
from encoders.distilbert.presets import PRESETS
from encoders.distilbert.tasks import (
    DistilBertForMaskedLM,
    DistilBertForMultipleChoice,
    DistilBertForQuestionAnswering,
    DistilBertForSequenceClassification,
    DistilBertForTokenClassification,
)
from encoders.distilbert.tokenizer import train_tokenizer
from encoders.family import Family

FAMILY = Family(
    name="distilbert",
    tasks={
        None: DistilBertModel,
        "masked-lm": DistilBertForMaskedLM,
        "sequence-classification": DistilBertForSequenceClassification,
        "token-classification": DistilBertForTokenClassification,
        "question-answering": DistilBertForQuestionAnswering,
        "multiple-choice": DistilBertForMultipleChoice,
    },
    presets=PRESETS,
    paper="Sanh et al. 2019, DistilBERT, a distilled version of BERT, arXiv:1910.01108",
    positions="absolute, learned (or sinusoidal, with sinusoidal_pos_embds)",
    position_ids="used; default 0, 1, 2, ...",
    padding="right; left with position_ids",
    maximum_length=lambda config, task: config.max_position_embeddings,
    beyond_maximum="an error; resize_position_embeddings adds positions",
    notes=("attention heads can be cut out with prune_heads({layer: [heads]})",),
    train_tokenizer=train_tokenizer,
    layouts=LAYOUTS,
    publish=publish,
)
FAMILY.register_with_transformers()

__all__ = [
    "FAMILY",
    "DistilBertConfig",
    "DistilBertForMaskedLM",
    "DistilBertForMultipleChoice",
    "DistilBertForQuestionAnswering",
    "DistilBertForSequenceClassification",
    "DistilBertForTokenClassification",
    "DistilBertModel",
    "DistilBertPreTrainedModel",
]
