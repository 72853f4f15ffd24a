"""NorBERT3, LTG-BERT and the HPLT encoders (Samuel et al. 2023)."""

from transformers import PreTrainedTokenizerFast

from encoders.family import Family
from encoders.norbert.checkpoints import LAYOUTS, STRANGERS, publish
from encoders.norbert.config import NorbertConfig
from encoders.norbert.diagnosis import ProjectionDiagnosis, diagnose_projection
from encoders.norbert.encoder import NorbertModel, NorbertPreTrainedModel, layer_differences
from encoders.norbert.presets import PRESETS
from encoders.norbert.tasks import (
    NorbertForMaskedLM,
    NorbertForMultipleChoice,
    NorbertForQuestionAnswering,
    NorbertForSequenceClassification,
    NorbertForTokenClassification,
)
from encoders.norbert.tokenizer import train_tokenizer

FAMILY = Family(
    name="norbert",
    tasks={
        None: NorbertModel,
        "masked-lm": NorbertForMaskedLM,
        "sequence-classification": NorbertForSequenceClassification,
        "token-classification": NorbertForTokenClassification,
        "question-answering": NorbertForQuestionAnswering,
        "multiple-choice": NorbertForMultipleChoice,
    },
    presets=PRESETS,
    paper="Samuel et al. 2023, NorBench, NoDaLiDa; and Trained on 100 million words and still in shape, EACL",
    positions="relative, one table for all layers",
    position_ids="ignored",
    padding="left or right",
    maximum_length=lambda config, task: None,
    beyond_maximum="any length; distances beyond max_position_embeddings share the last bucket",
    notes=(
        "hidden_states are states; upstream's differences between layers: encoders.norbert.layer_differences",
        "position_projection can't be read from a checkpoint, and the wrong one loads without a word",
        "ids below num_reserved_ids are never predicted, and are refused as masked-LM labels",
        "multiple choice scores the first token of each choice with one output; upstream's code for it can't train",
    ),
    tokenizer_class=PreTrainedTokenizerFast,
    train_tokenizer=train_tokenizer,
    layouts=LAYOUTS,
    strangers=STRANGERS,
    publish=publish,
)
FAMILY.register_with_transformers()

__all__ = [
    "FAMILY",
    "NorbertConfig",
    "NorbertForMaskedLM",
    "NorbertForMultipleChoice",
    "NorbertForQuestionAnswering",
    "NorbertForSequenceClassification",
    "NorbertForTokenClassification",
    "NorbertModel",
    "NorbertPreTrainedModel",
    "ProjectionDiagnosis",
    "diagnose_projection",
    "layer_differences",
]
