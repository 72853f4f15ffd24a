"""Published checkpoints that DistilBERT can carry: its own, and BERT's.

DistilBERT is BERT without segments and pooler (Sanh et al. 2019, section 3). So a BERT computes the same as a
DistilBERT whose positions carry segment 0, as long as all tokens are in segment 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from encoders.checkpoints.folder import CheckpointFolder
from encoders.checkpoints.layout import AddedRow, Completion, Layout, Published
from encoders.checkpoints.publishing import published_config
from encoders.distilbert.encoder import LAYER_NORM_EPS
from encoders.family import AUTO_CLASSES
from encoders_shared.checkpoints import CheckpointError, KeyTable
from encoders_shared.model import EncoderPreTrainedModel

BERT_KEYS = KeyTable(
    prefixes=("bert.",),
    renames=(
        ("embeddings.word_embeddings.weight", "embeddings.word_embeddings.weight"),
        ("embeddings.position_embeddings.weight", "embeddings.position_embeddings.weight"),
        ("embeddings.LayerNorm.*", "embeddings.LayerNorm.*"),
        ("encoder.layer.*.attention.self.query.*", "transformer.layer.*.attention.q_lin.*"),
        ("encoder.layer.*.attention.self.key.*", "transformer.layer.*.attention.k_lin.*"),
        ("encoder.layer.*.attention.self.value.*", "transformer.layer.*.attention.v_lin.*"),
        ("encoder.layer.*.attention.output.dense.*", "transformer.layer.*.attention.out_lin.*"),
        ("encoder.layer.*.attention.output.LayerNorm.*", "transformer.layer.*.sa_layer_norm.*"),
        ("encoder.layer.*.intermediate.dense.*", "transformer.layer.*.ffn.lin1.*"),
        ("encoder.layer.*.output.dense.*", "transformer.layer.*.ffn.lin2.*"),
        ("encoder.layer.*.output.LayerNorm.*", "transformer.layer.*.output_layer_norm.*"),
        ("cls.predictions.transform.dense.*", "vocab_transform.*"),
        ("cls.predictions.transform.LayerNorm.*", "vocab_layer_norm.*"),
        ("cls.predictions.decoder.weight", "vocab_projector.weight"),
        ("cls.predictions.bias", "vocab_projector.bias"),
    ),
    spellings=((".LayerNorm.gamma", ".LayerNorm.weight"), (".LayerNorm.beta", ".LayerNorm.bias")),
    ignored=(r"embeddings\.position_ids$", r"^cls\.predictions\.decoder\.bias$"),
)

_POOLING_FOLDER = "1_Pooling"
_POOLINGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
_REQUIRED = {"position_embedding_type": "absolute", "is_decoder": False, "layer_norm_eps": LAYER_NORM_EPS}


def complete_bert(folder: CheckpointFolder, fields: Mapping[str, Any]) -> Completion:
    """Check that a BERT is one that DistilBERT can carry, and read how its sentence vectors are pooled.

    Raises:
        CheckpointError: it computes something else.
    """
    for name, value in _REQUIRED.items():
        if fields.get(name, value) != value:
            raise CheckpointError(
                f"{folder.path}: this BERT has {name}={fields[name]!r}. It is loaded as a DistilBERT, whose "
                f"{name} is {value!r}, so it would give other numbers."
            )
    decided = {}
    notes = ["segment 0 was added to the positions: tokens of segment 1 count as segment 0"]
    said = folder.json(f"{_POOLING_FOLDER}/config.json") or {}
    poolings = [pooling for key, pooling in _POOLINGS.items() if said.get(key) is True]
    if len(poolings) == 1:
        decided["pooling"] = poolings[0]
        notes.append(f"pooling {poolings[0]!r} is that of {_POOLING_FOLDER}")
    return Completion(decided, tuple(notes))


LAYOUTS = (
    Layout(
        name="DistilBERT",
        class_names=("DistilBert*",),
        tensors=("transformer.layer.*.attention.q_lin.weight",),
        keys=KeyTable(prefixes=("distilbert.",), ignored=(r"embeddings\.position_ids$",)),
        model_types=("distilbert",),
        tensors_suffice=True,
    ),
    Layout(
        name="BERT",
        class_names=("Bert*",),
        tensors=("embeddings.token_type_embeddings.weight", "encoder.layer.*.attention.self.query.weight"),
        keys=BERT_KEYS,
        model_types=("bert",),
        complete=complete_bert,
        added_rows=(AddedRow("embeddings.position_embeddings.weight", "embeddings.token_type_embeddings.weight", 0),),
    ),
)


def publish(model: EncoderPreTrainedModel) -> Published:
    """Return a model as transformers' own DistilBERT reads it.

    Raises:
        CheckpointError: heads were cut out of it, which transformers 5 can't read.
    """
    if model.config.pruned_heads:
        raise CheckpointError(
            f"heads were pruned ({model.config.pruned_heads}), and transformers' DistilBERT reads only whole layers."
        )
    classes = {auto.__name__: type(model).__name__ for auto in AUTO_CLASSES.values()}
    config = published_config(model, type(model).__name__, classes, model_type=model.config.model_type)
    return Published({name: value for name, value in config.items() if name not in ("auto_map", "pruned_heads")})
