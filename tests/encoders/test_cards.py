"""Cards: their form, the published parameter counts, and every claim checked against the models."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest
import torch

import encoders
from encoders.family import TASKS
from encoders.registry import families, family_of
from encoders_shared.pooling import POOLINGS
from tests.encoders.claims import CLAIMS
from tests.support import ALL_TASKS, NANO, inputs_of, make_batch, make_model, predictions

NAMES = encoders.list_encoders()
DOCUMENT = Path(__file__).parents[2] / "docs" / "checkpoints.md"
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
SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")


def is_size(value):
    return type(value) is int and value > 0


def is_line(value):
    return type(value) is str and value == value.strip() != "" and "\n" not in value


def matches(pattern):
    return lambda value: type(value) is str and re.fullmatch(pattern, value) is not None


def one_of(choices):
    return lambda value: type(value) is str and value in choices


def none_or(rule):
    return lambda value: value is None or rule(value)


def list_of(rule):
    return lambda value: type(value) is list and all(map(rule, value)) and len(set(value)) == len(value)


def by_task(rule):
    return lambda value: type(value) is dict and value.keys() <= {"bare", *TASKS} and all(map(rule, value.values()))


SCHEMA = {  # what each field may hold, after a journey through JSON
    "name": one_of(NAMES),
    "family": one_of(families()),
    "summary": is_line,
    "languages": is_line,
    **dict.fromkeys(SIZES, is_size),
    "parameters": is_size,
    "parameters_masked_lm": is_size,
    "maximum_length": none_or(is_size),
    "beyond_maximum": one_of(CLAIMS["beyond_maximum"]),
    "positions": one_of(CLAIMS["positions"]),
    "position_ids": one_of(CLAIMS["position_ids"]),
    "token_types": one_of(CLAIMS["token_types"]),
    "pooling": one_of(POOLINGS),
    "padding": one_of(CLAIMS["padding"]),
    "tasks": lambda value: value == list(TASKS),
    "options": by_task(list_of(matches(r"[a-z_]+"))),
    "notes": list_of(one_of(CLAIMS["notes"])),
    "paper": matches(r"[A-Z][a-z]+ et al\. (19|20)\d\d, .+"),
    "checkpoint": none_or(matches(r"[\w-]+/[\w{}-]+")),
    "licence": none_or(one_of({"Apache-2.0", "MIT"})),
}


card_of = cache(encoders.card)


@cache
def facts_of(name):
    """A card after a journey through JSON."""
    return json.loads(json.dumps(card_of(name).to_dict(), allow_nan=False))


@pytest.mark.parametrize("name", NAMES)
def test_the_form_of_a_card(name):
    facts = facts_of(name)
    assert list(facts) == list(SCHEMA)
    wrong = {field: facts[field] for field, rule in SCHEMA.items() if not rule(facts[field])}
    assert not wrong


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_parameter_counts(name):
    bare, masked_lm = PUBLISHED[name]
    facts = facts_of(name)
    assert facts["parameters_masked_lm"] == masked_lm
    assert bare is None or facts["parameters"] == bare


def test_every_encoder_is_covered():
    assert set(NAMES) == {*PUBLISHED, *NANO}


@pytest.mark.parametrize("name", NAMES)
def test_facts_fit_together(name):
    facts = facts_of(name)
    assert facts["family"] == family_of(name).name
    if said := re.search(r"([\d.]+) M\b", facts["summary"]):
        ratios = [facts[field] / 1e6 / float(said[1]) for field in ("parameters", "parameters_masked_lm")]
        assert min(abs(ratio - 1) for ratio in ratios) < 0.02, ratios
    assert facts["licence"] is None or facts["checkpoint"] is not None
    if facts["checkpoint"] is not None:
        owner = facts["checkpoint"].partition("/")[0]
        assert f"{owner}/" in DOCUMENT.read_text(encoding="utf-8")
    text = str(card_of(name))
    for field in ("name", "paper", "positions", "position_ids", "padding", "pooling", "beyond_maximum"):
        assert facts[field] in text
    assert f"{facts['parameters']:,}" in text


@pytest.mark.parametrize("name", NANO)
def test_nano_sizes(name):
    facts = facts_of(name)
    assert facts["parameters"] - facts["vocab_size"] * facts["hidden_size"] < 1_000_000
    assert facts["checkpoint"] is None


@pytest.mark.parametrize("name", NANO)
def test_sizes_are_those_of_a_model(name):
    facts = facts_of(name)
    model = encoders.create(name).eval()
    ids = torch.randint(0, facts["vocab_size"], (1, 6))
    output = model(input_ids=ids, output_hidden_states=True, output_attentions=True)
    assert model.get_input_embeddings().weight.shape == (facts["vocab_size"], facts["hidden_size"])
    assert output.last_hidden_state.shape[-1] == facts["hidden_size"]
    assert len(output.attentions) == len(output.hidden_states) - 1 == facts["num_hidden_layers"]
    assert output.attentions[0].shape[1] == facts["num_attention_heads"]
    widths = {
        size // 2 if size == 2 * facts["intermediate_size"] else size for p in model.parameters() for size in p.shape
    }
    assert facts["intermediate_size"] in widths
    for task, field in ((None, "parameters"), ("masked-lm", "parameters_masked_lm")):
        assert encoders.create(name, task=task).num_parameters() == facts[field]


@pytest.mark.parametrize("name", NANO)
def test_the_maximum_length_is_that_of_the_configuration(name):
    """What happens beyond it is among the claims."""
    limit = facts_of(name)["maximum_length"]
    assert limit == family_of(name).maximum_length(encoders.create(name).config, "masked-lm")
    assert limit is None or limit == encoders.create(name).config.max_position_embeddings


@pytest.mark.parametrize("name", NANO)
def test_pooling(name):
    pooling = facts_of(name)["pooling"]
    inputs = inputs_of(make_batch(None))
    model = make_model(name, None)
    output = model(**inputs)
    expected = POOLINGS[pooling](output.last_hidden_state, inputs["attention_mask"].bool())
    assert torch.equal(output.pooler_output, expected)


@pytest.mark.parametrize("name", NANO)
@pytest.mark.parametrize("task", ALL_TASKS)
def test_options_are_the_keywords_that_forward_takes(name, task):
    options = facts_of(name)["options"]
    model = make_model(name, task)
    inputs = inputs_of(make_batch(task))
    for option in {name for names in options.values() for name in names}:
        if option in options.get(task or "bare", ()):
            assert predictions(model(**inputs, **{option: True})).isfinite().any()
        else:
            with pytest.raises(TypeError, match=f"unknown keyword '{option}'"):
                model(**inputs, **{option: True})
    assert tuple(options.get(task or "bare", ())) == model.forward_options


@pytest.mark.parametrize(
    ("name", "claim", "check"),
    [
        pytest.param(name, claim, CLAIMS[field].get(claim), id=f"{name}-{field}-{number}")
        for name in NANO
        for field in CLAIMS
        for value in [facts_of(name)[field]]
        for number, claim in enumerate([value] if isinstance(value, str) else value)
    ],
)
def test_a_claim_is_what_the_model_does(name, claim, check):
    assert check is not None, f"{claim!r} has no check in tests/encoders/claims.py"
    check(name)


def test_no_check_is_left_without_a_claim():
    said = {field: set() for field in CLAIMS}
    for name in NAMES:
        for field, claims in said.items():
            value = facts_of(name)[field]
            claims.update([value] if isinstance(value, str) else value)
    assert said == {field: set(checks) for field, checks in CLAIMS.items()}
