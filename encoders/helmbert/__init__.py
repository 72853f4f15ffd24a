"""HELM-BERT: an encoder for peptides in HELM notation (Lee et al. 2026)."""

from encoders.family import Family
from encoders.helmbert.checkpoints import LAYOUTS, STRANGERS, publish
from encoders.helmbert.config import HELMBertConfig
from encoders.helmbert.encoder import HELMBertModel, HELMBertPreTrainedModel
from encoders.helmbert.presets import PRESETS
from encoders.helmbert.tasks import (
    HELMBertForMaskedLM,
    HELMBertForMultipleChoice,
    HELMBertForQuestionAnswering,
    HELMBertForSequenceClassification,
    HELMBertForTokenClassification,
)
from encoders.helmbert.tokenizer import HELMBertTokenizer

FAMILY = Family(
    name="helmbert",
    tasks={
        None: HELMBertModel,
        "masked-lm": HELMBertForMaskedLM,
        "sequence-classification": HELMBertForSequenceClassification,
        "token-classification": HELMBertForTokenClassification,
        "question-answering": HELMBertForQuestionAnswering,
        "multiple-choice": HELMBertForMultipleChoice,
    },
    presets=PRESETS,
    paper="Lee et al. 2026, HELM-BERT, J. Chem. Inf. Model., doi:10.1021/acs.jcim.6c00451",
    positions="relative, a table in each layer; absolute ones in the masked-LM head alone",
    position_ids="used by the masked-LM head's decoder, ignored elsewhere",
    padding="left or right",
    maximum_length=lambda config, task: config.max_position_embeddings if task == "masked-lm" else None,
    beyond_maximum="an error in the masked-LM head (resize_position_embeddings helps); the others take any length",
    notes=(
        "use_emd=False (masked LM) skips the enhanced mask decoder",
        "under the decoder the last layer's own position table gets no gradient, as published: masked-LM training "
        "leaves it random",
        "models without a masked-LM head hold the table of absolute positions, which gets no gradient there",
        "half of each relative-position table is never read, as published",
    ),
    tokenizer_class=HELMBertTokenizer,
    layouts=LAYOUTS,
    strangers=STRANGERS,
    publish=publish,
)
FAMILY.register_with_transformers()

__all__ = [
    "FAMILY",
    "HELMBertConfig",
    "HELMBertForMaskedLM",
    "HELMBertForMultipleChoice",
    "HELMBertForQuestionAnswering",
    "HELMBertForSequenceClassification",
    "HELMBertForTokenClassification",
    "HELMBertModel",
    "HELMBertPreTrainedModel",
    "HELMBertTokenizer",
]
