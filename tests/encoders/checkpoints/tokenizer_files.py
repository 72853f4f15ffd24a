"""Tokenizer files as they are published."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, processors

from tests.encoders.checkpoints.folders import write_json

HPLT_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def write_word_piece(folder: Path, specials: list[str], **config) -> int:
    """Write tokenizer.json of the LTG recipe (WordPiece over bytes, digits apart) and tokenizer_config.json.

    Returns:
        The number of words.
    """
    words = [*specials, *sorted(pre_tokenizers.ByteLevel.alphabet()), "he", "##llo", "##d", "world", "Ġworl"]
    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.add_special_tokens(specials)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.ByteLevel(), pre_tokenizers.Digits(True)])
    cls, sep = (words.index(token) for token in ("[CLS]", "[SEP]"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", cls), ("[SEP]", sep)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {f"{token[1:-1].lower()}_token": token for token in specials if "_" not in token}
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **names, **config})
    return len(words)
