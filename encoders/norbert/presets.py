"""Named sizes of NorBERT3 and its siblings."""

from __future__ import annotations

from encoders.family import Preset
from encoders.norbert.config import NorbertConfig


def norbert3_xs() -> NorbertConfig:
    """15 million parameters."""
    return NorbertConfig(
        vocab_size=50_000, hidden_size=192, num_hidden_layers=12, num_attention_heads=3, intermediate_size=512
    )


def norbert3_small() -> NorbertConfig:
    """40 million parameters."""
    return NorbertConfig(
        vocab_size=50_000, hidden_size=384, num_hidden_layers=12, num_attention_heads=6, intermediate_size=1_024
    )


def norbert3_base() -> NorbertConfig:
    """124 million parameters."""
    return NorbertConfig(
        vocab_size=50_000, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=2_048
    )


def norbert3_large() -> NorbertConfig:
    """354 million parameters."""
    return NorbertConfig(
        vocab_size=50_000, hidden_size=1_024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=2_730
    )


def hplt_bert_base() -> NorbertConfig:
    """One of HPLT's encoders, 125 million parameters; trained with contiguous position projections."""
    return NorbertConfig(
        vocab_size=32_768,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=2_560,
        position_projection="contiguous",
        num_reserved_ids=105,
        pad_token_id=0,
        cls_token_id=2,
        sep_token_id=3,
    )


def ltg_bert_xs() -> NorbertConfig:
    """LTG-BERT of the BabyLM challenge, 8.5 million parameters."""
    return NorbertConfig(
        vocab_size=16_384,
        hidden_size=192,
        num_hidden_layers=12,
        num_attention_heads=3,
        intermediate_size=512,
        position_projection="contiguous",
        num_reserved_ids=0,
    )


def ltg_bert_small() -> NorbertConfig:
    """LTG-BERT of the BabyLM challenge, 28 million parameters."""
    return NorbertConfig(
        vocab_size=16_384,
        hidden_size=384,
        num_hidden_layers=12,
        num_attention_heads=6,
        intermediate_size=1_024,
        position_projection="contiguous",
        num_reserved_ids=0,
    )


def ltg_bert_base() -> NorbertConfig:
    """LTG-BERT of the BabyLM challenge, 98 million parameters."""
    return NorbertConfig(
        vocab_size=16_384,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=2_048,
        position_projection="contiguous",
        num_reserved_ids=0,
    )


def norbert3_nano() -> NorbertConfig:
    """A size for tests and demonstrations."""
    return NorbertConfig(
        vocab_size=1_024, hidden_size=128, num_hidden_layers=3, num_attention_heads=4, intermediate_size=256
    )


_NORWEGIAN = "Norwegian (bokmål and nynorsk)"

PRESETS = {
    "norbert3-xs": Preset(norbert3_xs, "Norwegian, 15 M", _NORWEGIAN, "ltg/norbert3-xs", "Apache-2.0"),
    "norbert3-small": Preset(norbert3_small, "Norwegian, 40 M", _NORWEGIAN, "ltg/norbert3-small", "Apache-2.0"),
    "norbert3-base": Preset(norbert3_base, "Norwegian, 124 M", _NORWEGIAN, "ltg/norbert3-base", "Apache-2.0"),
    "norbert3-large": Preset(norbert3_large, "Norwegian, 354 M", _NORWEGIAN, "ltg/norbert3-large", "Apache-2.0"),
    "hplt-bert-base": Preset(
        hplt_bert_base,
        "75 languages, one model each",
        "one of 75",
        "HPLT/hplt_bert_base_{language}",
        "Apache-2.0",
    ),
    "ltg-bert-xs": Preset(ltg_bert_xs, "English, BabyLM, 8.5 M", "English"),
    "ltg-bert-small": Preset(ltg_bert_small, "English, BabyLM, 28 M", "English"),
    "ltg-bert-base": Preset(ltg_bert_base, "English, BabyLM, 98 M", "English", "ltg/ltg-bert-babylm"),
    "norbert3-nano": Preset(norbert3_nano, "NorBERT3 for tests and demonstrations", "any"),
}
