"""Small files that ask for much: memory stays in proportion to the files, and odd tokenizers are refused."""

from __future__ import annotations

import json
import os
import struct
import zipfile

import pytest
import torch
from safetensors.torch import load_file, save_file

import encoders
from encoders import CheckpointError
from encoders.checkpoints import checkpoint as checkpoint_module
from tests.encoders.checkpoints.folders import write_json
from tests.encoders.checkpoints.test_files import assert_refused, replace_weights, same, saved
from tests.encoders.checkpoints.test_hostile_files import save_pickle
from tests.encoders.checkpoints.tokenizer_files import HPLT_SPECIALS, write_word_piece
from tests.support import make_model

__all__ = ["saved"]  # the fixture

ROOM = 4 * 10**8


@pytest.fixture
def little_memory():
    """Let the process have a little more memory than it has now, whatever the machine has."""
    resource = pytest.importorskip("resource")
    statistics = "/proc/self/statm"
    if not os.path.exists(statistics):
        pytest.skip("the size of a process is not known on this system")
    with open(statistics) as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + ROOM, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


class Call:
    """An object whose pickle calls a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("form", ["zip", "legacy"])
@pytest.mark.parametrize(
    "call",
    [
        Call(bytearray, 3 * 10**9),
        Call(torch.FloatTensor, 10**9),
        Call(torch.Tensor, 10**9),
        Call(torch._utils._rebuild_wrapper_subclass, *(torch.Tensor, torch.float32, (10**12,), (1,), 0)),
    ],
    ids=["bytearray", "FloatTensor", "Tensor", "wrapper"],
)
def test_a_pickle_that_asks_for_memory(saved, form, call, little_memory):
    """What torch's own reader makes, told to read nothing but weights."""
    folder, _ = saved
    save_pickle(folder, {"a": call}, form)
    assert (folder / "pytorch_model.bin").stat().st_size < 2_000
    assert_refused(folder, "is a pickle that would run .* it was not run")


@pytest.mark.parametrize("form", ["zip", "legacy"])
def test_a_tensor_with_more_values_than_data(saved, form, little_memory):
    folder, model = saved
    save_pickle(folder, {**model.state_dict(), "embedding.more": torch.zeros(1).expand(10**12)}, form)
    assert_refused(folder, r"holds more than plain tensors by name \(under 'embedding.more'\)")


@pytest.mark.parametrize(("zeros", "level"), [(6 * 10**8, 1), (0, 1), (0, 0)])
def test_a_compressed_zip(saved, zeros, level, little_memory):
    """A zip bomb; and, without the zeros, tensors that torch would read in their compressed form.

    At level 0 the parts get longer rather than shorter.
    """
    folder, model = saved
    torch.save(model.state_dict(), folder / "stored.bin")
    replace_weights(folder, "pytorch_model.bin", b"")
    with (
        zipfile.ZipFile(folder / "stored.bin") as stored,
        zipfile.ZipFile(folder / "pytorch_model.bin", "w", zipfile.ZIP_DEFLATED, compresslevel=level) as compressed,
    ):
        for part in stored.namelist():
            with compressed.open(part, "w", force_zip64=True) as target:
                target.write(stored.read(part))
                for _ in range(zeros // 10**7 if part.endswith("data.pkl") else 0):
                    target.write(bytes(10**7))
    assert (folder / "pytorch_model.bin").stat().st_size < 3 * 10**6
    assert_refused(folder, "is a zip with compressed or overlapping parts")


def test_a_zip_without_check_sums(saved):
    """An option of torch.save that makes saving faster; nothing is wrong with such a file."""
    folder, model = saved
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        save_pickle(folder, model.state_dict(), "zip")
    finally:
        torch.serialization.set_crc32_options(before)
    with zipfile.ZipFile(folder / "pytorch_model.bin") as archive:
        assert archive.testzip() is not None
    assert same(folder, model)


def test_a_zip_whose_parts_overlap(saved, little_memory):
    """One part that the directory lists a thousand times."""
    folder, model = saved
    torch.save(model.state_dict(), folder / "stored.bin")
    replace_weights(folder, "pytorch_model.bin", b"")
    with zipfile.ZipFile(folder / "stored.bin") as stored, zipfile.ZipFile(folder / "pytorch_model.bin", "w") as copy:
        for part in stored.infolist():
            copy.writestr(part.filename, stored.read(part))
        largest = max(copy.filelist, key=lambda part: part.file_size)
        copy.filelist.extend([largest] * 1_000)
    assert_refused(folder, "is a zip with compressed or overlapping parts")


LENGTHS = [2**63, 2**64 - 1, 2**63 - 1, 10**12, 100_000_001, 0, 1, 7]


@pytest.mark.parametrize("length", LENGTHS)
def test_lengths_of_a_header(saved, length, little_memory):
    folder, _ = saved
    replace_weights(folder, "model.safetensors", struct.pack("<Q", length) + b'{"a":{}}' + bytes(1_000))
    assert_refused(folder, "truncated or corrupt")


def tensor(offsets, shape=(2,), dtype="F32"):
    return json.dumps({"dtype": dtype, "shape": shape, "data_offsets": offsets})


HEADERS = {
    "a terabyte": '{"a": ' + tensor([0, 10**12], [25 * 10**10]) + "}",
    "overlapping": '{"a": ' + tensor([0, 8]) + ', "b": ' + tensor([4, 12]) + "}",
    "the same data twice": '{"a": ' + tensor([0, 8]) + ', "b": ' + tensor([0, 8]) + "}",
    "a hole": '{"a": ' + tensor([0, 8]) + ', "b": ' + tensor([16, 24]) + "}",
    "backwards": '{"a": ' + tensor([8, 0]) + "}",
    "beyond 64 bits": '{"a": ' + tensor([0, 8], [2**64, 2]) + "}",
    "a product beyond 64 bits": '{"a": ' + tensor([0, 8], [2**33, 2**33]) + "}",
    "negative": '{"a": ' + tensor([0, 8], [-1, -2]) + "}",
    "a fraction": '{"a": ' + tensor([0, 8], [2.5]) + "}",
    "not a number": '{"a": {"dtype": "F32", "shape": [NaN], "data_offsets": [0, 8]}}',
    "infinite": '{"a": {"dtype": "F32", "shape": [1e999], "data_offsets": [0, 8]}}',
    "a long number": '{"a": {"dtype": "F32", "shape": [' + "9" * 10_000 + '], "data_offsets": [0, 8]}}',
    "deep": '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "deep metadata": '{"__metadata__": ' + '{"a":' * 10_000 + "1" + "}" * 10_000 + "}",
    "a list": "[1, 2]",
    "no object": '{"a": 3}',
    "missing parts": '{"a": {"dtype": "F32"}}',
    "another type": '{"a": ' + tensor([0, 8], [2], "PICKLE") + "}",
    "not UTF-8": b'{"\xff": {}}',
    "the same name twice": '{"a": ' + tensor([0, 8]) + ', "a": ' + tensor([8, 16]) + "}",
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_headers(saved, header, little_memory):
    folder, _ = saved
    text = header if isinstance(header, bytes) else header.encode()
    replace_weights(folder, "model.safetensors", struct.pack("<Q", len(text)) + text + bytes(24))
    assert_refused(folder, "truncated or corrupt|is of no family here")


def test_an_empty_tensor_of_any_length_allows_nothing(saved, little_memory):
    """No data is needed for a shape with a zero in it."""
    folder, _ = saved
    empty = {"embedding.more": torch.zeros(0, 10**12)}
    save_file({**load_file(folder / "model.safetensors"), **empty}, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    write_json(folder / "config.json", {**config, "vocab_size": 10**12})
    assert_refused(folder, r"asks for vocab_size=1,000,000,000,000, but no tensor of the files is longer than \d{3}\.")


def test_tensors_that_share_their_data(saved, monkeypatch):
    """A pickle may name the same data for every layer; a model would need it once for each."""
    folder, _ = saved
    model = make_model("norbert3-nano", "masked-lm", hidden_size=32, intermediate_size=48, num_hidden_layers=12)
    model.save_pretrained(folder)
    monkeypatch.setattr(checkpoint_module, "ALWAYS_ALLOWED", 10**4)
    monkeypatch.setattr(checkpoint_module, "MOST_OF_FILES", 2)
    encoders.load(folder, task="masked-lm")
    data = torch.zeros(10**4)
    tensors = {name: data[: value.numel()].view(value.shape) for name, value in model.state_dict().items()}
    save_pickle(folder, tensors, "zip")
    assert_refused(folder, r"asks for a model of 0\.0 GB, but the files hold 0\.000 GB")


def test_a_head_larger_than_the_files(tmp_path, monkeypatch):
    make_model("helmbert-nano", None).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    write_json(tmp_path / "config.json", {**config, "classifier_num_layers": 10**7})
    with pytest.raises(CheckpointError, match="classifier_num_layers=10,000,000, but"):
        encoders.load(tmp_path, task="sequence-classification")
    write_json(tmp_path / "config.json", config)
    monkeypatch.setattr(checkpoint_module, "ALWAYS_ALLOWED", 10**7)
    with pytest.raises(CheckpointError, match=r"asks for a model of 0\.1 GB, but the files hold 0\.00"):
        encoders.load(tmp_path, task="sequence-classification", num_labels=10**5)


# Tokenizers


ODD_TOKENIZERS = {
    "an id of 13 digits": {"added_tokens": [{"id": 10**12, "content": "x", "special": True}]},
    "a negative id": {"added_tokens": [{"id": -1, "content": "x", "special": True}]},
    "no objects": {"added_tokens": [1, 2]},
    "a vocabulary of fractions": {"model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"a": 0.5}}},
    "another model": {"model": {"type": "Pickle", "vocab": {}}},
    "no charsmap": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}},
    "an odd pattern": {"normalizer": {"type": "Replace", "pattern": {"Regex": "(((("}, "content": ""}},
    "another version": {"version": "9.0"},
}


@pytest.mark.parametrize("change", ODD_TOKENIZERS.values(), ids=ODD_TOKENIZERS)
def test_odd_tokenizers(change, tmp_path, little_memory):
    write_word_piece(tmp_path, HPLT_SPECIALS)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    write_json(tmp_path / "tokenizer.json", {**content, **change})
    with pytest.raises(CheckpointError, match="the tokenizer can't be read"):
        encoders.load_tokenizer(tmp_path)


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 100_000, "9" * 10_000, '"\\ud800"'])
@pytest.mark.parametrize("file", ["tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"])
def test_odd_texts(file, content, tmp_path, little_memory):
    write_word_piece(tmp_path, HPLT_SPECIALS)
    (tmp_path / file).write_text(content)
    with pytest.raises(CheckpointError):
        encoders.load_tokenizer(tmp_path)


@pytest.mark.parametrize("named", [["a"], {"a": 1}, 3, "os.system", "__class__", "PreTrainedTokenizerFast"])
def test_odd_classes(named, tmp_path):
    write_word_piece(tmp_path, HPLT_SPECIALS, tokenizer_class=named)
    assert encoders.load_tokenizer(tmp_path)("hello").input_ids
