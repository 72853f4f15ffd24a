"""`encoders inspect`: what a checkpoint is, from its headers alone."""

from __future__ import annotations

import json
import struct
import time

import pytest
import torch
from safetensors.torch import load_file, save_file

import encoders
from encoders import CheckpointError
from encoders.checkpoints import weights
from encoders.checkpoints.inspection import inspect_checkpoint
from encoders.family import TASKS
from tests.encoders.checkpoints.folders import golden_folder
from tests.support import make_model


def test_a_published_folder(tmp_path):
    folder, _, _ = golden_folder("hplt", "norbert-contiguous-masked-lm", tmp_path)
    found = inspect_checkpoint(str(folder))
    assert (found.family, found.layout, found.evidence, found.task, found.preset) == (
        *("norbert", "HPLT", "architectures", "masked-lm", None),
    )
    assert found.sizes == {
        "vocab_size": 140,
        "hidden_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "intermediate_size": 48,
    }
    assert found.dtypes["int64"] == 3  # the tables of positions
    assert set(found.missing) == {"bare", *TASKS}
    assert found.missing["bare"] == found.missing["masked-lm"] == ()
    assert len(found.missing["token-classification"]) == 4
    assert not found.problems
    assert any("position_projection" in note for note in found.notes)
    assert json.loads(json.dumps(found.to_dict()))["layout"] == "HPLT"
    text = str(found)
    for part in (
        "HPLT, seen by its architectures",
        "vocab size",
        "missing for",
        "masked-lm: nothing",
        "int64 (3 tensors)",
    ):
        assert part in text


def test_a_preset_is_recognised_by_its_sizes(tmp_path):
    make_model("distilbert-nano", "token-classification", vocab_size=1024).save_pretrained(tmp_path)
    found = inspect_checkpoint(str(tmp_path))
    assert (found.preset, found.task) == ("distilbert-nano", "token-classification")
    assert found.parameters == sum(p.numel() for p in make_model("distilbert-nano", None, vocab_size=1024).parameters())


@pytest.mark.parametrize("suffix", ["safetensors", "bin"])
def test_no_values_are_read(suffix, tmp_path, monkeypatch):
    model = make_model("helmbert-nano", "masked-lm")
    model.save_pretrained(tmp_path)
    if suffix == "bin":
        (tmp_path / "model.safetensors").unlink()
        torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    monkeypatch.setattr(weights.Weights, "read", None)
    assert inspect_checkpoint(str(tmp_path)).dtypes == {"float32": 74 if suffix == "bin" else 73}


def test_a_head_that_does_not_fit_is_said(tmp_path):
    """The labels in config.json are others than the head's."""
    make_model("norbert3-nano", "token-classification", num_labels=3).save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["head.nonlinearity.5.bias"] = torch.zeros(7)
    save_file(tensors, tmp_path / "model.safetensors")
    found = inspect_checkpoint(str(tmp_path))
    assert "head.nonlinearity.5.bias is [7] in the file, [3] in the model" in found.problems["token-classification"]
    assert "token-classification" not in found.missing
    assert "impossible for" in str(found)


def test_what_can_not_be_loaded_can_not_be_inspected(tmp_path):
    with pytest.raises(CheckpointError, match=r"has no config\.json"):
        inspect_checkpoint(str(tmp_path))


def test_a_large_file_takes_no_time(tmp_path):
    """Headers alone: the 2.8 GB of this file are a hole, and none of it is read."""
    with torch.device("meta"):
        model = encoders.create("norbert3-large", task="masked-lm")
    model.config.architectures = ["NorbertForMaskedLM"]
    model.config.save_pretrained(tmp_path)
    header, end = {}, 0
    for name, tensor in model.state_dict().items():
        start, end = end, end + 8 * tensor.numel()
        header[name] = {"dtype": "F64", "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    with open(tmp_path / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)
    begin = time.perf_counter()
    found = inspect_checkpoint(str(tmp_path))
    assert time.perf_counter() - begin < 10
    assert (found.preset, found.task) == ("norbert3-large", "masked-lm")
    assert end > 2_500_000_000
