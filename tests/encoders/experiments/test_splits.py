from collections import Counter

import pytest

from encoders.experiments.errors import ExperimentError
from encoders.experiments.splits import split_name, stratified_split


@pytest.mark.parametrize(
    ("cell", "split"),
    [("train", "train"), (" Dev ", "dev"), ("validation", "dev"), ("valid", "dev"), ("VAL", "dev"), ("test", "test")],
)
def test_usual_names_of_splits(cell: str, split: str):
    assert split_name(cell, row=1, column="split") == split


def test_another_name_is_refused_with_its_row():
    with pytest.raises(ExperimentError, match="row 7: 'held-out' in column 'fold' is no split; allowed are train, dev"):
        split_name("held-out", row=7, column="fold")


def test_every_stratum_gives_a_tenth_to_dev_and_to_test():
    texts = [f"text {index}" for index in range(300)]
    strata = ["a" if index < 200 else "b" for index in range(300)]
    counts = Counter(zip(strata, stratified_split(texts, strata), strict=True))
    assert counts == {
        ("a", "train"): 160, ("a", "dev"): 20, ("a", "test"): 20,
        ("b", "train"): 80, ("b", "dev"): 10, ("b", "test"): 10,
    }  # fmt: skip


def test_the_split_follows_from_the_texts_and_not_from_their_order():
    texts = [f"text {index}" for index in range(50)]
    forwards = dict(zip(texts, stratified_split(texts, ["a"] * 50), strict=True))
    backwards = dict(zip(texts[::-1], stratified_split(texts[::-1], ["a"] * 50), strict=True))
    assert forwards == backwards
    assert [text for text, split in forwards.items() if split == "dev"] != texts[:5]


def test_equal_texts_share_a_split_even_across_strata():
    texts = [f"text {index % 20}" for index in range(60)]
    strata = [index // 20 for index in range(60)]
    places = stratified_split(texts, strata)
    assert places[:20] == places[20:40] == places[40:]


def test_small_strata_reach_every_split_or_stay_in_train():
    texts = ["a1", "a2", "a3", "b1", "b2"]
    places = stratified_split(texts, [text[0] for text in texts])
    assert sorted(places[:3]) == ["dev", "test", "train"]
    assert places[3:] == ["train", "train"]
