"""Tokenizers of published checkpoints, without their code."""

from __future__ import annotations

import json
import warnings

import pytest
import torch
from transformers import DistilBertTokenizer, PreTrainedTokenizerFast

import encoders
from encoders import CheckpointError
from encoders.helmbert import HELMBertTokenizer
from tests.encoders.checkpoints.folders import code_was_run, write_code, write_json
from tests.encoders.checkpoints.tokenizer_files import HPLT_SPECIALS, write_word_piece
from tests.support import make_model

CYCLOSPORINE_START = "PEPTIDE1{[Abu].[Sar].[meL]"


@pytest.mark.parametrize("with_code", [True, False])
def test_published_helm_bert(with_code, tmp_path):
    """The hub has a tokenizer_config.json and code, and no vocabulary in a file."""
    special = {"pad_token": " ", "cls_token": "@", "bos_token": "@", "sep_token": "\n", "eos_token": "\n"}
    mapped = {"AutoTokenizer": ["tokenization_helmbert.HELMBertTokenizer", None]}
    write_json(
        tmp_path / "tokenizer_config.json",
        {
            **special,
            "unk_token": "§",
            "mask_token": "¶",
            "model_max_length": 512,
            "clean_up_tokenization_spaces": False,
            "auto_map": mapped,
            "tokenizer_class": "HELMBertTokenizer",
        },
    )
    write_json(
        tmp_path / "config.json", {"model_type": "helmbert", "vocab_size": 78, "auto_map": {"AutoConfig": "c.C"}}
    )
    if with_code:
        write_code(tmp_path, "tokenization_helmbert", "c")
    tokenizer = encoders.load_tokenizer(str(tmp_path))
    assert isinstance(tokenizer, HELMBertTokenizer)
    assert tokenizer("PEPTIDE1{A.C.D.E}$$$$").input_ids == [
        *(1, 73, 39, 28, 5, 37, 9, 37, 8, 37, 10, 29, 32, 32, 32, 32, 2)
    ]
    assert encoders.load_tokenizer(str(tmp_path), strict=True).strict
    assert not code_was_run(tmp_path)
    tokenizer.save_pretrained(tmp_path / "saved")
    assert "auto_map" not in (tmp_path / "saved" / "tokenizer_config.json").read_text()
    again = encoders.load_tokenizer(str(tmp_path / "saved"))
    assert again(CYCLOSPORINE_START).input_ids == tokenizer(CYCLOSPORINE_START).input_ids


@pytest.mark.parametrize("specials", [["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]", "[BOS]", "[EOS]"], HPLT_SPECIALS])
def test_tokenizer_json_is_all_that_is_needed(specials, tmp_path):
    size = write_word_piece(tmp_path, specials)
    write_json(tmp_path / "config.json", {"auto_map": {"AutoConfig": "c.C"}, "vocab_size": size})
    tokenizer = encoders.load_tokenizer(str(tmp_path))
    direct = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    for text in ("hello world 42", "ø æ å!", "a [MASK] b"):
        assert tokenizer(text, text).input_ids == direct(text, text).input_ids
    assert tokenizer.mask_token_id == specials.index("[MASK]")
    (tmp_path / "tokenizer_config.json").unlink()
    assert encoders.load_tokenizer(str(tmp_path))("hello").input_ids == tokenizer("hello").input_ids


@pytest.mark.parametrize("named", ["BertTokenizer", "LtgBertTokenizer", "DistilBertTokenizer", None])
def test_the_named_class_does_not_matter(named, tmp_path):
    write_word_piece(tmp_path, HPLT_SPECIALS, tokenizer_class=named)
    assert encoders.load_tokenizer(str(tmp_path))("world").input_ids[0] == 2


@pytest.mark.parametrize(("lower", "ids"), [(True, [2, 5, 6, 3]), (False, [2, 1, 6, 3])])
def test_vocabulary_of_distilbert(lower, ids, tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join([*HPLT_SPECIALS, "hello", "world"]) + "\n", encoding="utf-8")
    write_json(tmp_path / "tokenizer_config.json", {"do_lower_case": lower, "model_max_length": 512})
    tokenizer = encoders.load_tokenizer(str(tmp_path))
    assert isinstance(tokenizer, DistilBertTokenizer)
    assert tokenizer("Hello world").input_ids == ids
    assert tokenizer.model_max_length == 512


def test_ids_outside_the_embedding(tmp_path):
    """HPLT names [BOS] and [EOS], which are in no vocabulary: ids beyond the embedding."""
    size = write_word_piece(tmp_path, HPLT_SPECIALS, bos_token="[BOS]", eos_token="[EOS]")
    make_model("norbert3-nano", "masked-lm", vocab_size=size).save_pretrained(tmp_path)
    message = rf"no embedding for \({size} rows\): '\[BOS\]' \({size}\), '\[EOS\]' \({size + 1}\)\. A batch that holds"
    with pytest.warns(UserWarning, match=message) as caught:
        tokenizer = encoders.load_tokenizer(str(tmp_path))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert len(tokenizer) == size + 2
    model = encoders.load(str(tmp_path), task="masked-lm")
    with torch.no_grad():
        assert model(**tokenizer("hello world", return_tensors="pt")).logits.shape[-1] == size
        with pytest.raises(ValueError, match=rf"input_ids\[0, 1\] is {size}; allowed: 0 \.\. {size - 1}"):
            model(**tokenizer("[BOS] hello", return_tensors="pt"))


def test_a_vocabulary_that_fits_is_not_warned_of(tmp_path):
    size = write_word_piece(tmp_path, HPLT_SPECIALS)
    write_json(tmp_path / "config.json", {"vocab_size": size})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert len(encoders.load_tokenizer(str(tmp_path))) == size
    assert not caught


def test_no_tokenizer(tmp_path):
    with pytest.raises(CheckpointError, match=r"holds no tokenizer that can be read: needed is tokenizer\.json"):
        encoders.load_tokenizer(str(tmp_path))
    with pytest.raises(CheckpointError, match="there is no folder"):
        encoders.load_tokenizer(str(tmp_path / "absent" / "folder"))


@pytest.mark.parametrize("content", ["", "{}", '{"model": {"type": "WordPiece"}}', "nonsense"])
def test_unreadable_tokenizer(content, tmp_path):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(CheckpointError, match="the tokenizer can't be read"):
        encoders.load_tokenizer(str(tmp_path))


def test_links_are_not_followed(tmp_path):
    (tmp_path / "folder").mkdir()
    write_word_piece(tmp_path, HPLT_SPECIALS)
    (tmp_path / "folder" / "tokenizer.json").symlink_to(tmp_path / "tokenizer.json")
    with pytest.raises(CheckpointError, match="outside its folder"):
        encoders.load_tokenizer(str(tmp_path / "folder"))


def test_a_saved_tokenizer_loads_beside_its_model(tmp_path):
    """What `save_pretrained` writes for model and tokenizer into one folder."""
    size = write_word_piece(tmp_path, HPLT_SPECIALS)
    tokenizer = encoders.load_tokenizer(str(tmp_path))
    both = tmp_path / "both"
    make_model("distilbert-nano", None, vocab_size=size).save_pretrained(both)
    tokenizer.save_pretrained(both)
    assert "TokenizersBackend" in json.loads((both / "tokenizer_config.json").read_text())["tokenizer_class"]
    assert encoders.load_tokenizer(str(both))("hello world").input_ids == tokenizer("hello world").input_ids
    assert encoders.load(str(both)).config.vocab_size == size
