"""Tokenizers for NorBERT and its siblings: WordPiece over bytes, digits one by one (Samuel et al. 2023, LTG-BERT)."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import WordPiece
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import WordPieceTrainer
from transformers import PreTrainedTokenizerFast

NAMED = {
    "unk": "[UNK]",
    "cls": "[CLS]",
    "sep": "[SEP]",
    "pad": "[PAD]",
    "mask": "[MASK]",
    "bos": "[BOS]",
    "eos": "[EOS]",
}
RESERVED = (*NAMED.values(), *(f"[MASK_{number}]" for number in range(100)))
"""The reserved ids 0 .. 106 in the order of NorBERT3: they are `num_reserved_ids` of its presets."""

_LONGEST_WORD = 100_000  # characters; longer ones would become [UNK]


def train_tokenizer(texts: Iterable[str], vocab_size: int, min_frequency: int) -> PreTrainedTokenizerFast:
    """Train a tokenizer whose ids fit the NorBERT3 presets.

    Text is kept as it is: decoding what was encoded gives it back, whatever its characters.

    Args:
        texts: what to learn from.
        vocab_size: entries in all, at least the reserved ids and the 256 bytes.
        min_frequency: how often an entry has to occur.

    Raises:
        ValueError: the vocabulary is too small.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    least = len(RESERVED) + len(alphabet)
    if vocab_size < least:
        raise ValueError(
            f"vocab_size is {vocab_size}; at least {least} are needed, for {len(RESERVED)} reserved ids and the bytes."
        )
    tokenizer = Tokenizer(WordPiece(unk_token=NAMED["unk"], max_input_chars_per_word=_LONGEST_WORD))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.train_from_iterator(
        texts,
        WordPieceTrainer(
            vocab_size=vocab_size,
            min_frequency=min_frequency,
            special_tokens=[*RESERVED, *alphabet],
            continuing_subword_prefix="",
            show_progress=False,
        ),
    )
    model = WordPiece(
        tokenizer.get_vocab(),
        unk_token=NAMED["unk"],
        continuing_subword_prefix="",
        max_input_chars_per_word=_LONGEST_WORD,
    )
    trained = Tokenizer(model)
    trained.pre_tokenizer = tokenizer.pre_tokenizer
    trained.decoder = decoders.ByteLevel()
    cls, sep = NAMED["cls"], NAMED["sep"]
    trained.post_processor = TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {sep} $B:1 {sep}:1",
        special_tokens=[(token, trained.token_to_id(token)) for token in (cls, sep)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=trained,
        clean_up_tokenization_spaces=False,
        **{f"{kind}_token": token for kind, token in NAMED.items()},
    )
