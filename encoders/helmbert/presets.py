"""Named sizes of HELM-BERT."""

from __future__ import annotations

from encoders.family import Preset
from encoders.helmbert.config import HELMBertConfig


def helmbert_base() -> HELMBertConfig:
    """The published model: 54.8 million parameters with its masked-LM head."""
    return HELMBertConfig(
        vocab_size=78,
        hidden_size=768,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=3_072,
        max_position_embeddings=512,
        max_relative_positions=512,
        position_buckets=256,
        ngie_kernel_size=3,
    )


def helmbert_nano() -> HELMBertConfig:
    """A size for tests and demonstrations."""
    return HELMBertConfig(
        vocab_size=78,
        hidden_size=128,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=512,
        max_position_embeddings=512,
        max_relative_positions=512,
        position_buckets=64,
        ngie_kernel_size=3,
    )


PRESETS = {
    "helmbert-base": Preset(
        config=helmbert_base,
        summary="peptides in HELM notation",
        languages="HELM",
        checkpoint="Flansma/helm-bert",
        licence="MIT",
    ),
    "helmbert-nano": Preset(config=helmbert_nano, summary="HELM-BERT for tests and demonstrations", languages="any"),
}
