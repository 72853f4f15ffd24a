"""Damaged and hostile files: a model that runs, or a CheckpointError; nothing else."""

from __future__ import annotations

import json
import struct

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import encoders
from encoders import CheckpointError
from tests.encoders.checkpoints.folders import write_json
from tests.support import NANO, make_model

SOME = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(0, 40),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.integers(0, 3), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(0, 3), max_size=2),
)
KEYS = ["auto_map", "label2id", "id2label", "num_labels", "pruned_heads", "quantization_config", "rope_scaling", "self"]

pytestmark = pytest.mark.filterwarnings("ignore:.*freshly initialised", "ignore:.*num_hidden_layers=1")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder of each family, with the content of its two files."""
    folders = {}
    for name in NANO:
        folder = tmp_path_factory.mktemp(name)
        small = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24}
        make_model(name, "masked-lm", **small).save_pretrained(folder)
        folders[name] = (
            folder,
            json.loads((folder / "config.json").read_text()),
            (folder / "model.safetensors").read_bytes(),
        )
    return folders


def assert_loads_or_refused(folder, task) -> bool:
    """Return whether it loads; then it runs, too."""
    try:
        model = encoders.load(str(folder), task=task)
    except CheckpointError:
        return False
    output = model(torch.tensor([[5, 6, 7]]))[0]
    assert output.shape[:2] == (1, 3)
    return True


@pytest.mark.parametrize("name", NANO)
@pytest.mark.parametrize("task", [None, "masked-lm", "token-classification"])
def test_undamaged(name, saved, task):
    assert assert_loads_or_refused(saved[name][0], task)


@pytest.mark.parametrize("name", NANO)
@SOME
@given(data=st.data())
def test_config(name, saved, data):
    folder, config, _ = saved[name]
    keys = st.sampled_from(sorted({*config, *KEYS}))
    changes = data.draw(st.dictionaries(keys, VALUES, min_size=1, max_size=3))
    left_out = data.draw(st.sets(keys, max_size=1))
    write_json(folder / "config.json", {k: v for k, v in {**config, **changes}.items() if k not in left_out})
    try:
        assert_loads_or_refused(folder, data.draw(st.sampled_from([None, "masked-lm", "token-classification"])))
    finally:
        write_json(folder / "config.json", config)


@pytest.mark.parametrize("name", NANO)
@SOME
@given(data=st.data())
def test_header(name, saved, data):
    folder, _, content = saved[name]
    end = 8 + struct.unpack("<Q", content[:8])[0]
    places = st.one_of(st.integers(0, 8), st.integers(8, end))
    damaged = bytearray(content)
    for place, value in data.draw(st.dictionaries(places, st.integers(0, 255), min_size=1, max_size=4)).items():
        damaged[place] = value
    try:
        (folder / "model.safetensors").write_bytes(damaged)
        assert_loads_or_refused(folder, None)
    finally:
        (folder / "model.safetensors").write_bytes(content)
