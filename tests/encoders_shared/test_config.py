"""Configurations: types, values and combinations that are refused, and what is kept."""

import json

import pytest

from encoders_shared.config import (
    EncoderConfig,
    require_at_least,
    require_choice,
    require_probability,
    typed_fields,
)
from encoders_shared.errors import ConfigurationError


@typed_fields
class ToyConfig(EncoderConfig):
    model_type = "toy"

    vocab_size: int = 10
    hidden_size: int = 8
    num_hidden_layers: int = 1
    num_attention_heads: int = 2
    dropout: float | int = 0.1
    pad_token_id: int | None = 0
    pooling: str = "mean"


@typed_fields
class StrictToyConfig(ToyConfig):
    model_type = "strict-toy"

    width: int = 3

    def check(self):
        super().check()
        require_at_least("width", self.width, 2)


def test_defaults_and_arguments():
    config = ToyConfig(hidden_size=12, num_attention_heads=3, pooling="cls", num_labels=5, dropout=0, pad_token_id=None)
    assert (config.hidden_size, config.num_attention_heads, config.pooling) == (12, 3, "cls")
    assert (config.dropout, config.pad_token_id, config.vocab_size) == (0, None, 10)
    assert config.num_outputs == config.num_labels == 5


def test_unknown_keys_are_kept_as_published_files_have_them():
    config = ToyConfig(tie_weights_=True, output_past=False)
    assert (config.tie_weights_, config.output_past) == (True, False)
    assert config.to_dict()["tie_weights_"] is True


def test_saved_and_loaded(tmp_path):
    config = ToyConfig(hidden_size=16, num_labels=3, problem_type="regression", extra=[1, 2])
    config.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["hidden_size"] == 16
    assert ToyConfig.from_pretrained(tmp_path).to_dict() == config.to_dict()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("hidden_size", "8", r"'hidden_size' expected int, got str \(value: '8'\)"),
        ("hidden_size", 8.0, r"'hidden_size' expected int, got float"),
        ("hidden_size", None, r"'hidden_size' expected int, got NoneType"),
        ("num_hidden_layers", True, r"'num_hidden_layers' expected int, got bool"),
        ("dropout", "0.1", "'dropout'.*'0.1'"),
        ("pooling", 3, r"'pooling' expected str, got int"),
        ("pooling", "meen", r"pooling is 'meen'; allowed: mean, cls\. Did you mean 'mean'\?"),
        ("pooling", "max-over-time", r"pooling is 'max-over-time'; allowed: mean, cls\.$"),
        ("problem_type", "regresion", r"problem_type 'regresion' is not known.*Did you mean 'regression'\?"),
        ("vocab_size", 0, "vocab_size is 0; it must be at least 1"),
        ("hidden_size", -8, "hidden_size is -8; it must be at least 1"),
        ("num_hidden_layers", 0, "num_hidden_layers is 0; it must be at least 1"),
        ("num_attention_heads", 0, "num_attention_heads is 0; it must be at least 1"),
        ("num_attention_heads", 3, "hidden_size 8 is not a multiple of num_attention_heads 3"),
    ],
)
def test_refused(field, value, message):
    with pytest.raises(ConfigurationError, match=message):
        ToyConfig(**{field: value})


def test_a_value_set_later_has_its_type_checked_too():
    config = ToyConfig()
    with pytest.raises(ConfigurationError, match="'hidden_size' expected int, got str"):
        config.hidden_size = "8"
    assert config.hidden_size == 8


def test_values_set_later_are_checked_on_demand():
    config = ToyConfig()
    config.pooling = "max"
    with pytest.raises(ConfigurationError, match="pooling is 'max'"):
        config.check()


@pytest.mark.parametrize(("field", "value"), [("width", 1), ("width", "3"), ("pooling", "max"), ("hidden_size", 9)])
def test_a_family_adds_its_own_rules(field, value):
    assert StrictToyConfig(width=2).width == 2
    with pytest.raises(ConfigurationError, match=field):
        StrictToyConfig(**{field: value})


def test_require_at_least():
    require_at_least("x", 3, 3)
    with pytest.raises(ConfigurationError, match=r"x is 2\.5; it must be at least 3\."):
        require_at_least("x", 2.5, 3)


@pytest.mark.parametrize("value", [None, 0, 0.5, 1])
def test_probabilities(value):
    require_probability("p", value)


@pytest.mark.parametrize("value", [-0.1, 1.1, 10, float("nan")])
def test_no_probabilities(value):
    with pytest.raises(ConfigurationError, match=f"p is {value}; a probability between 0 and 1 is needed"):
        require_probability("p", value)


def test_require_choice():
    require_choice("x", "a", iter(["a", "b"]))
    with pytest.raises(ConfigurationError, match=r"x is 'alpha'; allowed: alphas, b\. Did you mean 'alphas'\?"):
        require_choice("x", "alpha", iter(["alphas", "b"]))
