"""The points that only the user's own texts settle, read with both tokenizers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from transformers import PreTrainedTokenizerBase

from encoders.loading import load_tokenizer
from encoders.sides import Side
from encoders.swap.facts import EITHER_SIDE
from encoders.swap.report import SwapLine

LONGER = 1.1
"""From this ratio on, longer texts are worth a thought."""

TokenizerSource = str | os.PathLike[str] | PreTrainedTokenizerBase


@dataclass(frozen=True)
class Reader:
    """One side's tokenizer with the texts that it reads.

    Attributes:
        tokenizer: the tokenizer, or None.
        refusal: why there is none.
        texts: what it reads.
    """

    tokenizer: PreTrainedTokenizerBase | None
    refusal: str
    texts: Sequence[str]

    @cached_property
    def _ids(self) -> list[list[int]] | None:
        if self.tokenizer is None or not self.texts:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # unknown characters are counted instead
            return self.tokenizer(list(self.texts), return_token_type_ids=False, verbose=False)["input_ids"]

    @property
    def tokens_per_word(self) -> float | None:
        """Tokens, without those that are added, for each word between spaces."""
        if self._ids is None or self.tokenizer is None:
            return None
        added = self.tokenizer.num_special_tokens_to_add() * len(self.texts)
        return (sum(map(len, self._ids)) - added) / max(1, sum(len(text.split()) for text in self.texts))

    @property
    def unknown(self) -> float | None:
        """Share of the tokens that are the unknown token."""
        if self._ids is None or self.tokenizer is None:
            return None
        unknown = self.tokenizer.unk_token_id
        return sum(one == unknown for ids in self._ids for one in ids) / max(1, sum(map(len, self._ids)))

    def cut_at(self, limit: int | None) -> float | None:
        """Share of the texts that are longer than so many tokens."""
        if self._ids is None:
            return None
        return sum(limit is not None and len(ids) > limit for ids in self._ids) / len(self._ids)


def open_reader(side: Side, given: TokenizerSource | None, texts: Sequence[str]) -> Reader:
    """Find the tokenizer of a side: the one given, or its own.

    Raises:
        CheckpointError: the one given can't be read.
    """
    if isinstance(given, PreTrainedTokenizerBase):
        return Reader(given, "", texts)
    if given is not None:
        return Reader(load_tokenizer(given), "", texts)
    try:
        return Reader(side.tokenizer(), "", texts)
    except ValueError as error:
        return Reader(None, str(error), texts)


def text_lines(a: Reader, b: Reader, sides: tuple[Side, Side], length: int | None) -> Iterator[SwapLine]:
    """Yield what the tokenizers say of each other and of the texts."""
    troubles = [
        f"{reader.refusal.rstrip('.')} (tokenizer_{label}=..., --tokenizer-{label} FOLDER)"
        for reader, label in ((a, "a"), (b, "b"))
        if reader.tokenizer is None
    ]
    troubles += _misfits(b.tokenizer, sides[1])
    yield SwapLine("tokenizer", _kind(a), _kind(b), "; ".join(troubles) or None)
    sizes = sides[0].config.vocab_size, sides[1].config.vocab_size
    yield SwapLine("vocabulary", *sizes, _encode_anew(a, b))
    if not a.texts:
        yield SwapLine("your texts", None, None, "pass some (texts=..., --text FILE) to see what becomes of them")
        return
    topics = ("tokens per word", "share of unknown tokens", f"share cut at {length or 'its longest'}")
    first, second = (
        (reader.tokens_per_word, reader.unknown, reader.cut_at(min(filter(None, limits), default=None)))
        for reader, limits in ((a, (length, sides[0].maximum_length)), (b, (length, sides[1].maximum_length)))
    )
    for topic, one, other, advise in zip(topics, first, second, (_longer, _less_known, _cut_more), strict=True):
        yield SwapLine(topic, one, other, None if one is None or other is None else advise(one, other))


def _misfits(tokenizer: PreTrainedTokenizerBase | None, side: Side) -> Iterator[str]:
    """Yield what to do where a tokenizer and its model don't fit together."""
    if tokenizer is None:
        return
    words, rows = len(tokenizer), side.config.vocab_size
    if words > rows:
        yield f"it has {words:,} words, the model {rows:,}: texts with the others are refused"
    if tokenizer.padding_side == "left" and side.family.padding != EITHER_SIDE:
        yield f"set tokenizer.padding_side = 'right' (harmless padding: {side.family.padding})"


def _kind(reader: Reader) -> str | None:
    tokenizer = reader.tokenizer
    return None if tokenizer is None else f"{type(tokenizer).__name__}, pads on the {tokenizer.padding_side}"


def _encode_anew(a: Reader, b: Reader) -> str | None:
    """Return what to do with texts that are encoded already."""
    if a.tokenizer is None or b.tokenizer is None:
        return "encode your texts anew, unless both have the same words"
    same = a.tokenizer.get_vocab() == b.tokenizer.get_vocab()
    return None if same else "encode your texts anew, with the new tokenizer"


def _longer(a: float, b: float) -> str | None:
    return f"texts get {b / a - 1:.0%} longer: look at length and batch size" if b > LONGER * a else None


def _less_known(a: float, b: float) -> str | None:
    return "the new vocabulary lacks parts of your texts: look at them" if b > a else None


def _cut_more(a: float, b: float) -> str | None:
    return f"{b:.1%} of your texts are cut (before: {a:.1%}): split them, or use a greater length" if b > a else None
