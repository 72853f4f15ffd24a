"""The one tokenizer of all backbones that start from fresh weights, and the encoding of a data set."""

import re
from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

import encoders

VOCABULARY_SIZE = 8_000
MINIMUM_COUNT = 5
"""How often a piece of a word has to occur in the training split to become an entry: rarer ones are not learnt well."""

_HELM = re.compile(r"(PEPTIDE|RNA|CHEM|BLOB)\d+\{.*\}.*\$")


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
    """Train an uncased WordPiece vocabulary on the texts."""
    return encoders.train_tokenizer(texts, family="distilbert", vocab_size=vocabulary_size, min_frequency=MINIMUM_COUNT)
