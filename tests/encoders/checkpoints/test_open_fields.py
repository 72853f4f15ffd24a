"""What config.json leaves open in NorBERT3 and its siblings, and how it is decided."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

import encoders
from encoders.norbert.checkpoints import reserved_ids
from tests.encoders.checkpoints.folders import FORMS, golden, write_json
from tests.support import assert_close, inputs_of

NORBERT = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]", "[BOS]", "[EOS]", *(f"[MASK_{i}]" for i in range(100))]
HPLT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"[MASK_{i}]" for i in range(1, 100)), "\u2581"]
BABYLM = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]", "[PAR]", "[TAB]"]
diagnose_warning = pytest.mark.filterwarnings("ignore:.*encoders diagnose")


def write_vocabulary(folder, specials):
    """A tokenizer.json of 140 words: reserved ones, then the byte alphabet as far as there is room."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = [*specials, *letters][:140]
    tokenizer = Tokenizer(models.WordPiece({word: index for index, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.add_special_tokens(specials)
    tokenizer.save(str(folder / "tokenizer.json"))


def write(form, tmp_path, vocabulary=None, folder=None, **fields):
    head, config, tensors = golden("norbert-contiguous-masked-lm")
    path = tmp_path / (folder or FORMS[form].folder)
    path.mkdir()
    FORMS[form].write(path, head, {**config, **fields}, tensors["param"])
    if vocabulary is not None:
        write_vocabulary(path, vocabulary)
    return str(path)


@diagnose_warning
@pytest.mark.parametrize(
    ("form", "vocabulary", "reserved"),
    [
        ("norbert3", None, 107),
        ("norbert3", NORBERT, 107),
        ("hplt", None, 105),
        ("hplt", HPLT, 105),
        ("hplt", BABYLM, 0),
        ("bnc", None, 0),
        ("babylm", BABYLM, 0),
        ("babylm", NORBERT, 107),
    ],
)
def test_reserved_ids(form, vocabulary, reserved, tmp_path):
    model, report = encoders.load(write(form, tmp_path, vocabulary), task="masked-lm", return_report=True)
    assert model.config.num_reserved_ids == reserved
    source = "tokenizer.json" if vocabulary else "class names"
    assert any(f"num_reserved_ids {reserved} was told from {source}" in note for note in report.notes)


def test_reserved_ids_of_odd_vocabularies():
    words = {"[MASK_99]": 50}
    assert reserved_ids(words) == 51
    assert reserved_ids({**words, "!": 52}) == 52
    assert reserved_ids({**words, "!": 900}) == 51
    assert reserved_ids({**words, "!": 3}) == 51
    assert reserved_ids({"!": 3}) == 0


@pytest.mark.parametrize(
    ("form", "folder", "projection"),
    [
        ("norbert3", None, "interleaved"),
        ("bnc", None, "interleaved"),
        ("babylm", "bnc-bert-span", "interleaved"),
        ("babylm", None, "contiguous"),
        ("hplt", None, "contiguous"),
    ],
)
def test_position_projection(form, folder, projection, tmp_path, recwarn):
    """One state dict gives other numbers under each projection, those of its own reference (transformers #23037)."""
    source = write(form, tmp_path, folder=folder)
    loaded = encoders.load(source, task="masked-lm")
    assert loaded.config.position_projection == projection
    assert len(recwarn) == (projection == "contiguous")
    assert all("`encoders diagnose`" in str(warning.message) for warning in recwarn)

    stated = encoders.load(source, task="masked-lm", position_projection=projection)
    other = encoders.load(
        source, task="masked-lm", position_projection={"interleaved": "contiguous"}.get(projection, "interleaved")
    )
    assert len(recwarn) == (projection == "contiguous")
    _, _, tensors = golden("norbert-contiguous-masked-lm")
    mask = tensors["in"]["attention_mask"].bool()
    logits = [model(**inputs_of(tensors["in"])).logits[mask][:, 107:] for model in (stated, other, loaded)]
    assert (logits[0] - logits[1]).abs().max() > 1e-3
    assert_close(logits[2], logits[0], 1e-6)
    expected = tensors["out"]["logits"][mask][:, 107:]
    assert_close(logits[0 if projection == "contiguous" else 1], expected, 1e-5)


@diagnose_warning
def test_only_the_checkpoints_own_name_counts(tmp_path):
    (tmp_path / "bnc-user").mkdir()
    config = encoders.load(write("babylm", tmp_path / "bnc-user", _name_or_path="/data/bnc/run-7")).config
    assert config.position_projection == "contiguous"
    config = encoders.load(write("babylm", tmp_path, _name_or_path="/data/bnc-bert-order")).config
    assert config.position_projection == "interleaved"


def test_a_stated_projection_is_kept(tmp_path, recwarn):
    source = write("hplt", tmp_path, position_projection="interleaved", num_reserved_ids=20)
    model, report = encoders.load(source, task="masked-lm", return_report=True)
    assert (model.config.position_projection, model.config.num_reserved_ids) == ("interleaved", 20)
    assert not report.notes
    assert not recwarn
    model.save_pretrained(tmp_path / "again")
    config = encoders.load(str(tmp_path / "again"), task="masked-lm").config
    assert (config.position_projection, config.num_reserved_ids) == ("interleaved", 20)


@diagnose_warning
def test_special_ids(tmp_path):
    """tokenizer.json wins over a config.json that calls [MASK] the padding; the caller wins over both."""
    source = write("babylm", tmp_path, BABYLM)
    config = encoders.load(source).config
    assert (config.pad_token_id, config.cls_token_id, config.sep_token_id, config.mask_token_id) == (3, 1, 2, 4)
    assert encoders.load(source, pad_token_id=5).config.pad_token_id == 5
    config = encoders.load(write("hplt", tmp_path)).config
    assert (config.pad_token_id, config.cls_token_id, config.sep_token_id, config.mask_token_id) == (0, 2, 3, 4)


@diagnose_warning
@pytest.mark.parametrize("content", [{}, {"model": {"vocab": []}}, {"model": 3, "added_tokens": [{"id": "x"}, 7]}])
def test_odd_tokenizer_files_decide_nothing(content, tmp_path):
    source = write("hplt", tmp_path)
    write_json(tmp_path / FORMS["hplt"].folder / "tokenizer.json", content)
    assert encoders.load(source).config.num_reserved_ids == 105


def test_upstream_name_of_the_head_dropout(tmp_path):
    source = write("norbert3", tmp_path, cls_dropout=0.3)
    assert encoders.load(source).config.classifier_dropout == 0.3
    assert encoders.load(source, classifier_dropout=0.4).config.cls_dropout == 0.4
