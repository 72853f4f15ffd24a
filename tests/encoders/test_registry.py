"""Encoders by name."""

from __future__ import annotations

import sys
import types
from dataclasses import replace

import pytest

import encoders
from encoders import registry
from encoders.family import TASKS


def test_names():
    assert encoders.list_encoders("norbert3-*") == [
        f"norbert3-{size}" for size in ("xs", "small", "base", "large", "nano")
    ]
    assert encoders.list_encoders("*-nano") == ["helmbert-nano", "norbert3-nano", "distilbert-nano"]
    assert encoders.list_encoders(family="helmbert") == ["helmbert-base", "helmbert-nano"]
    assert encoders.list_encoders("*base*", family="distilbert") == [
        "distilbert-base-uncased",
        "distilbert-base-cased",
        "distilbert-base-multilingual-cased",
    ]
    assert {"hplt-bert-base", "ltg-bert-xs", "ltg-bert-small", "ltg-bert-base"} < set(encoders.list_encoders())
    assert encoders.list_encoders("nothing") == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: encoders.create("norbert-base"), r"unknown encoder 'norbert-base'\. Did you mean 'norbert3-base'"),
        (lambda: encoders.card("distilbert"), r"unknown encoder 'distilbert'\. Did you mean 'distilbert-nano'"),
        (lambda: encoders.list_encoders(family="norbert3"), r"unknown family 'norbert3'.*Did you mean 'norbert'"),
        (lambda: encoders.create("helmbert-nano", task="mlm"), "unknown task 'mlm'.*Known: masked-lm, "),
        (lambda: encoders.create("helmbert-nano", task="masked_lm"), "Did you mean 'masked-lm'"),
        (lambda: encoders.create("helmbert-nano", droupout=1), "no field 'droupout'.*Fields: .*classifier_dropout"),
    ],
)
def test_wrong_names(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("name", encoders.list_encoders("*-nano"))
def test_overrides(name):
    model = encoders.create(name, task="sequence-classification", num_labels=7, pooling="mean", vocab_size=200)
    assert (model.config.num_labels, model.config.pooling, model.config.vocab_size) == (7, "mean", 200)
    assert encoders.create(name).config.vocab_size == encoders.card(name).vocab_size
    named = encoders.create(name, task="token-classification", id2label={0: "O", 1: "B"}, label2id={"O": 0, "B": 1})
    assert named.config.id2label == {0: "O", 1: "B"}


def test_a_family_of_your_own(monkeypatch):
    """It is listed and created like ours, once it is registered."""
    monkeypatch.setattr(registry, "_modules", dict(registry._modules))
    family = registry.families()["distilbert"]
    mine = types.ModuleType("my_family")
    mine.FAMILY = replace(family, name="mine", presets={"mine-nano": family.presets["distilbert-nano"]})
    monkeypatch.setitem(sys.modules, "my_family", mine)
    encoders.register_family("mine", "my_family")
    encoders.register_family("mine", "my_family")
    assert encoders.list_encoders(family="mine") == ["mine-nano"]
    assert encoders.create("mine-nano", task="masked-lm").config.dim == 128
    assert encoders.card("mine-nano").family == "mine"
    with pytest.raises(ValueError, match="'mine' is already registered, by my_family"):
        encoders.register_family("mine", "other")


def test_public_names():
    assert set(encoders.__all__) <= set(dir(encoders))
    assert all(getattr(encoders, name) is not None for name in encoders.__all__)
    assert encoders.TASKS == TASKS
    with pytest.raises(AttributeError, match="no attribute 'creat'"):
        _ = encoders.creat
