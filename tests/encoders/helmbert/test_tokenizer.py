"""HELM-BERT's tokenizer: the published ids, offsets, the three modes, saving and loading."""

import copy
import csv
import json
import os
import pickle
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from encoders.helmbert.config import HELMBertConfig
from encoders.helmbert.tokenizer import CHARACTERS, HELMBertTokenizer, HELMTextError

DATA = Path(os.environ.get("ENCODERS_DATA", Path(__file__).parents[3] / ".." / "shared" / "data"))

CYCLOSPORINE = (
    "PEPTIDE1{[Abu].[Sar].[meL].V.[meL].A.[dA].[meL].[meL].[meV].[Me_Bmt(E)]}$PEPTIDE1,PEPTIDE1,1:R1-11:R2$$$"
)
GOLDEN = {
    "PEPTIDE1{A.C.D.E}$$$$": "73 39 28 5 37 9 37 8 37 10 29 32 32 32 32",
    "PEPTIDE1{A.¶.D.E}$$$$": "73 39 28 5 37 4 37 8 37 10 29 32 32 32 32",
    "[meL]": "26 74 15 27",
    "[ac-]": "26 76 36 27",
    "[-am]": "26 36 75 27",
    "[ame]": "26 51 74 27",
    "[Lac]": "26 15 76 27",
    "PEPTIDE10": "73 39 38",
    "$": "32",
    "¶": "4",
    "[MASK]": "26 17 5 20 16 27",
    CYCLOSPORINE: "73 39 28 26 5 52 68 27 37 26 20 51 65 27 37 26 74 15 27 37 24 37 26 74 15 27 37 5 37 26 54 5 27 37 "
    "26 74 15 27 37 26 74 15 27 37 26 74 24 27 37 26 17 55 77 48 61 67 30 10 31 27 29 32 73 39 33 73 39 33 39 34 6 39 "
    "36 39 39 34 6 40 32 32 32",
}
GOLDEN_COMPATIBLE = {  # traps of the published scheme
    "/ 1*\t&": "73 0 39 74 75 76",
    "[C@@H]": "26 9 1 1 13 27",
    "PEPTIDE1{A. C}": "73 39 28 5 37 0 9 29",
    "A\n": "5 2",
    "\te ame": "75 55 0 51 74",
}
MODES = [{}, {"strict": True}, {"compatible": True}]
TOKENIZERS = [HELMBertTokenizer(**mode) for mode in MODES]
PIECES = [*CHARACTERS, "_", "PEPTIDE", "me", "am", "ac", "ame"]
REPRESENTABLE = st.lists(st.sampled_from(PIECES)).map("".join)
ANYTHING = st.lists(st.sampled_from([*PIECES, *"/*\t&@ \n§¶é<jU日", "<cls>", "[MASK]", "\te"])).map("".join)


def published_ids(text: str) -> list[int]:
    """The published scheme as it is described: replace in the whole string, then look characters up."""
    for word, code in {"PEPTIDE": "/", "me": "*", "am": "\t", "ac": "&"}.items():
        text = text.replace(word, code)
    vocabulary = " @\n§¶ARNDCEQGHILKMFPSTWYVX[]{}()$,:|-.0123456789BO>abcdefghilmnoprstuvxyz/*\t&_"
    return [1, *(vocabulary.index(c) if c in vocabulary else 3 for c in text), 2]


def tokens_at(text: str) -> Iterator[tuple[int, str]]:
    """Start and text of each token; `me` goes before `am`."""
    position = 0
    while position < len(text):
        rest = text[position:]
        words = [word for word in ("PEPTIDE", "me", "am", "ac") if rest.startswith(word)]
        token = words[0] if words and not rest.startswith("ame") else rest[0]
        yield position, token
        position += len(token)


@pytest.fixture(scope="module")
def tokenizer():
    return HELMBertTokenizer()


@pytest.fixture(scope="module")
def helm_strings():
    if not DATA.is_dir():
        pytest.skip(f"{DATA} is absent; ENCODERS_DATA names the folder of the data sets")
    strings = []
    for name in ("helm_mlm_3000.csv", "peptide_permeability.csv", "peptide_caco2_small.csv"):
        with open(DATA / name, encoding="utf-8", newline="") as file:
            strings += [row["helm"] for row in csv.DictReader(file)]
    return strings


def test_vocabulary(tokenizer):
    assert sorted(tokenizer.get_vocab().values()) == list(range(78))
    assert (tokenizer.pad_token_id, tokenizer.cls_token_id, tokenizer.sep_token_id) == (0, 1, 2)
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id) == (1, 2)
    assert (tokenizer.unk_token_id, tokenizer.mask_token_id) == (3, 4)
    assert tokenizer.convert_ids_to_tokens([5, 26, 38, 48, 51, 73, 74, 75, 76, 77]) == [
        *"A[0Ba",
        *("PEPTIDE", "me", "am", "ac", "_"),
    ]
    assert tokenizer.model_max_length == 512
    assert tokenizer.model_input_names == ["input_ids", "attention_mask"]


@pytest.mark.parametrize("text", GOLDEN)
@pytest.mark.parametrize("mode", [{}, {"compatible": True}])
@pytest.mark.filterwarnings("ignore:HELM-BERT's vocabulary has no token:UserWarning")
def test_golden_ids(text, mode):
    assert HELMBertTokenizer(**mode)(text).input_ids == [1, *map(int, GOLDEN[text].split()), 2]


@pytest.mark.parametrize("text", GOLDEN_COMPATIBLE)
def test_golden_ids_of_texts_that_the_published_scheme_mistakes(text):
    assert HELMBertTokenizer(compatible=True)(text).input_ids == [1, *map(int, GOLDEN_COMPATIBLE[text].split()), 2]


@settings(deadline=None)
@given(REPRESENTABLE)
def test_representable_texts(text):
    expected = [(start, start + len(token)) for start, token in tokens_at(text)]
    for tokenizer in TOKENIZERS:
        encoding = tokenizer(text, return_offsets_mapping=True)
        assert encoding.input_ids == published_ids(text)
        assert encoding.offset_mapping[1:-1] == expected
        assert tokenizer.decode(encoding.input_ids, skip_special_tokens=True) == text


@settings(deadline=None)
@given(ANYTHING)
def test_compatible_is_the_published_scheme(text):
    encoding = TOKENIZERS[-1](text, return_offsets_mapping=True)
    assert encoding.input_ids == published_ids(text)
    assert "".join(text[start:end] for start, end in encoding.offset_mapping) == text


def test_batches_pairs_padding_truncation(tokenizer):
    batch = tokenizer(["A", "A.C"], padding=True)
    assert batch.input_ids == [[1, 5, 2, 0, 0], [1, 5, 37, 9, 2]]
    assert batch.attention_mask == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]
    assert tokenizer(["A", "A.C"], padding=True, padding_side="left").input_ids[0] == [0, 0, 1, 5, 2]
    assert tokenizer("A", return_tensors="np").input_ids.shape == (1, 3)
    pair = tokenizer("A", "C", return_special_tokens_mask=True)
    assert pair.input_ids == [1, 5, 2, 9, 2]
    assert pair.special_tokens_mask == [1, 0, 1, 0, 1]
    assert pair.sequence_ids() == [None, 0, None, 1, None]
    assert "token_type_ids" not in pair
    assert tokenizer([("A", "C"), ("C", "A")]).input_ids[1] == [1, 9, 2, 5, 2]
    assert tokenizer([["A.", "[meL]"]], is_split_into_words=True).input_ids == [[1, 5, 37, 26, 74, 15, 27, 2]]
    long = tokenizer("A" * 800, truncation=True).input_ids
    assert (len(long), long[0], long[-1]) == (512, 1, 2)
    assert tokenizer("A.C", add_special_tokens=False).input_ids == tokenizer.encode("A.C")[1:-1] == [5, 37, 9]
    assert tokenizer.tokenize("PEPTIDE1[meL]") == ["PEPTIDE", "1", "[", "me", "L", "]"]


def test_default_mode_names_the_traps_once(tokenizer):
    texts = ["PEPTIDE1{A./*}", "\t&@", "A B\n", "RNA1{R(U)P}", "[meL].[MASK]", "A;C"]
    with pytest.warns(UserWarning, match="no token") as record:
        ids = tokenizer(texts).input_ids
    assert len(record) == 1
    message = str(record[0].message)
    for trap in ["'/'", "'*'", "'\\t'", "'&'", "'@'", "' '", "'\\n'", "'U'", "';'", "'[MASK]'"]:
        assert f"{trap} (" in message
    assert "'/' (the published code for 'PEPTIDE')" in message
    assert record[0].filename == __file__
    assert ids[1] == [1, 3, 3, 3, 2]
    assert ids[2] == [1, 5, 3, 48, 3, 2]
    assert ids[4] == published_ids(texts[4])


def test_default_mode_checks_second_texts_too(tokenizer):
    with pytest.warns(UserWarning, match="code for 'PEPTIDE'"):
        tokenizer("A", "/")
    with pytest.warns(UserWarning, match="code for 'PEPTIDE'"):
        tokenizer.tokenize("/")


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("PEPTIDE1{A./}", 11, "'/' .the published code for 'PEPTIDE'"),
        ("A*", 1, "code for 'me'"),
        ("A\t", 1, "code for 'am'"),
        ("A&", 1, "code for 'ac'"),
        ("[C@@H]", 2, "classification token"),
        (" A", 0, "padding token"),
        ("A\n", 1, "separator token"),
        ("A.§", 2, "unknown token"),
        ("[meL].[MASK].A", 6, "six ordinary characters; the mask is '¶'"),
        ("RNA1{R(U)P}$$$$", 7, "'U' .not in the vocabulary"),
        ("PEPTIDE1{[*N[C@H](CO)[C@@H](C)O |$_R1;;;;;;;$|]}$$$$", 10, "code for 'me'"),
        ("PEPTIDE1{C'2'.A}$$$$", 10, "not in the vocabulary"),
    ],
)
def test_strict_mode_refuses_with_the_position(text, position, reason):
    strict = HELMBertTokenizer(strict=True)
    with pytest.raises(HELMTextError, match=rf"position {position}: .*{reason}") as error:
        strict(["A", text])
    assert (error.value.position, error.value.text) == (position, text)
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)
    assert HELMBertTokenizer(compatible=True)(text).input_ids == published_ids(text)


def test_added_tokens_are_known(tokenizer):
    extended = copy.deepcopy(tokenizer)
    extended.strict = True
    assert extended.add_tokens(["U", "[jK]"]) == 2
    assert extended("U.[jK]").input_ids == [1, 78, 37, 79, 2]
    with pytest.raises(HELMTextError, match="'j'"):
        extended("j")
    with pytest.raises(HELMTextError, match="'U'"):
        HELMBertTokenizer(strict=True)("U")


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_saving_and_loading(mode, tmp_path):
    tokenizer = HELMBertTokenizer(**mode)
    tokenizer.add_tokens(["[dL]", "U"])
    tokenizer(["A"], padding="max_length", max_length=8, truncation=True)
    tokenizer.save_pretrained(tmp_path)
    HELMBertConfig().save_pretrained(tmp_path)
    AutoTokenizer.register(HELMBertConfig, tokenizer_class=HELMBertTokenizer, exist_ok=True)
    own, auto = HELMBertTokenizer.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    plain = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    text = CYCLOSPORINE + "/ *\t&@\n§¶[MASK]U[dL]\te ame"
    for other in (own, auto, plain, pickle.loads(pickle.dumps(tokenizer)), copy.deepcopy(tokenizer)):
        assert other.get_vocab() == tokenizer.get_vocab()
        assert other.model_max_length == 512
        assert other.special_tokens_map == tokenizer.special_tokens_map
        if isinstance(other, HELMBertTokenizer):
            assert (other.strict, other.compatible) == (tokenizer.strict, tokenizer.compatible)
        for a, b in ((CYCLOSPORINE + "[dL]U", None), ("A", "[meL]")):
            assert other(a, b, return_offsets_mapping=True) == tokenizer(a, b, return_offsets_mapping=True)
    assert type(auto) is HELMBertTokenizer
    if not mode.get("strict"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            expected = tokenizer(text, return_offsets_mapping=True)
            assert own(text, return_offsets_mapping=True) == plain(text, return_offsets_mapping=True) == expected
            assert plain.decode(expected.input_ids) == own.decode(expected.input_ids)


def test_mode_can_be_changed_when_loading(tmp_path):
    HELMBertTokenizer().save_pretrained(tmp_path)
    compatible = HELMBertTokenizer.from_pretrained(tmp_path, compatible=True)
    assert compatible("A/ @").input_ids == [1, 5, 73, 0, 1, 2]
    compatible.save_pretrained(tmp_path)
    strict = HELMBertTokenizer.from_pretrained(tmp_path, compatible=False, strict=True)
    assert strict.get_vocab() == HELMBertTokenizer().get_vocab()
    with pytest.raises(HELMTextError, match="position 1"):
        strict("A/")


@pytest.mark.parametrize("compatible", [False, True])
def test_published_folder(compatible, tmp_path):
    """The published repository has a tokenizer_config.json and Python code, but no tokenizer.json."""
    token = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    config = {
        "added_tokens_decoder": {str(i): {"content": c, **token} for i, c in enumerate(" @\n§¶")},
        "auto_map": {"AutoTokenizer": ["tokenization_helmbert.HELMBertTokenizer", None]},
        "bos_token": "@",
        "clean_up_tokenization_spaces": False,
        "cls_token": "@",
        "eos_token": "\n",
        "mask_token": "¶",
        "model_max_length": 512,
        "pad_token": " ",
        "sep_token": "\n",
        "tokenizer_class": "HELMBertTokenizer",
        "unk_token": "§",
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    tokenizer = HELMBertTokenizer.from_pretrained(tmp_path, compatible=compatible)
    assert len(tokenizer) == 78
    assert tokenizer(CYCLOSPORINE).input_ids == published_ids(CYCLOSPORINE)


def test_refuses_contradictions():
    with pytest.raises(ValueError, match="exclude one another"):
        HELMBertTokenizer(strict=True, compatible=True)
    with pytest.raises(ValueError, match="received 1 entries"):
        HELMBertTokenizer({"A": 0})
    with pytest.raises(ValueError, match=r"cls_token='\[CLS\]': HELM-BERT's is '<cls>'"):
        HELMBertTokenizer(cls_token="[CLS]")


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_real_peptides(mode, helm_strings):
    tokenizer = HELMBertTokenizer(**mode)
    encoded = tokenizer(helm_strings, return_offsets_mapping=True)
    assert not any(3 in ids for ids in encoded.input_ids)
    assert encoded.input_ids == [published_ids(text) for text in helm_strings]
    assert tokenizer.batch_decode(encoded.input_ids, skip_special_tokens=True) == helm_strings
    for text, offsets in zip(helm_strings, encoded.offset_mapping, strict=True):
        assert "".join(text[start:end] for start, end in offsets) == text


def test_speed(tokenizer):
    texts = [CYCLOSPORINE] * 2000
    seconds = []
    for _ in range(3):
        start = time.process_time()  # which does not count what else the machine does
        tokenizer(texts)
        seconds.append(time.process_time() - start)
    assert len(texts) / min(seconds) > 5000
