"""transformers' own common tests of tokenizers, on HELM-BERT's. Started by `run.py`."""

from __future__ import annotations

import tempfile
import unittest

from transformers_tests.test_tokenization_common import TokenizerTesterMixin
from transformers_tests.test_tokenizers_backend_mixin import TokenizersBackendTesterMixin

from encoders.helmbert.tokenizer import HELMBertTokenizer

HELM = "PEPTIDE1{[Abu].[meL].V.[dA].[am]}$PEPTIDE1,PEPTIDE1,1:R1-5:R2$$$"


def leave_out(reason, *tests):
    """Skip tests that ask what this tokenizer can't give; `own.py` tests what holds in their place."""

    def decorate(cls):
        for test in tests:
            setattr(cls, test, unittest.skip(reason)(getattr(cls, test)))
        return cls

    return decorate


class SavedTokenizer:
    """Saves the tokenizer in a folder, from which the tests load it; nothing comes from a hub."""

    tokenizer_class = HELMBertTokenizer

    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        HELMBertTokenizer().save_pretrained(folder)
        cls.from_pretrained_id = [folder]
        super().setUpClass()


@leave_out(
    "The special tokens are fixed",
    "test_added_tokens_serialization",
    "test_bos_token_with_add_bos_token_false",
    "test_bos_token_with_add_bos_token_true",
    "test_pad_token_initialization",
)
class HelmBertTokenizerTest(SavedTokenizer, TokenizerTesterMixin, unittest.TestCase):
    """The tests for every tokenizer."""

    test_tokenizer_from_extractor = False  # that gives the vocabulary with scores, as unigram models have them

    integration_test_input_string = HELM
    integration_expected_decoded_text = HELM
    integration_expected_tokens = [
        *("PEPTIDE", *"1{[Abu].[", "me", *"L].V.[dA].[", "am", *"]}$"),
        *("PEPTIDE", *"1,", "PEPTIDE", *"1,1:R1-5:R2$$$"),
    ]
    integration_expected_token_ids = [
        *(73, 39, 28, 26, 5, 52, 68, 27, 37, 26, 74, 15, 27, 37, 24, 37, 26, 54, 5, 27, 37, 26, 75, 27, 29, 32),
        *(73, 39, 33, 73, 39, 33, 39, 34, 6, 39, 36, 43, 34, 6, 40, 32, 32, 32),
    ]

    def get_input_output_texts(self, tokenizer):
        return HELM, HELM


@leave_out("A HELM string has no words", "test_alignment_methods")
@leave_out(
    "The vocabulary is fixed",
    "test_training_new_tokenizer",
    "test_training_new_tokenizer_with_special_tokens_change",
)
class HelmBertBackendTest(SavedTokenizer, TokenizersBackendTesterMixin, unittest.TestCase):
    """The tests for tokenizers of the tokenizers library."""
