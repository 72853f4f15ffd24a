"""Reading real files, whose folder is named by the environment variable ENCODERS_DATA."""

import os
from pathlib import Path

import pytest

from encoders.experiments.baselines import ngram_scores, ngram_vectorizer
from encoders.experiments.data import LabelledTexts
from encoders.experiments.labelling import labelled_texts
from encoders.experiments.tables import read_table
from encoders.experiments.tokenizers import is_helm, shared_tokenizer

FOLDER = Path(os.environ.get("ENCODERS_DATA") or Path(__file__).parents[4] / "shared" / "data")


def read(name: str, **columns: str) -> LabelledTexts:
    if not (FOLDER / name).is_file():
        pytest.skip(f"{FOLDER / name} is absent; set ENCODERS_DATA to the folder that holds {name}")
    return labelled_texts(read_table(FOLDER / name), name=name, **columns)


def test_peptides_that_were_not_measured_are_left_out():
    data = read("peptide_permeability.csv", text_column="helm", label_column="pampa", split_column="scaffold_split")
    assert data.task == "regression"
    assert data.sizes == {"train": 5511, "dev": 604, "test": 616}
    assert "left out: 725 rows with nothing in column 'pampa'" in data.notes
    assert data.repeated_texts == 0


def test_peptides_are_told_to_be_helm_and_every_character_is_known():
    data = read("peptide_permeability.csv", text_column="helm", label_column="caco2", split_column="random_split")
    assert is_helm(data.train.texts)
    assert ngram_vectorizer(data.train.texts).analyzer == "char"
    tokenizer = shared_tokenizer(data.train.texts)
    assert all(tokenizer.unk_token_id not in ids for ids in tokenizer(list(data.train.texts))["input_ids"])


def test_languages_are_told_apart_by_a_bag_of_ngrams():
    data = read("no_langid_nob_nno.csv")
    assert data.classes == ("nno", "nob")
    assert data.sizes == {"train": 1497, "dev": 250, "test": 500}
    assert ngram_scores(data)["test"]["accuracy"] > 0.85
