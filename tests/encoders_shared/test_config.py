"""Configurations: types, values and combinations that are refused, and what is kept."""

import json

import pytest
import torch

from encoders_shared.config import (
    LEAST_MEMORY,
    EncoderConfig,
    memory_limit,
    require_at_least,
    require_at_most,
    require_between,
    require_choice,
    require_probability,
    require_token_id,
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


@typed_fields
class AliasConfig(ToyConfig):
    model_type = "alias"
    attribute_map = {"width": "hidden_size"}


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


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("num_labels", "3", "num_labels is '3'; a whole number of at least 1 is needed"),
        ("num_labels", True, "num_labels is True; a whole number"),
        ("num_labels", 2.5, r"num_labels is 2\.5; a whole number"),
        ("num_labels", 0, "num_labels is 0; it must be at least 1"),
        ("num_labels", 10**9, "num_labels is 1,000,000,000; it must be at most 1,000,000"),
        ("id2label", {"a": "b"}, r"id2label \(or label2id\) has the id 'a'; ids are whole numbers from 0 on"),
        ("id2label", {True: "b"}, r"id2label \(or label2id\) has the id True"),
        ("id2label", {0: "a", 7: "b"}, r"has the ids 0, 7; its 2 labels need the ids 0 \.\. 1"),
        ("id2label", {0: "a", "0": "b"}, "has the ids 0, 0; its 2 labels"),
        ("label2id", {"a": "x"}, "label2id.* has the id 'x'"),
        ("id2label", {}, "the number of labels in id2label is 0; it must be at least 1"),
        ("id2label", ["a"], "'id2label'.*list"),
        ("label2id", 3, "'label2id'.*int"),
        ("dtype", "int8", "dtype is 'int8'; allowed: float64, float32, bfloat16, float16"),
        ("dtype", "nn", "dtype is 'nn'; allowed"),
        ("dtype", "flaot32", "dtype is 'flaot32'; allowed: .* Did you mean 'float32'"),
        ("torch_dtype", 3, "torch_dtype is 3; allowed"),
        (
            "attn_implementation",
            "flash",
            'attn_implementation.*"flash".* not supported',
        ),
        ("output_attentions", "yes", "output_attentions is 'yes'; allowed: True, False, None"),
        ("output_hidden_states", 3, "'output_hidden_states'.*value 3"),
        ("return_dict", "no", "'return_dict'.*'no'"),
        ("problem_type", 3, "'problem_type'.*value 3"),
        ("hidden_size", 2**60, "hidden_size is a whole number of 61 bits; at most 53 are allowed"),
        ("hidden_size", 10**400, "hidden_size is a whole number of 1329 bits"),
        ("check", 3, "ToyConfig has no field 'check': the name is a part of its class"),
        ("to_dict", {}, "ToyConfig has no field 'to_dict'"),
        ("attribute_map", {}, "ToyConfig has no field 'attribute_map'"),
        ("__class__", 3, "ToyConfig has no field '__class__'"),
        ("per_layer_config", {0: {"hidden_size": 4}}, "ToyConfig has no field 'per_layer_config'"),
        ("layer_types", 3, "ToyConfig can't keep the values of layer_types: 'int' object is not iterable"),
    ],
)
def test_what_transformers_does_not_check(field, value, message):
    with pytest.raises(ConfigurationError, match=message):
        ToyConfig(**{field: value})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_labels": 3, "id2label": {0: "a", 1: "b"}}, "num_labels is 3, but id2label names 2 labels; pass one"),
        ({"num_labels": 1, "problem_type": "single_label_classification"}, "problem_type.*requires `num_labels > 1`"),
    ],
)
def test_contradictions(fields, message):
    with pytest.raises(ConfigurationError, match=message):
        ToyConfig(**fields)


@pytest.mark.parametrize(
    ("id2label", "label2id", "message"),
    [
        ({0: "a", 1: "b"}, {"a": 1, "b": 0}, "'a' the number 1, but id2label has it at 0"),
        ({"0": "a", "1": "b"}, {"a": 0, "b": "0"}, "'b' the number '0', but id2label has it at 1"),
        ({0: "a", 1: "b"}, {"a": 0, "b": 2}, "'b' the number 2, but id2label has it at 1"),
        ({0: "a", 1: "a"}, {"a": 2}, "'a' the number 2, but id2label has it at 0, 1"),
        ({0: "LABEL_1", 1: "LABEL_0"}, {"LABEL_0": 0}, "'LABEL_0' the number 0, but id2label has it at 1"),
        ({0: "LABEL_0", 1: "b"}, {"b": 0}, "'b' the number 0, but id2label has it at 1"),
        ({0: 7, 1: True}, {True: 0}, "True the number 0, but id2label has it at 1"),
    ],
)
def test_labels_that_contradict_each_other(id2label, label2id, message):
    advice = "Set label2id too, or set it to None; to load such a file, pass id2label alone"
    with pytest.raises(ConfigurationError, match=rf"contradict each other: label2id gives {message}\. {advice}\."):
        ToyConfig(id2label=id2label, label2id=label2id)


@pytest.mark.parametrize(
    ("id2label", "label2id"),
    [
        ({0: "label"}, {"label": "0"}),
        ({"0": "a", "1": "b"}, {"b": 1}),
        ({0: "a", 1: "b"}, {"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": 2}),
        ({0: "LABEL_0", 1: "LABEL_1"}, {"a": 0, "b": 1}),
        ({0: False, 1: True}, {False: 0, True: 1}),
        ({0: 7, 1: 0.5, 2: 3}, {7: 0, 0.5: 1}),
        ({0: None}, {None: 0}),
        ({0: "a", 1: "a"}, {"a": 1}),
        ({0: "a"}, {}),
        ({0: "a", 1: "b"}, {"a": 0, "b": 1, "c": 2}),
        ({0: "positive", 1: "negative"}, {"positive": 0, "good": 0, "negative": "1", "bad": "1"}),
        ({0: "Positive", 1: "Negative"}, {"positive": 1, "negative": 0}),
        ({0: "a", 1: "b"}, {"x": 1, "y": 0}),
        (None, {"a": 0, "b": 0, "c": 1}),
        ({0: "LABEL_0", 1: "LABEL_1"}, {"yes": 1}),
        ({0: "LABEL_0", 1: "LABEL_1"}, {"x": 0, "y": 1, "z": 2}),
    ],
)
def test_labels_that_do_not_contradict_each_other(id2label, label2id, tmp_path):
    """Not either when they come back from a file."""
    config = ToyConfig(id2label=id2label, label2id=label2id)
    config.save_pretrained(tmp_path)
    assert ToyConfig.from_pretrained(tmp_path).num_labels == config.num_labels


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("id2label", {0: "b", 1: "a"}, "Set label2id too, or set it to None"),
        ("label2id", {"a": 1}, "Set label2id too, or set it to None"),
        ("id2label", {1: "a", 2: "b"}, r"need the ids 0 \.\. 1"),
        ("id2label", {0: "a"}, "problem_type.*requires `num_labels > 1`"),
        ("pooling", "max", "pooling is 'max'"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(field, value, message, tmp_path):
    config = ToyConfig(id2label={0: "a", 1: "b"}, label2id={"a": 0, "b": 1}, problem_type="single_label_classification")
    setattr(config, field, value)
    with pytest.raises(ConfigurationError, match=message):
        config.save_pretrained(tmp_path)
    with pytest.raises(ConfigurationError, match=message):
        config.to_json_file(tmp_path / "config.json", use_diff=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("label2id", [None, {"b": 0, "a": 1}])
def test_the_ways_to_save_labels_set_later(label2id, tmp_path):
    config = ToyConfig(id2label={0: "a", 1: "b"}, label2id={"a": 0, "b": 1})
    config.id2label, config.label2id = {0: "b", 1: "a"}, label2id
    config.save_pretrained(tmp_path)
    loaded = ToyConfig.from_pretrained(tmp_path)
    assert (loaded.id2label, loaded.label2id) == ({0: "b", 1: "a"}, label2id)


def test_other_labels_set_later_can_be_saved_and_loaded(tmp_path):
    """None of the left-over names is among the new ones."""
    config = ToyConfig(id2label={0: "a", 1: "b"}, label2id={"a": 0, "b": 1})
    config.id2label = {0: "x", 1: "y", 2: "z"}
    config.save_pretrained(tmp_path)
    assert ToyConfig.from_pretrained(tmp_path).id2label == {0: "x", 1: "y", 2: "z"}


def test_a_configuration_too_large_for_this_machine_can_be_saved(tmp_path):
    with torch.device("meta"):
        config = ToyConfig(vocab_size=10**9, hidden_size=1_024)
    config.save_pretrained(tmp_path)
    with torch.device("meta"):
        assert ToyConfig.from_pretrained(tmp_path).vocab_size == 10**9


def test_labels_set_later_are_checked_on_demand():
    config = ToyConfig(id2label={0: "a", 1: "b"}, label2id={"a": 0, "b": 1})
    config.num_labels = 3
    config.check()
    assert config.label2id == {"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": 2}
    config.label2id = {"LABEL_0": 2}
    with pytest.raises(ConfigurationError, match="contradict each other"):
        config.check()


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"num_labels": 3}, {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}),
        ({"id2label": {0: "x", 1: "y"}}, {0: "x", 1: "y"}),
        ({"label2id": {"x": 0, "y": 1, "z": 2}}, {0: "x", 1: "y", 2: "z"}),
        ({"num_labels": 1, "id2label": {0: "x"}, "label2id": {"x": 0}}, {0: "x"}),
    ],
)
def test_labels_given_to_from_pretrained_win_over_those_of_the_file(given, names, tmp_path):
    """All of them, so that nothing is left of the file's to contradict them."""
    ToyConfig(id2label={0: "a", 1: "b"}, label2id={"a": 0, "b": 1}).save_pretrained(tmp_path / "file")
    config = ToyConfig.from_pretrained(tmp_path / "file", **given)
    assert config.id2label == names
    assert "a" not in (config.label2id or {})
    config.save_pretrained(tmp_path / "again")
    assert ToyConfig.from_pretrained(tmp_path / "again").id2label == names


@pytest.mark.parametrize(
    "given",
    [
        {"num_labels": None},
        {"id2label": None},
        {"label2id": None},
        dict.fromkeys(("num_labels", "id2label", "label2id")),
    ],
)
def test_none_gives_no_labels(given):
    """Neither beside those of a file, nor beside others that are given, nor in a file."""
    file = ToyConfig(id2label={0: "a", 1: "b", 2: "c"}, label2id={"a": 0}).to_dict()
    config = ToyConfig.from_dict(file, **given)
    assert (config.id2label, config.label2id) == ({0: "a", 1: "b", 2: "c"}, {"a": 0})
    assert ToyConfig.from_dict(file, **(given | {"num_labels": 4})).num_labels == 4
    assert ToyConfig.from_dict({"num_labels": None, "id2label": None, "label2id": None}).num_labels == 2


def test_keys_that_mean_something_to_transformers_alone_are_kept():
    kept = {"head_dim": 3, "num_heads": 5, "embed_dim": 7, "layer_types": ["full_attention"], "is_decoder": True}
    config = ToyConfig(**kept)
    assert {name: getattr(config, name) for name in kept} == kept


def test_labels_and_formats_as_files_have_them():
    config = ToyConfig(id2label={"0": "no", "1": 1}, label2id={"no": 0}, torch_dtype="float16")
    assert (config.id2label, config.num_outputs, config.dtype) == ({0: "no", 1: 1}, 2, torch.float16)
    assert ToyConfig(num_labels=2, id2label={0: "no", 1: "yes"}).num_outputs == 2
    assert ToyConfig(label2id={"a": 0, "b": 1, "c": 2}).id2label == {0: "a", 1: "b", 2: "c"}
    assert ToyConfig(dtype=torch.bfloat16).dtype == torch.bfloat16


def test_another_name_of_a_field():
    config = AliasConfig(width=12)
    assert config.hidden_size == 12
    with pytest.raises(ConfigurationError, match="'hidden_size' expected int, got str"):
        config.width = "12"
    with pytest.raises(ConfigurationError, match="'hidden_size' expected int, got NoneType"):
        AliasConfig(width=None)
    with pytest.raises(
        ConfigurationError, match="'width' and 'hidden_size' are the same field, but 12 and 6 were given"
    ):
        AliasConfig(width=12, hidden_size=6)


def test_the_estimate_of_a_family_that_has_none():
    config = ToyConfig(vocab_size=1_000, hidden_size=64, num_hidden_layers=3)
    assert config.count_parameters() == 1_000 * 64 + 3 * 12 * 64**2
    with pytest.raises(
        ConfigurationError, match=r"takes 4,096 GB in float32; this machine has memory for \d+ GB. The "
    ):
        ToyConfig(vocab_size=10**9, hidden_size=1_024)


def test_a_machine_that_does_not_tell_its_memory(monkeypatch):
    def sysconf(name):
        raise ValueError(f"unrecognized configuration name: {name}")

    assert memory_limit() >= LEAST_MEMORY
    monkeypatch.setattr("os.sysconf", sysconf)
    assert memory_limit() == LEAST_MEMORY
    monkeypatch.setattr("os.sysconf", lambda name: 1_000)
    assert memory_limit() == LEAST_MEMORY
    monkeypatch.setattr("os.sysconf", lambda name: 1_000_000)
    assert memory_limit() == 10**12


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


def test_the_other_bounds():
    require_at_most("x", 3, 3)
    require_between("x", 1, 1, 2)
    require_token_id("x", None, 1)
    require_token_id("x", 9, 10)
    with pytest.raises(ConfigurationError, match="x is 4,000; it must be at most 3,000"):
        require_at_most("x", 4_000, 3_000)
    for value in (0.9, 2.1, float("nan")):
        with pytest.raises(ConfigurationError, match=f"x is {value}; it must be between 1 and 2"):
            require_between("x", value, 1, 2)
    for value in (-1, 10):
        with pytest.raises(ConfigurationError, match=rf"x is {value}; allowed: 0 \.\. 9 \(vocab_size is 10\), or None"):
            require_token_id("x", value, 10)
    with pytest.raises(ConfigurationError, match="x is nan; it must be at least 3"):
        require_at_least("x", float("nan"), 3)


@pytest.mark.parametrize("value", [-0.1, 1.1, 10, float("nan")])
def test_probabilities(value):
    for fine in (None, 0, 0.5, 1):
        require_probability("p", fine)
    with pytest.raises(ConfigurationError, match=f"p is {value}; a probability between 0 and 1 is needed"):
        require_probability("p", value)


def test_require_choice():
    require_choice("x", "a", iter(["a", "b"]))
    with pytest.raises(ConfigurationError, match=r"x is 'alpha'; allowed: alphas, b\. Did you mean 'alphas'\?"):
        require_choice("x", "alpha", iter(["alphas", "b"]))
