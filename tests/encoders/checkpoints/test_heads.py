"""Heads: from a bare model to a task and back, between tasks, with other labels."""

from __future__ import annotations

import json
import warnings

import pytest
import torch
from safetensors.torch import load_file, save_file

import encoders
from encoders import CheckpointError
from encoders.family import TASKS
from tests.encoders.checkpoints.folders import golden_folder, write_json
from tests.support import NANO, assert_close, inputs_of, make_batch, make_model

every_encoder = pytest.mark.parametrize("name", NANO)
fresh_heads = pytest.mark.filterwarnings("ignore:.*freshly initialised")


def head_names(model):
    bare = {id(parameter) for parameter in model.base_model.parameters()}
    if model.base_model is model:
        return {name for name in model.state_dict() if name.startswith(("head", "classifier"))}
    return {name for name, parameter in model.named_parameters() if id(parameter) not in bare}


@every_encoder
@pytest.mark.parametrize("task", TASKS)
def test_one_warning_lists_what_is_fresh(name, task, tmp_path):
    bare = make_model(name, None)
    bare.save_pretrained(tmp_path)
    with pytest.warns(UserWarning, match="freshly initialised") as caught:
        model, report = encoders.load(str(tmp_path), task=task, return_report=True)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    expected = head_names(model) - set(report.tied)
    assert set(report.missing) == expected
    assert all(key in str(caught[0].message) for key in expected)
    assert all(parameter.isfinite().all() for parameter in model.parameters())
    inputs = inputs_of(make_batch(None))
    with torch.no_grad():
        assert_close(model.trunk.encode(**inputs).last_hidden_state, bare(**inputs).last_hidden_state, 1e-6)


@every_encoder
@pytest.mark.parametrize("task", TASKS)
def test_a_head_checkpoint_into_the_bare_model(name, task, tmp_path):
    """The base is found under the prefix of the head, and without one (transformers #18969)."""
    model = make_model(name, task)
    model.save_pretrained(tmp_path)
    bare, report = encoders.load(str(tmp_path), return_report=True)
    assert set(report.unexpected) == head_names(model) - set(model._tied_weights_keys or {})
    assert not report.missing
    inputs = inputs_of(make_batch(None))
    with torch.no_grad():
        assert_close(bare(**inputs).last_hidden_state, model.trunk.encode(**inputs).last_hidden_state, 1e-6)


@fresh_heads
def test_fresh_heads_are_never_raw_memory(tmp_path):
    """Twenty loads, each finite and spread as the family initialises (transformers #46002)."""
    folder, _, _ = golden_folder("norbert3", "norbert-interleaved-masked-lm", tmp_path)
    expected = (2 / (5 * 16)) ** 0.5
    spreads = []
    for _ in range(20):
        model, report = encoders.load(str(folder), task="sequence-classification", return_report=True)
        assert len(report.missing) == 4
        weight = model.head.nonlinearity[1].weight
        assert weight.isfinite().all()
        assert not model.head.nonlinearity[1].bias.any()
        spreads.append(weight.std().item())
    assert all(0.6 * expected < spread < 1.1 * expected for spread in spreads)
    assert len(set(spreads)) == 20


@fresh_heads
@every_encoder
def test_fresh_heads_follow_the_seed(name, tmp_path):
    make_model(name, None).save_pretrained(tmp_path)
    states = []
    for _ in range(2):
        torch.manual_seed(3)
        states.append(encoders.load(str(tmp_path), task="token-classification").state_dict())
    assert all(torch.equal(value, states[1][key]) for key, value in states[0].items())


@every_encoder
def test_nothing_is_drawn_where_nothing_is_fresh(name, tmp_path):
    make_model(name, "masked-lm").save_pretrained(tmp_path)
    before = torch.get_rng_state()
    encoders.load(str(tmp_path), task="masked-lm")
    assert torch.equal(torch.get_rng_state(), before)


@every_encoder
def test_a_head_for_another_task_is_not_taken_over(name, tmp_path):
    """Heads of different tasks have the same names of tensors; the class name tells them apart."""
    stored = make_model(name, "sequence-classification")
    stored.save_pretrained(tmp_path)
    with pytest.warns(UserWarning, match="freshly initialised"):
        model = encoders.load(str(tmp_path), task="token-classification")
    for key in head_names(model) & head_names(stored):
        assert not torch.equal(model.state_dict()[key], stored.state_dict()[key]) or not model.state_dict()[key].any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoders.load(str(tmp_path), task="sequence-classification")


@every_encoder
def test_a_head_of_an_unnamed_task_is_taken_by_its_names(name, tmp_path):
    stored = make_model(name, "token-classification")
    stored.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    write_json(tmp_path / "config.json", {**config, "architectures": None})
    model = encoders.load(str(tmp_path), task="token-classification")
    assert all(torch.equal(value, model.state_dict()[key]) for key, value in stored.state_dict().items())


@every_encoder
def test_other_labels_get_a_fresh_head(name, tmp_path):
    make_model(name, "token-classification", num_labels=3).save_pretrained(tmp_path)
    for labels in ({"num_labels": 9}, {"id2label": dict(enumerate("abcdefghi"))}):
        with pytest.warns(UserWarning, match="freshly initialised") as caught:
            model, report = encoders.load(str(tmp_path), task="token-classification", return_report=True, **labels)
        assert len(caught) == 1
        assert model.config.num_labels == 9
        assert report.missing
        assert all(model.state_dict()[key].shape[0] == 9 for key in report.missing)
    assert encoders.load(str(tmp_path), task="token-classification", num_labels=3).config.num_labels == 3


@every_encoder
def test_labels_are_kept(name, tmp_path):
    names = {"id2label": {0: "cold", 1: "warm", 2: "hot"}, "label2id": {"cold": 0, "warm": 1, "hot": 2}}
    make_model(name, "sequence-classification", **names).save_pretrained(tmp_path)
    config = encoders.load(str(tmp_path), task="sequence-classification", pooling="mean").config
    assert {"id2label": config.id2label, "label2id": config.label2id} == names


@every_encoder
def test_all_wrong_shapes_are_listed(name, tmp_path):
    make_model(name, "sequence-classification").save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    changed = [key for key in tensors if "word_embedding" in key or "layers.1" in key or "layer.1" in key][:5]
    for key in changed:
        tensors[key] = torch.zeros(*tensors[key].shape[:-1], tensors[key].shape[-1] + 1)
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=f"{len(changed)} tensors don't fit the configuration") as refusal:
        encoders.load(str(tmp_path))
    message = str(refusal.value)
    for key in changed:
        assert f"{key} is {list(tensors[key].shape)} in the file" in message
    assert "\n" not in message


def test_weights_and_configuration_of_different_models(tmp_path):
    make_model("norbert3-nano", None).save_pretrained(tmp_path)
    with pytest.raises(
        CheckpointError, match=r"lacks tensors that the configuration asks for: .*layers\.3.* and 2 more"
    ):
        encoders.load(str(tmp_path), num_hidden_layers=4)
    with pytest.raises(CheckpointError, match=r"has tensors in its encoder that nothing in .*layers\.2"):
        encoders.load(str(tmp_path), num_hidden_layers=2)


@every_encoder
@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("num_hidden_layers", 4000, r"=4,000, but the files hold only \d+ tensors"),
        *(
            (field, 10**9, r"=1,000,000,000, but no tensor of the files is longer than .* can take [\d,]+\.0 GB")
            for field in ("vocab_size", "num_hidden_layers", "num_labels", "max_position_embeddings")
        ),
    ],
)
def test_absurd_sizes_are_refused_before_they_are_made(name, field, value, message, tmp_path):
    make_model(name, None).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    write_json(tmp_path / "config.json", {**config, field: value})
    with pytest.raises(CheckpointError, match=f"asks for .*{message}"):
        encoders.load(str(tmp_path))


def test_unknown_overrides(tmp_path):
    make_model("norbert3-nano", None).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"has no field 'num_layer'\. Did you mean"):
        encoders.load(str(tmp_path), num_layer=2)
    with pytest.raises(encoders.ConfigurationError, match="pooling is 'max'; allowed: mean, cls"):
        encoders.load(str(tmp_path), pooling="max")
    with pytest.raises(ValueError, match="unknown task 'translation'"):
        encoders.load(str(tmp_path), task="translation")
