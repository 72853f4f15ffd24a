"""Cards: the published parameter counts, and every claim checked against the models."""

from __future__ import annotations

import json

import pytest

import encoders
from encoders.family import TASKS

PUBLISHED = {  # bare model, or with the masked-LM head and its decoder tied; see the papers and model cards
    "helmbert-base": (54_195_456, 54_787_662),
    "norbert3-xs": (None, 15_021_776),
    "norbert3-small": (None, 40_684_112),
    "norbert3-base": (None, 124_080_464),
    "norbert3-large": (None, 354_454_352),
    "hplt-bert-base": (None, 124_984_832),
    "ltg-bert-xs": (None, 8_533_888),
    "ltg-bert-small": (None, 27_741_952),
    "ltg-bert-base": (None, 98_229_760),
    "distilbert-base-uncased": (66_362_880, 66_985_530),
    "distilbert-base-cased": (65_190_912, 65_812_036),
    "distilbert-base-multilingual-cased": (134_734_080, 135_445_755),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_parameter_counts(name):
    bare, masked_lm = PUBLISHED[name]
    card = encoders.card(name)
    assert card.parameters_masked_lm == masked_lm
    assert bare is None or card.parameters == bare


def test_every_encoder_is_covered():
    assert set(encoders.list_encoders()) == {*PUBLISHED, *encoders.list_encoders("*-nano")}


@pytest.mark.parametrize("name", encoders.list_encoders("*-nano"))
def test_nano_sizes(name):
    card = encoders.card(name)
    assert card.parameters - card.vocab_size * card.hidden_size < 1_000_000


@pytest.mark.parametrize("name", encoders.list_encoders())
def test_a_card_says_what_the_model_is(name):
    card = encoders.card(name)
    facts = card.to_dict()
    assert json.loads(json.dumps(facts)) == json.loads(json.dumps(facts, default=list))
    assert card.tasks == TASKS
    assert card.token_types == "ignored"
    assert (card.licence is None) <= (card.checkpoint is None or name.startswith("ltg"))
    text = str(card)
    for value in (card.name, f"{card.parameters:,}", card.paper, card.positions, card.padding, card.pooling):
        assert value in text


@pytest.mark.parametrize("name", encoders.list_encoders("*-nano"))
def test_options_are_the_keywords_that_forward_takes(name):
    card = encoders.card(name)
    for task in (None, *TASKS):
        options = encoders.create(name, task=task).forward_options
        assert card.options.get(task or "bare", ()) == options
