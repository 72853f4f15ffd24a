"""Every field of every family's configuration: the types and values that are refused, by the name of the field."""

from __future__ import annotations

import time
from dataclasses import fields
from typing import Any, get_args, get_origin

import pytest
import torch

import encoders
from encoders import ConfigurationError
from encoders.registry import families
from encoders_shared import config as shared_config
from tests.support import NANO

CANDIDATES = (True, 768, 0.5, "768", None, [768], {"a": 768})
NOT_A_PROBABILITY = [(-0.1, "is -0.1; a probability"), (2, "is 2; a probability"), (float("nan"), "is nan; a prob")]
NO_TOKEN = [
    (-1, r"is -1; allowed: 0 \.\. "),
    (10**6, r"is 1000000; allowed: 0 \.\. \d+ \(vocab_size is \d+\), or None"),
]
AT_LEAST_1 = [(0, "is 0; it must be at least 1"), (-3, "is -3; it must be at least 1")]

WRONG: dict[str, list[tuple[Any, str]]] = {
    "activation": [("galu", "is 'galu'; allowed: .* Did you mean 'gelu'")],
    "attention_dropout": NOT_A_PROBABILITY,
    "attention_probs_dropout_prob": NOT_A_PROBABILITY,
    "classifier_dropout": NOT_A_PROBABILITY,
    "classifier_num_layers": [(-1, "is -1; it must be at least 0"), (10**7, "is 10,000,000; it must be at most 1,000")],
    "dim": [
        *AT_LEAST_1,
        (130, "hidden_size 130 is not a multiple of num_attention_heads"),
        (10**9, r" GB .*dim=1,000"),
    ],
    "dropout": NOT_A_PROBABILITY,
    "dtype": [("float", "is 'float'; allowed: float64"), (torch.int8, r"is torch\.int8; allowed: float64, float32")],
    "hidden_dim": [*AT_LEAST_1, (10**10, r"\d GB .*hidden_dim=10,000,000,000")],
    "hidden_dropout_prob": NOT_A_PROBABILITY,
    "hidden_size": [
        *AT_LEAST_1,
        (130, "130 is not a multiple of num_attention_heads"),
        (10**9, r" GB .*hidden_size=1,0"),
    ],
    "id2label": [
        ({"a": "b"}, "has the id 'a'"),
        ({-1: "b"}, "has the id -1"),
        ({}, "number of labels in id2label is 0"),
    ],
    "initializer_range": [(-0.1, "is -0.1; it must be between 0 and 1"), (float("inf"), "is inf; it must be")],
    "intermediate_size": [*AT_LEAST_1, (10**10, r"\d GB .*intermediate_size=10,000,000,000")],
    "layer_norm_eps": [(0.0, "is 0.0; it must be between 1e-12 and 1"), (float("nan"), "is nan; it must be")],
    "max_position_embeddings": [(0, "is 0; it must be at least"), (2**60, "whole number of 61 bits")],
    "max_relative_positions": [*AT_LEAST_1, (15, r"\(with these position_buckets\) is 15; it must be at least 16")],
    "n_heads": [*AT_LEAST_1, (7, "is not a multiple of num_attention_heads 7")],
    "n_layers": [*AT_LEAST_1, (10**7, r" GB .*n_layers=10,000,000"), (1_001, "is 1,001; it must be at most 1,000")],
    "ngie_dropout": NOT_A_PROBABILITY,
    "ngie_kernel_size": [*AT_LEAST_1, (4, "is 4; it must be odd")],
    "num_attention_heads": [*AT_LEAST_1, (7, "is not a multiple of num_attention_heads 7")],
    "num_hidden_layers": [*AT_LEAST_1, (10**7, r" GB .*layers=10,000,000"), (1_001, "is 1,001; it must be at most")],
    "num_reserved_ids": [(-1, "is -1; it must be at least 0")],
    "pad_token_id": NO_TOKEN,
    "pooling": [("meen", r"is 'meen'; allowed: mean, cls\. Did you mean 'mean'\?")],
    "pos_att_type": [
        ("c2q", "'c2q' names 'c2q'; allowed: 'c2p', 'p2c', .* Did you mean 'c2p'"),
        ("c2p,p2c", "allowed"),
    ],
    "position_bucket_size": [(1, "is 1; it must be at least 2"), (2_000, "is 2,000; it must be at most 1,024")],
    "position_buckets": [(3, "is 3; it must be at least 4"), (10**5, "is 100,000; it must be at most 2,048")],
    "position_projection": [("interlaced", "is 'interlaced'; allowed: .* Did you mean 'interleaved'")],
    "problem_type": [("regresion", "'regresion' is not known; allowed: .* Did you mean 'regression'")],
    "pruned_heads": [
        ({"x": [1]}, "has 'x': .*needed is the number of a layer"),
        ({0: ["1"]}, "has 0: .*needed is the number of a layer"),
        ({0: 1}, "has 0: 1; needed is the number of a layer"),
        ({99: [0]}, r"has the heads \[0\] of layer 99; there are layers 0 \.\. "),
        ({0: [99]}, r"has the heads \[99\] of layer 0"),
        ({0: list(range(4))}, "at least one must stay"),
    ],
    "qa_dropout": NOT_A_PROBABILITY,
    "seq_classif_dropout": NOT_A_PROBABILITY,
    "vocab_size": [*AT_LEAST_1, (10**12, r"\d GB in float32; this machine .*vocab_size=1,000,000,000,000")],
}
ANY_VALUE = {  # kept, read by no model
    "architectures",
    "bos_token_id",
    "chunk_size_feed_forward",
    "cls_token_id",
    "eos_token_id",
    "label2id",
    "mask_token_id",
    "sep_token_id",
    "transformers_version",
}

EVERY_FIELD = [
    pytest.param(family.config_class, field, id=f"{name}-{field.name}")
    for name, family in families().items()
    for field in fields(family.config_class)
]


def allowed_types(annotation) -> set[type]:
    types = [annotation] if isinstance(annotation, type) and not get_args(annotation) else get_args(annotation)
    return {annotation} if get_origin(annotation) is annotation else {get_origin(one) or one for one in types}


def names_of(config_class, name: str) -> list[str]:
    """The name of a field, and the other ones that it goes by."""
    return [name, *(alias for alias, own in config_class.attribute_map.items() if own == name)]


def nano(config_class) -> dict[str, Any]:
    """The fields of the family's smallest size."""
    name = next(name for name in NANO if encoders.registry.family_of(name).config_class is config_class)
    config = encoders.registry.family_of(name).presets[name].config()
    return {field.name: getattr(config, field.name) for field in fields(config_class) if field.name != "id2label"}


@pytest.mark.parametrize(("config_class", "field"), EVERY_FIELD)
def test_wrong_types(config_class, field):
    """In the constructor, and when the field is set later, under any of its names."""
    wrong = [value for value in CANDIDATES if type(value) not in allowed_types(field.type)]
    assert len(wrong) >= 3
    config = config_class()
    before = getattr(config, field.name)
    for value in wrong:
        for name in names_of(config_class, field.name):
            with pytest.raises(ConfigurationError, match=f"'{field.name}'"):
                config_class(**{name: value})
            with pytest.raises(ConfigurationError, match=f"'{field.name}'"):
                setattr(config, name, value)
    assert getattr(config, field.name) == before


@pytest.mark.parametrize(("config_class", "field"), EVERY_FIELD)
def test_wrong_values(config_class, field):
    name = field.name
    if name in ANY_VALUE or allowed_types(field.type) <= {bool, type(None)}:
        return
    assert name in WRONG, f"a new field: say here which values of {name} are refused"
    names = names_of(config_class, name)
    for value, message in WRONG[name]:
        start = time.perf_counter()
        with pytest.raises(ConfigurationError, match=message) as refusal:
            config_class(**{**nano(config_class), name: value})
        assert any(known in str(refusal.value) for known in names)
        assert time.perf_counter() - start < 5


def test_no_table_is_left_over():
    known = {field.name for family in families().values() for field in fields(family.config_class)}
    assert {*WRONG, *ANY_VALUE} <= known


@pytest.mark.parametrize("name", [name for family in families().values() for name in family.presets])
def test_estimated_parameters(name):
    """Exact for the presets; 10 % would do for an estimate in GB."""
    family = encoders.registry.family_of(name)
    config = family.presets[name].config()
    with torch.device("meta"):
        model = family.tasks[None](config)
    assert config.count_parameters() == sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    "changes",
    [
        {"pos_att_type": "c2p"},
        {"pos_att_type": "p2c", "position_buckets": 0},
        {"pos_att_type": "", "ngie_kernel_size": 5},
        {"share_att_key": True},
        {"position_bucket_size": 9, "intermediate_size": 7},
        {"sinusoidal_pos_embds": True, "max_position_embeddings": 33, "vocab_size": 77},
    ],
)
@pytest.mark.parametrize("name", NANO)
def test_estimated_parameters_of_variations(name, changes):
    known = {field.name for field in fields(encoders.registry.family_of(name).config_class)}
    own = {"hidden_size": 32, **{key: value for key, value in changes.items() if key in known}}
    with torch.device("meta"):
        model = encoders.create(name, **own)
    assert model.config.count_parameters() == sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("name", NANO)
def test_without_memory_there_is_room_for_any_size(name):
    with torch.device("meta"):
        assert encoders.create(name, vocab_size=10**10).config.vocab_size == 10**10
    with pytest.raises(ConfigurationError, match=r"takes 5,\d\d\d GB in float32; this machine has memory for"):
        encoders.create(name, vocab_size=10**10)


@pytest.mark.parametrize("name", NANO)
def test_the_limit_is_the_memory_of_the_machine(name, monkeypatch):
    needed = 4 * encoders.registry.family_of(name).presets[name].config().count_parameters()
    monkeypatch.setattr(shared_config, "memory_limit", lambda: needed)
    encoders.create(name)
    monkeypatch.setattr(shared_config, "memory_limit", lambda: needed - 1)
    with pytest.raises(ConfigurationError, match="GB in float32"):
        encoders.create(name)


@pytest.mark.parametrize("name", NANO)
def test_a_field_under_two_names(name):
    family = encoders.registry.family_of(name)
    for alias, own in family.config_class.attribute_map.items():
        value = getattr(family.config_class, own)
        assert getattr(family.config_class(**{own: value, alias: value}), own) == value
        other = 1 if isinstance(value, int) else 0.25
        if isinstance(value, str):
            continue
        with pytest.raises(ConfigurationError, match=f"'{alias}' and '{own}' are the same field"):
            family.config_class(**{own: other, alias: value})
