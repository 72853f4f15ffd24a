import pytest

from encoders.experiments.encoding import encode, refuse_longer_texts
from encoders.experiments.errors import ExperimentError
from encoders.experiments.labelling import labelled_texts
from encoders.experiments.tokenizers import shared_tokenizer
from tests.encoders.experiments.samples import SPLITS, sentence_rows

ROWS = sentence_rows()
ROWS[20]["text"] = "house " * 30
DATA = labelled_texts(ROWS, name="data.csv")
TOKENIZER = shared_tokenizer(DATA.train.texts)
LONGEST = next(name for name, split in DATA.splits.items() if 21 in split.rows)


def test_examples_hold_what_a_model_takes_and_nothing_else():
    encoded = encode(DATA, TOKENIZER, max_length=None)
    assert encoded.truncated == {"train": 0, "dev": 0, "test": 0}
    for split, examples in encoded.examples.items():
        assert [example["labels"] for example in examples] == DATA.labels(split)
        for example, text in zip(examples, DATA.splits[split].texts, strict=True):
            assert example.keys() == {"input_ids", "attention_mask", "labels"}
            assert example["input_ids"] == TOKENIZER(text)["input_ids"]
            assert set(example["attention_mask"]) == {1}


def test_truncated_texts_are_counted_and_keep_their_end_token():
    encoded = encode(DATA, TOKENIZER, max_length=20)
    assert encoded.truncated == {"train": 0, "dev": 0, "test": 0} | {LONGEST: 1}
    ids = max((example["input_ids"] for example in encoded.examples[LONGEST]), key=len)
    assert len(ids) == 20
    assert ids[-1] == TOKENIZER.sep_token_id


def test_rows_with_unknown_characters_are_counted_without_a_warning():
    rows = [{"text": f"PEPTIDE1{{A.{'Z' * (index % 10 == 0)}C}}$$$$", "label": "ab"[index % 2]} for index in range(40)]
    rows = [{**row, "split": SPLITS[index // 2 % 8]} for index, row in enumerate(rows)]
    data = labelled_texts(rows, name="data.csv")
    unknown = encode(data, shared_tokenizer(data.train.texts), max_length=None).unknown
    assert unknown == {
        split: sum("Z" in row["text"] for row in rows if row["split"] == split) for split in ("train", "dev", "test")
    }
    assert sum(unknown.values()) == 4


def test_over_long_texts_are_refused_by_row_unless_truncation_was_asked_for():
    encoded = encode(DATA, TOKENIZER, max_length=None)
    refuse_longer_texts(DATA, encoded, limit=32, backbone="distilbert-nano")
    with pytest.raises(
        ExperimentError,
        match=rf"data.csv: 1 row over-long for distilbert-nano, which was made for 31 tokens; the longest is row 21 "
        rf"\({LONGEST}\) with 32; say --max-length 31",
    ):
        refuse_longer_texts(DATA, encoded, limit=31, backbone="distilbert-nano")
