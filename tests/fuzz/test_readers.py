"""Damaged input for everything that reads what others wrote: it is read, or refused with an error of this library."""

from __future__ import annotations

import contextlib
import io
import json
import struct
import zipfile

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from encoders import CheckpointError
from encoders.checkpoints.checkpoint import open_checkpoint
from encoders.checkpoints.configuration import read_config
from encoders.checkpoints.weights import PickledFile, SafetensorsFile
from encoders_shared.config import EncoderConfig
from tests.encoders.checkpoints.test_damage import KEYS, VALUES
from tests.encoders.helmbert.test_helm import PIECES, RIGHT, assert_read_or_refused
from tests.fuzz.budget import inputs
from tests.support import NANO, make_model

SMALL = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24, "num_hidden_layers": 2}
INSERTED = st.binary(max_size=4) | st.sampled_from(
    [b"9" * 30, b'"', b"}", b"[", b"null", b"NaN", b"-", b"1e99", b"\xff"]
)


@st.composite
def damaged(draw, content: bytes, start: int = 0, end: int | None = None) -> bytes:
    """The content with a few places between start and end overwritten, cut out or stuffed."""
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(start, len(content) if end is None else min(end, len(content))))
        removed = draw(st.sampled_from([0, 0, 1, 1, 2, 4, 40]))
        content = content[:place] + draw(INSERTED) + content[place + removed :]
    return content


@inputs(few=300, many=60_000)
@given(
    st.one_of(
        st.text(),
        st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
        st.sampled_from(sorted(RIGHT)).flatmap(lambda text: damaged(text.encode())).map(lambda b: b.decode("latin-1")),
    ),
    st.booleans(),
)
def test_helm(text, strict):
    assert_read_or_refused(text, strict)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder of each family, with the text of its config.json."""
    made = {}
    for name in NANO:
        folder = tmp_path_factory.mktemp(name)
        make_model(name, "masked-lm", **SMALL).save_pretrained(folder)
        made[name] = folder, (folder / "config.json").read_bytes()
    return made


@st.composite
def configs(draw, text: bytes) -> bytes:
    kind = draw(st.sampled_from(["fields", "fields", "damaged", "bytes"]))
    if kind == "bytes":
        return draw(st.binary(max_size=60))
    if kind == "damaged":
        return draw(damaged(text))
    fields = json.loads(text)
    fields |= draw(st.dictionaries(st.sampled_from(sorted({*fields, *KEYS})) | st.text(max_size=3), VALUES, max_size=4))
    return json.dumps(fields).encode()


@pytest.mark.parametrize("name", NANO)
@inputs(few=100, many=7_000)
@given(data=st.data())
def test_config(name, folders, data):
    folder, text = folders[name]
    (folder / "config.json").write_bytes(data.draw(configs(text)))
    with contextlib.suppress(CheckpointError):
        checkpoint = open_checkpoint(folder)
        config, _ = read_config(checkpoint.folder, checkpoint.recognised, checkpoint.weights, {})
        assert isinstance(config, EncoderConfig)


def assert_all_read(file) -> None:
    for name, facts in file.facts.items():
        assert tuple(file.read(name).shape) == facts.shape


@inputs(few=300, many=12_000)
@given(data=st.data())
def test_safetensors(tmp_path_factory, data):
    content = _safetensors()
    end = 8 + struct.unpack("<Q", content[:8])[0]
    path = tmp_path_factory.getbasetemp() / "damaged.safetensors"
    text = data.draw(damaged(content, end=8) | damaged(content, start=8, end=end))
    if data.draw(st.booleans()):  # a header whose length is right, so that what is in it gets read
        text = struct.pack("<Q", max(0, end - 8 + len(text) - len(content))) + text[8:]
    path.write_bytes(text)
    with contextlib.suppress(CheckpointError):
        assert_all_read(SafetensorsFile(path))


@inputs(few=200, many=7_000)
@given(data=st.data())
def test_pickles(tmp_path_factory, data):
    """In the older format as it is; in the newer one the pickle inside, under a check sum that is right."""
    path = tmp_path_factory.getbasetemp() / "damaged.bin"
    if data.draw(st.booleans()):
        path.write_bytes(data.draw(damaged(_pickled(zipped=False))))
    else:
        with zipfile.ZipFile(io.BytesIO(_pickled(zipped=True))) as whole, zipfile.ZipFile(path, "w") as copy:
            for part in whole.namelist():
                content = whole.read(part)
                copy.writestr(part, data.draw(damaged(content)) if part.endswith("data.pkl") else content)
    with contextlib.suppress(CheckpointError):
        assert_all_read(PickledFile(path))


def _tensors() -> dict[str, torch.Tensor]:
    return {"a.weight": torch.arange(6.0).view(2, 3), "a.bias": torch.ones(2, dtype=torch.float16)}


def _safetensors() -> bytes:
    from safetensors.torch import save

    return save(_tensors(), {"format": "pt"})


def _pickled(zipped: bool) -> bytes:
    stream = io.BytesIO()
    torch.save(_tensors(), stream, _use_new_zipfile_serialization=zipped)
    return stream.getvalue()
