"""What changes if one encoder is replaced by another?"""

from __future__ import annotations

import json
import re
import warnings
from functools import cache
from itertools import permutations

import pytest

import encoders
from encoders.family import TASKS
from encoders.helmbert import HELMBertTokenizer
from tests.encoders.checkpoints.folders import golden_folder
from tests.encoders.checkpoints.tokenizer_files import HPLT_SPECIALS, write_word_piece
from tests.support import NANO, make_model

PAIRS = list(permutations(NANO, 2))
TEXTS = ["hello world", "", "world 42 hello", "hé"]
UNDECIDED = {"tokenizer", "vocabulary", "your texts", "CPU seconds for 4 x 128 tokens"}
"""What can't be told of two names alone."""


def lines(a, b, **options):
    return {line.topic: line for line in encoders.swap_report(a, b, **options).lines}


small = cache(make_model)


def folder_of(path, name, task=None, specials=HPLT_SPECIALS, **fields):
    """A checkpoint with a tokenizer that knows few words."""
    path.mkdir()
    size = write_word_piece(path, specials)
    make_model(name, task, vocab_size=size, **fields).save_pretrained(path)
    return path


@pytest.mark.parametrize("name", encoders.list_encoders())
def test_nothing_changes_with_the_same_encoder(name):
    report = encoders.swap_report(name, name)
    allowed = UNDECIDED | ({"licence of the weights"} if encoders.card(name).licence is None else set())
    assert {line.topic for line in report.actions} <= allowed
    assert all(line.a == line.b for line in report.lines)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_facts_are_those_of_the_cards(a, b):
    one, other, found = encoders.card(a), encoders.card(b), lines(a, b)
    for topic, field in {
        "vocabulary": "vocab_size",
        "hidden size": "hidden_size",
        "layers": "num_hidden_layers",
        "attention heads": "num_attention_heads",
        "parameters": "parameters",
        "positions": "positions",
        "position_ids": "position_ids",
        "harmless padding": "padding",
        "token_type_ids": "token_types",
        "pooling": "pooling",
        "languages": "languages",
    }.items():
        assert (found[topic].a, found[topic].b) == (getattr(one, field), getattr(other, field))
    longest = str(found["longest sequence"].b)
    assert longest.startswith("any") == (other.maximum_length is None or "any length" in other.beyond_maximum)
    assert (str(other.maximum_length) in longest) == (other.maximum_length is not None)
    for topic in ("pooling", "position_ids"):
        assert (found[topic].action is None) == (found[topic].a == found[topic].b), topic
    assert found["options of forward"].b == {task: ", ".join(names) for task, names in other.options.items()}


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_what_the_actions_warn_of_is_so(a, b):
    """A keyword that must go is refused, a label that must go too, and names of parameters do change."""
    found = lines(a, b)
    before, after = small(a, "masked-lm"), small(b, "masked-lm")
    gone = [name for name in before.forward_options if name not in after.forward_options]
    action = found["options of forward"].action
    assert (action is not None) == bool(gone)
    assert all(name in str(action) for name in gone)
    assert found["first masked-LM label"].b == after.num_reserved_ids
    refused = after.num_reserved_ids > before.num_reserved_ids
    assert (found["first masked-LM label"].action is not None) == refused
    prefix = found["prefix under a head"].b
    for task in TASKS:
        roots = {key.partition(".")[0] for key in small(b, task).state_dict()}
        assert (prefix in roots) == (prefix != "none")
        for part in found["modules of the heads"].b[task].split(", "):
            small(b, task).get_submodule(part)


def test_lengths():
    absolute, relative = "distilbert-base-cased", "norbert3-base"
    assert lines(relative, absolute)["longest sequence"].action == (
        "keep to 512 tokens; beyond that: an error; resize_position_embeddings adds positions"
    )
    assert lines(relative, absolute, length=513)["longest sequence"].action is not None
    assert lines(relative, absolute, length=512)["longest sequence"].action is None
    assert lines(absolute, relative, length=9_000)["longest sequence"].action is None


def test_licences_languages_and_weights():
    found = lines("helmbert-base", "distilbert-base-cased")
    assert (found["licence of the weights"].a, found["licence of the weights"].b) == ("MIT", "Apache-2.0")
    assert found["licence of the weights"].action == "check that it allows your use"
    assert found["languages"].action == "check that your texts are in them"
    assert found["trained weights"].action is None
    assert lines("norbert3-xs", "norbert3-nano")["trained weights"].action == "train from scratch"
    assert lines("norbert3-xs", "ltg-bert-base")["licence of the weights"].action == (
        "look it up where the weights come from"
    )
    assert lines("distilbert-nano", "distilbert-base-cased")["weights in MB, float32"].action == (
        "plan for 82.3 times the memory"
    )


def test_texts_are_measured_with_both_tokenizers(tmp_path):
    """Counted by hand: UNK Ġworl ##d | Ġworl ##d Ġ 4 2 UNK | UNK, each with two more tokens; and letter by letter."""
    a = folder_of(tmp_path / "a", "norbert3-nano", num_reserved_ids=5)
    b = folder_of(tmp_path / "b", "distilbert-nano", pooling="mean")
    letters = HELMBertTokenizer()
    found = lines(a, b, texts=TEXTS, length=5)
    for topic, value in (("tokens per word", 10 / 6), ("share of unknown tokens", 3 / 16), ("share cut at 5", 1 / 3)):
        assert (found[topic].a, found[topic].b) == (value, value), topic
        assert found[topic].action is None
    assert found["vocabulary"].action is None
    spelled = lines(a, b, texts=TEXTS, length=12, tokenizer_b=letters)
    assert spelled["vocabulary"].action == "encode your texts anew, with the new tokenizer"
    assert spelled["tokens per word"].b == sum(map(len, TEXTS)) / 6
    assert "longer" in spelled["tokens per word"].action
    assert spelled["share cut at 12"].b == 2 / 3
    assert spelled["share cut at 12"].action.startswith("66.7% of your texts are cut (before: 0.0%)")
    assert spelled["share of unknown tokens"].b == 6 / 33  # spaces, w and é


def test_a_tokenizer_that_does_not_fit_its_model():
    letters, left = HELMBertTokenizer(), HELMBertTokenizer(padding_side="left")

    def action(name, tokenizer):
        return lines("helmbert-nano", name, tokenizer_b=tokenizer)["tokenizer"].action

    assert action("distilbert-nano", letters) is None
    assert action("distilbert-nano", left) == (
        "set tokenizer.padding_side = 'right' (harmless padding: right; left with position_ids)"
    )
    assert action("norbert3-nano", left) is None
    letters.add_tokens(["word"])
    assert action("helmbert-nano", letters) == "it has 79 words, the model 78: texts with the others are refused"


def test_each_side_is_cut_at_its_own_limit(tmp_path):
    a = folder_of(tmp_path / "a", "norbert3-nano", num_reserved_ids=5, max_position_embeddings=4)
    b = folder_of(tmp_path / "b", "distilbert-nano", max_position_embeddings=4)
    found = lines(a, b, texts=TEXTS)["share cut at its longest"]
    assert (found.a, found.b) == (0.0, 2 / 3)


def test_what_names_cannot_say_is_said(tmp_path):
    folder = folder_of(tmp_path / "a", "norbert3-nano", num_reserved_ids=5)
    found = lines(folder, "distilbert-nano", texts=TEXTS)
    assert found["tokenizer"].action == (
        "distilbert-nano is a preset, and its tokenizer comes with its weights: give its folder "
        "(tokenizer_b=..., --tokenizer-b FOLDER)"
    )
    assert found["tokens per word"].a > 1
    assert found["tokens per word"].b is None
    assert found["tokens per word"].action is None
    assert found["licence of the weights"].a is None
    assert lines("distilbert-nano", folder)["languages"].action == "look it up where the weights come from"
    assert lines("helmbert-nano", folder, tokenizer_b=folder)["tokenizer"].action is None


def test_trained_heads_and_open_questions(tmp_path):
    masked_lm = folder_of(tmp_path / "a", "distilbert-nano", "masked-lm")
    bare = folder_of(tmp_path / "b", "distilbert-nano")
    assert lines(masked_lm, bare)["trained head"].action == "train a head for masked-lm anew"
    assert lines(bare, masked_lm)["trained head"].action is None
    open_folder, _, _ = golden_folder("hplt", "norbert-contiguous-masked-lm", tmp_path)
    with warnings.catch_warnings(action="error"):
        found = lines(bare, open_folder)["config.json"]
    assert found.b == "leaves something open"
    assert "position projections" in found.action


@pytest.mark.parametrize(("a", "b"), [("distilbert-nano", "norbert3-nano"), ("norbert3-nano", "helmbert-nano")])
def test_speed_is_measured_where_it_is_asked_for(a, b):
    found = lines(a, b, measure=True, length=16)["CPU seconds for 4 x 16 tokens"]
    assert found.a > 0
    assert found.b > 0
    assert (found.action is not None) == (found.b > 1.2 * found.a)


def test_a_report_is_data_and_text():
    report = encoders.swap_report("helmbert-nano", "distilbert-nano", texts=TEXTS)
    facts = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert (facts["a"], facts["b"]) == ("helmbert-nano", "distilbert-nano")
    assert all(line.keys() == {"topic", "a", "b", "action"} for line in facts["lines"])
    assert len({line["topic"] for line in facts["lines"]}) == len(facts["lines"])
    text = str(report)
    todo, rest = text.split("\nnothing to do")
    assert text.startswith(
        f"helmbert-nano  ->  distilbert-nano: {len(report.actions)} of {len(report.lines)} points need action\n"
    )
    assert todo.count("action: ") == len(report.actions)
    for line in report.lines:
        assert f"\n  {line.topic}" in (rest if line.action is None else todo), line.topic
    assert re.search(r"\n  - masked-lm +use_emd  ->  none\n", todo)


def test_refusals(tmp_path):
    with pytest.raises(ValueError, match="Did you mean 'norbert3-nano'"):
        encoders.swap_report("norbert3-nano", "norbert-nano")
    with pytest.raises(ValueError, match="length is 0; at least 1 token"):
        encoders.swap_report("norbert3-nano", "norbert3-nano", length=0)
    with pytest.raises(encoders.CheckpointError, match="has no config"):
        encoders.swap_report("norbert3-nano", tmp_path)
    with pytest.raises(encoders.CheckpointError, match="no tokenizer that can be read"):
        encoders.swap_report("norbert3-nano", "norbert3-nano", tokenizer_a=tmp_path)


def test_one_string_is_no_list_of_texts():
    with pytest.raises(TypeError, match="texts is one string; a list of strings is needed"):
        encoders.swap_report("norbert3-nano", "distilbert-nano", texts="one text")
