"""Tokenizers trained from scratch."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerFast

import encoders

TEXTS = ["Katten på trappa, 1999.", "Ei katt til på ei anna trapp!", "Katter og trapper; 42 katter."] * 5
TRAINABLE = ("norbert", "distilbert")
BYTES = encoders.train_tokenizer(TEXTS, family="norbert", vocab_size=400)


@pytest.mark.parametrize("family", TRAINABLE)
def test_the_same_texts_give_the_same_vocabulary(family, tmp_path):
    tokenizers = [encoders.train_tokenizer(iter(TEXTS), family=family, vocab_size=400) for _ in range(2)]
    assert tokenizers[0].get_vocab() == tokenizers[1].get_vocab()
    assert len(tokenizers[0]) <= 400
    tokenizers[0].save_pretrained(tmp_path)
    for loaded in (AutoTokenizer.from_pretrained(tmp_path), PreTrainedTokenizerFast.from_pretrained(tmp_path)):
        assert loaded(TEXTS, padding=True)["input_ids"] == tokenizers[0](TEXTS, padding=True)["input_ids"]


def test_the_ids_fit_the_norbert_presets():
    config = encoders.create("norbert3-nano").config
    for kind in ("pad", "cls", "sep", "mask"):
        assert getattr(BYTES, f"{kind}_token_id") == getattr(config, f"{kind}_token_id")
    assert BYTES.convert_ids_to_tokens(106) == "[MASK_99]"
    assert min(BYTES("katt", add_special_tokens=False)["input_ids"]) >= config.num_reserved_ids
    assert BYTES("a", "b")["input_ids"][0] == config.cls_token_id
    assert BYTES.tokenize("1999") == ["1", "9", "9", "9"]


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60))
def test_bytes_give_back_any_text(text):
    ids = BYTES(text, add_special_tokens=False)["input_ids"]
    assert BYTES.unk_token_id not in ids
    assert BYTES.decode(ids) == text


def test_words_are_lower_cased_and_keep_their_accents():
    words = encoders.train_tokenizer(TEXTS, family="distilbert", vocab_size=200)
    assert words.tokenize("KATTEN PÅ") == words.tokenize("katten på")
    assert "å" in words.get_vocab()
    ids = words("katten på trappa", add_special_tokens=False)["input_ids"]
    assert words.decode(ids) == "katten på trappa"
    assert words.tokenize("漢") == ["[UNK]"]


SCRIPTS = ["Ελληνικά", "русский текст", "漢字 かな", "naïve café", "e\u0301 combining", "smile 😀 smile", "ø å æ"]


@pytest.mark.parametrize("family", TRAINABLE)
def test_scripts_survive(family, tmp_path):
    """Through encoding, saving and loading; words lose capitals alone, and gain spaces between ideographs."""
    size = {"norbert": 500, "distilbert": 300}[family]
    encoders.train_tokenizer(SCRIPTS * 4, family=family, vocab_size=size).save_pretrained(tmp_path)
    tokenizer = encoders.load_tokenizer(tmp_path)
    decoded = [tokenizer.decode(ids) for ids in tokenizer(SCRIPTS, add_special_tokens=False)["input_ids"]]
    lossy = {"Ελληνικά": "ελληνικά", "漢字 かな": "漢 字 かな"} if family == "distilbert" else {}
    assert decoded == [lossy.get(text, text) for text in SCRIPTS]


@pytest.mark.parametrize(
    ("family", "message"),
    [
        ("helmbert", r"'helmbert' has a fixed vocabulary: use its tokenizer class.*trained for: norbert, distilbert"),
        ("norbertt", r"'norbertt' is no family\. Did you mean 'norbert'"),
    ],
)
def test_families_without_a_recipe(family, message):
    with pytest.raises(ValueError, match=message):
        encoders.train_tokenizer(TEXTS, family=family, vocab_size=400)


def test_a_vocabulary_that_is_too_small():
    with pytest.raises(ValueError, match="vocab_size is 300; at least 363 are needed"):
        encoders.train_tokenizer(TEXTS, family="norbert", vocab_size=300)


def test_one_string_is_no_list_of_texts():
    with pytest.raises(TypeError, match="texts is one string; a list of strings is needed"):
        encoders.train_tokenizer("one text", family="norbert", vocab_size=400)
