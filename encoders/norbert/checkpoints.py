"""Published checkpoints of NorBERT3 and its siblings; all of them name their tensors as we do.

What they compute differs in two places that the tensors don't show: how the projected positions are split (`Norbert*`
and the BNC models interleaved, the others contiguous), and how many ids at the start of the vocabulary are never
predicted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from encoders.checkpoints.folder import CheckpointFolder
from encoders.checkpoints.layout import Completion, Layout, Published, Stranger
from encoders.checkpoints.publishing import published_config
from encoders.family import AUTO_CLASSES
from encoders.norbert.config import NorbertConfig
from encoders_shared.checkpoints import CheckpointError, KeyTable
from encoders_shared.errors import listed
from encoders_shared.model import EncoderPreTrainedModel
from encoders_shared.relative_position import SymmetricLogBuckets
from encoders_shared.tasks import MaskedLM

KEYS = KeyTable(prefixes=("norbert3.", "ltgbert.", "bnc-bert."), ignored=(r"\.position_indices$",))
TENSORS = ("embedding.relative_embedding", "transformer.layers.*.attention.in_proj_qk.weight")

_SPECIAL_TOKENS = {
    "pad_token_id": "[PAD]",
    "cls_token_id": "[CLS]",
    "sep_token_id": "[SEP]",
    "mask_token_id": "[MASK]",
}
_LAST_SENTINEL = "[MASK_99]"
_FIRST_BYTE = "!"  # the byte-level alphabet begins with it, right after the reserved ids


def complete(
    folder: CheckpointFolder,
    fields: Mapping[str, Any],
    *,
    projection: str,
    reserved: int,
    defaults: Mapping[str, int] | None = None,
) -> Completion:
    """Decide what config.json leaves open.

    Args:
        folder: where the checkpoint is.
        fields: what is settled.
        projection: the position projection of this layout.
        reserved: how many ids its own code reserves.
        defaults: its own defaults where they differ from NorBERT3's.
    """
    decided: dict[str, Any] = {name: value for name, value in (defaults or {}).items() if name not in fields}
    notes, warning, vocabulary = [], None, folder.vocabulary
    for name, token in _SPECIAL_TOKENS.items():
        if token in vocabulary and fields.get(name) != vocabulary[token]:
            decided[name] = vocabulary[token]
            notes.append(f"{name} {vocabulary[token]} is that of tokenizer.json (config.json: {fields.get(name)})")
    if "num_reserved_ids" not in fields:
        decided["num_reserved_ids"] = reserved_ids(vocabulary) if vocabulary else reserved
        by = "tokenizer.json" if vocabulary else "class names"
        notes.append(f"num_reserved_ids {decided['num_reserved_ids']} was told from {by}")
    if "position_projection" not in fields:
        decided["position_projection"] = projection
        notes.append(f"position_projection {projection!r} was told from class names and name ({folder.name})")
        if projection == "contiguous":
            warning = (
                f"{folder.source}: config.json doesn't say how its position projections are laid out, and the weights "
                f"can't tell. Assumed: position_projection={projection!r}. `encoders diagnose` finds out which one "
                "fits; pass position_projection=... to settle it."
            )
    return Completion(decided, tuple(notes), warning)


def complete_ltg_bert(folder: CheckpointFolder, fields: Mapping[str, Any]) -> Completion:
    """Decide as `complete` does; of the LTG-BERTs, those of the British National Corpus are interleaved."""
    projection = "interleaved" if "bnc" in folder.name.lower() else "contiguous"
    return complete(folder, fields, projection=projection, reserved=0)


def reserved_ids(vocabulary: Mapping[str, int]) -> int:
    """Return how many ids are never predicted: all before the bytes, or none if there is no [MASK_99]."""
    last = vocabulary.get(_LAST_SENTINEL)
    if last is None:
        return 0
    first_byte = vocabulary.get(_FIRST_BYTE, last + 1)
    return first_byte if last < first_byte <= last + 2 else last + 1


LAYOUTS = (
    Layout(
        name="NorBERT3",
        class_names=("Norbert*",),
        tensors=TENSORS,
        keys=KEYS,
        model_types=("norbert",),
        complete=partial(complete, projection="interleaved", reserved=107),
    ),
    Layout(
        name="HPLT",
        class_names=("Ltgbert*",),
        tensors=TENSORS,
        keys=KEYS,
        complete=partial(
            complete,
            projection="contiguous",
            reserved=105,
            defaults={"vocab_size": 32_768, "pad_token_id": 0, "cls_token_id": 2, "sep_token_id": 3},
        ),
    ),
    Layout(
        name="LTG-BERT",
        class_names=("LtgBert*",),
        tensors=TENSORS,
        keys=KEYS,
        tensors_suffice=True,
        complete=complete_ltg_bert,
    ),
)

STRANGERS = (
    Stranger(
        name="ELC-BERT",
        class_names=("ElcBert*", "Elcbert*", "ELCBert*"),
        tensors=(r"prev_layer_weights",),
        reason="feeds each layer a weighted sum of all earlier ones and has no residual around its attention, so these "
        "weights would give other numbers in an LTG-BERT",
    ),
    Stranger(
        name="GPT-BERT (the line of NorBERT4)",
        class_names=("GPTBert*", "GptBert*", "Gptbert*", "Norbert4*", "NorBert4*"),
        tensors=(r"\battention_layers\.", r"\bmlp_layers\.", r"\bin_proj_vg\b", r"\bdwa_modules\."),
        reason="has gated values, norms in other places and weighted sums over layers, so it is another architecture",
    ),
)


@dataclass(frozen=True)
class PublishedCode:
    """One of the modules that were published with the weights.

    Attributes:
        start: how the names of its classes start.
        module: how its files are called.
        model_type: what it calls the architecture, if it does.
        projection: how it splits the projected positions.
        reserved: the values of num_reserved_ids that it can stand for.
    """

    start: str
    module: str
    model_type: str | None
    projection: str
    reserved: tuple[int, ...]

    def classes(self) -> dict[str, str]:
        """Return its classes as in `auto_map`."""
        models = {
            auto.__name__: f"modeling_{self.module}.{self.start}{auto.__name__.removeprefix('AutoModel') or 'Model'}"
            for auto in AUTO_CLASSES.values()
        }
        return {"AutoConfig": f"configuration_{self.module}.{self.start}Config", **models}


PUBLISHED_CODE = (
    PublishedCode("Norbert", "norbert", None, "interleaved", (107,)),
    PublishedCode("LtgBert", "ltgbert", "bert", "interleaved", (0,)),
    PublishedCode("Ltgbert", "ltgbert", None, "contiguous", (105, 107)),  # masks 107 where 105 are meant
)


def publish(model: EncoderPreTrainedModel) -> Published:
    """Return a model as the code published with the checkpoints reads it.

    Raises:
        CheckpointError: none of that code computes what this model does.
    """
    config = cast(NorbertConfig, model.config)
    for code in PUBLISHED_CODE:
        reserved_fit = config.num_reserved_ids in code.reserved or not isinstance(model, MaskedLM)
        if code.projection == config.position_projection and reserved_fit:
            break
    else:
        raise CheckpointError(
            f"no published code computes position_projection={config.position_projection!r} with "
            f"num_reserved_ids={config.num_reserved_ids}; it knows "
            f"{'; '.join(f'{code.projection} with {listed(code.reserved)}' for code in PUBLISHED_CODE)}."
        )
    name = code.start + type(model).__name__.removeprefix("Norbert")
    fields = published_config(model, name, code.classes(), model_type=code.model_type)
    dropout = fields.pop("classifier_dropout")
    if dropout is not None:
        fields["cls_dropout"] = dropout
    layers, table = range(config.num_hidden_layers), position_indices(config)
    return Published(fields, {f"transformer.layers.{layer}.attention.position_indices": table for layer in layers})


def position_indices(config: NorbertConfig) -> Tensor:
    """Return the table that the published code keeps in each layer: a row of positions for each query and key.

    int64 [max_position_embeddings, max_position_embeddings].
    """
    buckets = SymmetricLogBuckets(config.position_bucket_size, config.max_position_embeddings)
    positions = torch.arange(config.max_position_embeddings)
    return buckets(positions[:, None] - positions[None]) + config.position_bucket_size - 1  # [query, key]
