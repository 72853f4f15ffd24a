"""The one tokenizer of all backbones that start from fresh weights, and the encoding of a data set."""

import re
from collections.abc import Sequence

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import WordPieceTrainer
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

VOCABULARY_SIZE = 8_000
MINIMUM_COUNT = 5
"""How often a piece of a word has to occur in the training split to become an entry: rarer ones are not learnt well."""

_HELM = re.compile(r"(PEPTIDE|RNA|CHEM|BLOB)\d+\{.*\}.*\$")
_SPECIAL_TOKENS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}


def is_helm(texts: Sequence[str]) -> bool:
    """Tell whether most texts are HELM strings, such as `PEPTIDE1{A.[meL].C}$PEPTIDE1,PEPTIDE1,1:R1-3:R2$$$`."""
    return 2 * sum(_HELM.match(text.strip()) is not None for text in texts) > len(texts)


def shared_tokenizer(texts: Sequence[str]) -> PreTrainedTokenizerBase:
    """Return the HELM tokenizer for HELM strings, and otherwise a WordPiece vocabulary trained on the texts."""
    if is_helm(texts):
        from encoders.helmbert.tokenizer import HELMBertTokenizer

        return HELMBertTokenizer()
    return wordpiece_tokenizer(texts)


def kind_of(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return what a tokenizer is to be called: its class, or its model where the class is the general one."""
    general = type(tokenizer) is PreTrainedTokenizerFast
    return type(tokenizer.backend_tokenizer.model).__name__ if general else type(tokenizer).__name__


def wordpiece_tokenizer(texts: Sequence[str], vocabulary_size: int = VOCABULARY_SIZE) -> PreTrainedTokenizerFast:
    """Train an uncased WordPiece tokenizer in BERT's manner that keeps accents (å and a are different letters).

    The trainer breaks ties by token number and numbers the letters in an order that changes from process to process.
    Handing it the sorted letters in advance makes the same texts give the same vocabulary.
    """
    normalizer, pre_tokenizer = BertNormalizer(lowercase=True, strip_accents=False), BertPreTokenizer()
    words = {word for text in texts for word, _ in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(text))}
    first_letters = sorted({letter for word in words for letter in word})
    later_letters = sorted({f"##{letter}" for word in words for letter in word[1:]})
    learner = Tokenizer(WordPiece(unk_token=_SPECIAL_TOKENS["unk_token"]))
    learner.normalizer, learner.pre_tokenizer = normalizer, pre_tokenizer
    learner.train_from_iterator(
        texts,
        WordPieceTrainer(
            vocab_size=vocabulary_size,
            min_frequency=MINIMUM_COUNT,
            special_tokens=[*_SPECIAL_TOKENS.values(), *first_letters, *later_letters],
            show_progress=False,
        ),
    )

    tokenizer = Tokenizer(WordPiece(learner.get_vocab(), unk_token=_SPECIAL_TOKENS["unk_token"]))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    cls, sep = _SPECIAL_TOKENS["cls_token"], _SPECIAL_TOKENS["sep_token"]
    tokenizer.post_processor = TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {sep} $B:1 {sep}:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (cls, sep)],
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **_SPECIAL_TOKENS)
