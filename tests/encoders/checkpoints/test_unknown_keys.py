"""Keys of config.json that mean nothing here, as newer files may have them: kept, listed, and without effect."""

from __future__ import annotations

import json

import pytest
import torch

import encoders
from tests.encoders.checkpoints.folders import write_json
from tests.support import NANO, inputs_of, make_batch, make_model, predictions

NEWER = {
    "attention_gates": {"kind": "sigmoid", "layers": [0, 2]},
    "head_dim": 7,
    "layer_types": ["sliding_attention"],
    "num_experts": 10**12,
    "quantization_config": None,
    "rope_theta": 10_000.0,
}


def write(folder, **more):
    content = json.loads((folder / "config.json").read_text())
    write_json(folder / "config.json", {**content, **more})


@pytest.mark.parametrize("name", NANO)
def test_kept_and_listed(name, tmp_path):
    model = make_model(name, None)
    model.save_pretrained(tmp_path)
    _, report = encoders.load(tmp_path, return_report=True)
    assert report.unknown_keys == ()
    assert "unknown     -" in str(report)
    write(tmp_path, **NEWER)
    loaded, report = encoders.load(tmp_path, return_report=True)
    assert sorted(report.unknown_keys) == sorted(NEWER)
    assert f"unknown     {', '.join(NEWER)}" in str(report)
    assert {key: getattr(loaded.config, key) for key in NEWER} == NEWER
    inputs = inputs_of(make_batch(None))
    with torch.no_grad():
        assert torch.equal(predictions(loaded(**inputs)), predictions(model(**inputs)))
    loaded.save_pretrained(tmp_path / "again")
    saved = json.loads((tmp_path / "again" / "config.json").read_text())
    assert {key: saved.get(key) for key in NEWER} == NEWER


@pytest.mark.parametrize("name", NANO)
def test_parts_of_the_class_are_listed_but_not_replaced(name, tmp_path):
    make_model(name, None).save_pretrained(tmp_path)
    parts = {
        "check": 3,
        "to_dict": "x",
        "attribute_map": {"a": "b"},
        "rope_scaling": {"type": "linear"},
        "__class__": 1,
    }
    write(tmp_path, **parts)
    loaded, report = encoders.load(tmp_path, return_report=True)
    assert sorted(report.unknown_keys) == sorted(parts)
    loaded.config.check()
    assert loaded.config.to_dict()["model_type"] == loaded.config.model_type


@pytest.mark.parametrize("name", NANO)
def test_every_known_key_has_an_effect(name, tmp_path):
    """What is written for other readers, and what we save ourselves, is not called unknown."""
    make_model(name, "sequence-classification", num_labels=4).save_pretrained(tmp_path)
    write(tmp_path, auto_map={"AutoModel": "x.Y"}, torch_dtype="float32", _name_or_path="a/b", dtype="float32")
    _, report = encoders.load(tmp_path, task="sequence-classification", return_report=True)
    assert report.unknown_keys == ()
