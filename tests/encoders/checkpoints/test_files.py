"""Files of weights: the forms that are read, and those that are refused without running or allocating anything."""

from __future__ import annotations

import json
import os
import pickle
import struct

import pytest
import torch
from safetensors.torch import load_file, save_file

import encoders
from encoders import CheckpointError
from tests.encoders.checkpoints.folders import write_json
from tests.support import make_model


@pytest.fixture
def saved(tmp_path):
    """A folder with model.safetensors, and the model."""
    model = make_model("norbert3-nano", "masked-lm", hidden_size=32, intermediate_size=48, num_hidden_layers=2)
    model.save_pretrained(tmp_path)
    return tmp_path, model


def same(folder, model):
    loaded = encoders.load(str(folder), task="masked-lm")
    return all(torch.equal(value, loaded.state_dict()[name]) for name, value in model.state_dict().items())


def assert_refused(folder, message):
    with pytest.raises(CheckpointError, match=message) as refusal:
        encoders.load(str(folder))
    return str(refusal.value)


def replace_weights(folder, name, content: bytes):
    (folder / "model.safetensors").unlink(missing_ok=True)
    (folder / name).write_bytes(content)


def write_header(folder, header, data=b""):
    text = json.dumps(header).encode()
    replace_weights(folder, "model.safetensors", struct.pack("<Q", len(text)) + text + data)


def test_safetensors(saved):
    assert same(*saved)


@pytest.mark.parametrize("zipped", [True, False])
def test_pickles_of_both_formats(saved, zipped):
    folder, model = saved
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
    assert same(folder, model)


@pytest.mark.parametrize("suffix", [".safetensors", ".bin"])
def test_shards(saved, suffix):
    folder, model = saved
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    stem = "model" if suffix == ".safetensors" else "pytorch_model"
    weight_map = {}
    for number, names in enumerate((list(tensors)[::2], list(tensors)[1::2]), start=1):
        file = f"{stem}-0000{number}-of-00002{suffix}"
        part = {name: tensors[name] for name in names}
        save_file(part, folder / file) if suffix == ".safetensors" else torch.save(part, folder / file)
        weight_map |= dict.fromkeys(names, file)
    index = folder / f"{stem}{suffix}.index.json"
    write_json(index, {"metadata": {}, "weight_map": weight_map})
    assert same(folder, model)

    write_json(index, {"weight_map": {**weight_map, "embedding.more": file}})
    assert_refused(folder, r"the index lists tensors that no file holds: embedding\.more")
    write_json(index, {"weight_map": {**weight_map, "embedding.more": f"{stem}-00003-of-00003{suffix}"}})
    assert_refused(folder, f"{stem}-00003-of-00003{suffix} of {index.name} is missing")


@pytest.mark.parametrize("name", ["../outside.safetensors", "/etc/hostname", "a/b.safetensors", "code.py", "..", 7])
def test_an_index_does_not_lead_out_of_the_folder(saved, name):
    folder, _ = saved
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    write_json(folder / "model.safetensors.index.json", {"weight_map": {"embedding.word_embedding.weight": name}})
    assert_refused(folder, "no weight_map" if name == 7 else "only .safetensors files in the same folder are read")


def test_links_do_not_lead_out_of_the_folder(saved):
    folder, _ = saved
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    (folder / "model.safetensors").symlink_to(folder.parent / "outside.safetensors")
    assert_refused(folder, r"is a link to .*outside\.safetensors, outside its folder")


def test_a_hub_cache_is_made_of_links(saved, tmp_path):
    folder, model = saved
    snapshot, blobs = tmp_path / "models--a--b" / "snapshots" / "123", tmp_path / "models--a--b" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).rename(blobs / name)
        (snapshot / name).symlink_to(os.path.relpath(blobs / name, snapshot))
    assert same(snapshot, model)


class Bomb:
    """Leaves a trace when it is unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


@pytest.mark.parametrize("form", ["zip", "legacy", "plain"])
def test_a_pickle_that_would_run_code(saved, form):
    folder, model = saved
    (folder / "model.safetensors").unlink()
    content = {**model.state_dict(), "more": Bomb(folder / "trace")}
    if form == "plain":
        (folder / "pytorch_model.bin").write_bytes(pickle.dumps(content, protocol=2))
    else:
        torch.save(content, folder / "pytorch_model.bin", _use_new_zipfile_serialization=form == "zip")
    assert_refused(
        folder, "pytorch_model.bin is a pickle that would run posix.mkdir" if form != "plain" else "is a pickle"
    )
    assert not (folder / "trace").exists()
    with open(folder / "pytorch_model.bin", "rb") as file:
        if form == "plain":
            pickle.load(file)
        else:
            torch.load(file, weights_only=False)
    assert (folder / "trace").exists(), "the bomb of this test would not have gone off"


@pytest.mark.parametrize(
    "content",
    [
        [torch.zeros(2)],
        {"a": 1, "b": torch.zeros(2)},
        {1: torch.zeros(2)},
        "text",
        {"a": torch.empty(10**12, device="meta")},
        {"a": torch.zeros(3, 3).to_sparse()},
    ],
)
def test_a_pickle_of_something_else(saved, content):
    folder, _ = saved
    (folder / "model.safetensors").unlink()
    torch.save(content, folder / "pytorch_model.bin")
    assert_refused(folder, "holds more than plain tensors by name")


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize("kept", [0.0, 0.01, 0.5, 0.99])
def test_truncated(saved, name, kept):
    folder, model = saved
    (folder / "model.safetensors").unlink()
    if name == "model.safetensors":
        save_file({key: value.clone() for key, value in model.state_dict().items()}, folder / name)
    else:
        torch.save(model.state_dict(), folder / name)
    content = (folder / name).read_bytes()
    replace_weights(folder, name, content[: int(kept * len(content))])
    assert_refused(folder, "truncated")


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize("content", [b"\x00" * 400, b"not a checkpoint at all\n" * 40, b"PK\x03\x04" + b"\xff" * 200])
def test_corrupt(saved, name, content):
    folder, _ = saved
    replace_weights(folder, name, content)
    assert_refused(folder, "truncated|pickle")


@pytest.mark.parametrize(
    ("header", "data"),
    [
        ({"a": {"dtype": "F32", "shape": [10**6, 250_000], "data_offsets": [0, 10**12]}}, b""),
        ({"a": {"dtype": "F32", "shape": [10**6, 250_000], "data_offsets": [0, 8]}}, b"\0" * 8),
        ({"a": {"dtype": "F32", "shape": [2**62, 2**62], "data_offsets": [0, 8]}}, b"\0" * 8),
        ({"a": {"dtype": "F33", "shape": [2], "data_offsets": [0, 8]}}, b"\0" * 8),
    ],
)
def test_headers_that_lie(saved, header, data):
    """A small file that claims a terabyte is refused before anything is allocated."""
    folder, _ = saved
    write_header(folder, header, data)
    assert_refused(folder, "truncated or corrupt")


def test_a_header_that_claims_to_be_huge(saved):
    folder, _ = saved
    replace_weights(folder, "model.safetensors", struct.pack("<Q", 2**40) + b"{}")
    assert_refused(folder, "truncated or corrupt")


def test_quantised_weights(saved):
    folder, _ = saved
    tensors = load_file(folder / "model.safetensors")
    tensors["embedding.word_embedding.weight"] = tensors["embedding.word_embedding.weight"].to(torch.float8_e4m3fn)
    save_file(tensors, folder / "model.safetensors")
    assert_refused(folder, r"embedding\.word_embedding\.weight is stored as F8_E4M3")


def test_no_folder(tmp_path):
    assert_refused(tmp_path, r"has no config\.json \(it is empty\)")
    (tmp_path / "notes.txt").write_text("nothing")
    assert_refused(tmp_path, r"has no config\.json \(it holds notes\.txt\)")
    assert_refused(tmp_path / "notes.txt", "is a file; pass the folder")
    assert_refused(tmp_path / "not there", "there is no folder")


def test_no_weights(saved):
    folder, _ = saved
    (folder / "model.safetensors").unlink()
    assert_refused(folder, r"holds no weights \(none was found\)")
    (folder / "tf_model.h5").touch()
    assert_refused(folder, r"holds no weights \(tf_model\.h5 can't be read\)")


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "\udcff", '"text"', "[" * 100_000])
def test_unreadable_config(saved, text):
    folder, _ = saved
    (folder / "config.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert_refused(folder, r"config\.json (is not readable as JSON|holds a)")
