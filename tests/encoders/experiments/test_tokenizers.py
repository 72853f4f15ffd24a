import json
import subprocess
import sys

import pytest

from encoders.experiments.tokenizers import is_helm, kind_of, shared_tokenizer, wordpiece_tokenizer
from tests.encoders.experiments.samples import peptide_rows, sentence_rows

SENTENCES = [row["text"] for row in sentence_rows()]
PEPTIDES = [row["helm"] for row in peptide_rows()]
CYCLOSPORINE_START = "PEPTIDE1{[Abu].[Sar].[meL]}$PEPTIDE1,PEPTIDE1,1:R1-3:R2$$$"


@pytest.mark.parametrize(
    ("texts", "helm"),
    [
        (PEPTIDES, True),
        (SENTENCES, False),
        (["PEPTIDE1{A.C}$$$$V2.0", "RNA1{R(A)P}$$$$", "not helm"], True),
        (["PEPTIDE1{A.C}$$$$", "a sentence about PEPTIDE1{A.C}$$$$"], False),
        (["PEPTIDE bonds are planar", "CHEM1 is a course"], False),
    ],
)
def test_helm_is_told_by_the_form_of_most_texts(texts: list[str], helm: bool):
    assert is_helm(texts) is helm


def test_helm_strings_get_the_published_vocabulary():
    tokenizer = shared_tokenizer(PEPTIDES)
    assert kind_of(tokenizer) == "HELMBertTokenizer"
    assert tokenizer("PEPTIDE1{A.C.D.E}$$$$")["input_ids"] == [
        1, 73, 39, 28, 5, 37, 9, 37, 8, 37, 10, 29, 32, 32, 32, 32, 2,
    ]  # fmt: skip


def test_other_texts_get_a_vocabulary_of_their_own():
    tokenizer = shared_tokenizer(SENTENCES)
    assert kind_of(tokenizer) == "WordPiece"
    assert tokenizer.convert_ids_to_tokens([0, 1, 2, 3, 4]) == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert (tokenizer.pad_token_id, tokenizer.mask_token_id) == (0, 4)
    assert tokenizer.tokenize("The HOUSE near the frost") == ["the", "house", "near", "the", "frost"]
    ids = tokenizer("house")["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == ["[CLS]", "house", "[SEP]"]


def test_accents_tell_letters_apart():
    tokenizer = wordpiece_tokenizer(["få kår får kar"] * 5)
    assert tokenizer("kår")["input_ids"] != tokenizer("kar")["input_ids"]


def test_unseen_letters_are_unknown_and_special_tokens_in_texts_are_kept_apart_from_words():
    tokenizer = wordpiece_tokenizer(["abc abc abc abc abc"])
    assert tokenizer.tokenize("abc xyz") == ["abc", "[UNK]"]


def test_rare_pieces_are_no_entries():
    texts = ["common"] * 5 + ["rare"] * 4
    assert {"common"} == {"common", "rare"} & set(wordpiece_tokenizer(texts).get_vocab())


def test_the_vocabulary_stays_below_its_size_but_has_every_letter():
    tokenizer = wordpiece_tokenizer(SENTENCES, vocabulary_size=10)
    letters = set("".join(SENTENCES).lower()) - {" "}
    assert letters < set(tokenizer.get_vocab())
    assert len(wordpiece_tokenizer(SENTENCES, vocabulary_size=80)) <= 80


def test_the_same_texts_give_the_same_vocabulary_in_every_process():
    program = (
        "import json, sys\n"
        "from encoders.experiments.tokenizers import wordpiece_tokenizer\n"
        "texts = [f'{a}{b}{c} {c}{b}' for a in 'abcdefgh' for b in 'aeiou' for c in 'xyzrst']\n"
        "print(json.dumps(sorted(wordpiece_tokenizer(texts, 70).get_vocab().items())))"
    )
    outputs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert len(json.loads(outputs[0])) == 70
    assert outputs[0] == outputs[1]
