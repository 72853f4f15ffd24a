"""Tokenizers for DistilBERT: WordPiece over words, in BERT's manner (Devlin et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer
from tokenizers.decoders import WordPiece as WordPieceDecoder
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import WordPieceTrainer
from transformers import PreTrainedTokenizerFast

NAMED = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}


def train_tokenizer(texts: Iterable[str], vocab_size: int, min_frequency: int) -> PreTrainedTokenizerFast:
    """Train an uncased tokenizer that keeps accents: å and a are different letters.

    The trainer breaks ties by token number and numbers the letters in an order that changes from process to process.
    Handing it the sorted letters in advance makes the same texts give the same vocabulary.

    Args:
        texts: what to learn from.
        vocab_size: entries in all; the special tokens and all letters get one in any case.
        min_frequency: how often any other entry has to occur.
    """
    texts = list(texts)
    normalizer, pre_tokenizer = BertNormalizer(lowercase=True, strip_accents=False), BertPreTokenizer()
    words = {word for text in texts for word, _ in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(text))}
    first_letters = sorted({letter for word in words for letter in word})
    later_letters = sorted({f"##{letter}" for word in words for letter in word[1:]})
    learner = Tokenizer(WordPiece(unk_token=NAMED["unk"]))
    learner.normalizer, learner.pre_tokenizer = normalizer, pre_tokenizer
    learner.train_from_iterator(
        texts,
        WordPieceTrainer(
            vocab_size=vocab_size,
            min_frequency=min_frequency,
            special_tokens=[*NAMED.values(), *first_letters, *later_letters],
            show_progress=False,
        ),
    )
    trained = Tokenizer(WordPiece(learner.get_vocab(), unk_token=NAMED["unk"]))  # the letters are not special here
    trained.normalizer, trained.pre_tokenizer = normalizer, pre_tokenizer
    trained.decoder = WordPieceDecoder(cleanup=False)
    cls, sep = NAMED["cls"], NAMED["sep"]
    trained.post_processor = TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {sep} $B:1 {sep}:1",
        special_tokens=[(token, trained.token_to_id(token)) for token in (cls, sep)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=trained, **{f"{kind}_token": token for kind, token in NAMED.items()}
    )
