"""Published HELM-BERT checkpoints (Flansma/helm-bert); their tensors have our names."""

from __future__ import annotations

from encoders.checkpoints.layout import Layout, Published, Stranger
from encoders.checkpoints.publishing import published_config
from encoders_shared.checkpoints import KeyTable
from encoders_shared.model import EncoderPreTrainedModel

LAYOUTS = (
    Layout(
        name="HELM-BERT",
        class_names=("HELMBert*",),
        tensors=("encoder.ngie_layer.conv.weight", "encoder.layers.*.self_attn.query_proj.weight"),
        keys=KeyTable(prefixes=("helmbert.",)),
        model_types=("helmbert",),
        tensors_suffice=True,
    ),
)

STRANGERS = (
    Stranger(
        name="DeBERTa",
        class_names=("Deberta*",),
        tensors=(r"attention\.self\.(query_proj|in_proj|pos_proj|pos_key_proj)",),
        reason="shares one position table between its layers and has no n-gram layer, unlike all encoders here",
    ),
)

_CLASSES = {
    "AutoConfig": "configuration_helmbert.HELMBertConfig",
    "AutoModel": "modeling_helmbert.HELMBertModel",
    "AutoModelForMaskedLM": "modeling_helmbert.HELMBertForMaskedLM",
    "AutoModelForSequenceClassification": "modeling_helmbert.HELMBertForSequenceClassification",
}


def publish(model: EncoderPreTrainedModel) -> Published:
    """Return a model as the authors' code reads it.

    Raises:
        CheckpointError: their code has no such model.
    """
    config = published_config(model, type(model).__name__, _CLASSES, model_type="helmbert")
    return Published(config, with_tokenizer=False)
