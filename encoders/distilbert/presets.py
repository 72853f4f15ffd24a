"""Named sizes of DistilBERT."""

from __future__ import annotations

from encoders.distilbert.config import DistilBertConfig
from encoders.family import Preset


def distilbert_base_uncased() -> DistilBertConfig:
    """66 million parameters."""
    return DistilBertConfig(vocab_size=30_522, dim=768, n_layers=6, n_heads=12, hidden_dim=3_072)


def distilbert_base_cased() -> DistilBertConfig:
    """65 million parameters."""
    return DistilBertConfig(vocab_size=28_996, dim=768, n_layers=6, n_heads=12, hidden_dim=3_072)


def distilbert_base_multilingual_cased() -> DistilBertConfig:
    """135 million parameters."""
    return DistilBertConfig(vocab_size=119_547, dim=768, n_layers=6, n_heads=12, hidden_dim=3_072)


def distilbert_nano() -> DistilBertConfig:
    """A size for tests and demonstrations."""
    return DistilBertConfig(vocab_size=1_024, dim=128, n_layers=3, n_heads=4, hidden_dim=512)


PRESETS = {
    "distilbert-base-uncased": Preset(
        distilbert_base_uncased,
        "English, lower-cased, 66 M",
        "English",
        "distilbert/distilbert-base-uncased",
        "Apache-2.0",
    ),
    "distilbert-base-cased": Preset(
        distilbert_base_cased, "English, 65 M", "English", "distilbert/distilbert-base-cased", "Apache-2.0"
    ),
    "distilbert-base-multilingual-cased": Preset(
        distilbert_base_multilingual_cased,
        "104 languages, 135 M",
        "104 languages",
        "distilbert/distilbert-base-multilingual-cased",
        "Apache-2.0",
    ),
    "distilbert-nano": Preset(distilbert_nano, "DistilBERT for tests and demonstrations", "any"),
}
