"""Tokenizers for people who start from scratch."""

from __future__ import annotations

from collections.abc import Iterable

from transformers import PreTrainedTokenizerFast

from encoders.registry import families
from encoders_shared.errors import listed, suggestion


def train_tokenizer(
    texts: Iterable[str], *, family: str, vocab_size: int, min_frequency: int = 2
) -> PreTrainedTokenizerFast:
    """Train a tokenizer as a family's own are.

    "norbert": WordPiece over bytes, digits one by one, NorBERT3's reserved ids first; decoding gives any text back.
    "distilbert": WordPiece over lower-cased words, accents kept. The same texts give the same vocabulary.

    Args:
        texts: what to learn from.
        family: a family's name.
        vocab_size: entries in all.
        min_frequency: how often an entry has to occur in the texts.

    Raises:
        TypeError: the texts are one string.
        ValueError: there is no such family, its vocabulary is fixed, or `vocab_size` is too small for it.
    """
    if isinstance(texts, str):
        raise TypeError("texts is one string; a list of strings is needed, such as [text].")
    trainable = {name: one.train_tokenizer for name, one in families().items() if one.train_tokenizer is not None}
    if family not in trainable:
        why = "has a fixed vocabulary: use its tokenizer class" if family in families() else "is no family"
        raise ValueError(
            f"{family!r} {why}.{suggestion(family, trainable)} Tokenizers can be trained for: {listed(trainable)}."
        )
    return trainable[family](texts, vocab_size, min_frequency)
