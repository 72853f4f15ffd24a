"""What is saved, copied or made without memory comes back bit for bit."""

from __future__ import annotations

import copy
import pickle
import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import encoders
from tests.properties.strategies import batches, fields, make_small, packings, run, tasks
from tests.support import NANO, assert_close, inputs_of

pytestmark = pytest.mark.filterwarnings("ignore:a HELM-BERT with num_hidden_layers=1")
every_encoder = pytest.mark.parametrize("name", NANO)
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def draw_model(data, name):
    """A model for any task with any number format of its parameters, and inputs for it."""
    task = data.draw(tasks)
    model = make_small(name, task, data.draw(fields(name)), "sdpa", data.draw(packings))
    return task, model.to(data.draw(st.sampled_from(DTYPES))), inputs_of(data.draw(batches(task)))


def assert_same(actual, expected, inputs):
    """Parameters and buffers bit for bit, and nothing that is not there; ties as before; so the same predictions."""
    assert not [tensor for tensor in (*actual.parameters(), *actual.buffers()) if tensor.is_meta]
    assert dict(actual.named_buffers()).keys() == dict(expected.named_buffers()).keys()
    ours, theirs = actual.state_dict(), expected.state_dict()
    assert ours.keys() == theirs.keys()
    assert all(ours[key].dtype == theirs[key].dtype and torch.equal(ours[key], theirs[key]) for key in theirs)
    assert len(list(actual.parameters())) == len(list(expected.parameters()))
    assert_close(run(actual.eval(), inputs), run(expected, inputs), 10 * torch.finfo(expected.dtype).eps)


@every_encoder
@given(data=st.data())
def test_saved_and_loaded(name, data):
    """In one file or with a file for each tensor; with memory or under torch's device for models without."""
    task, model, inputs = draw_model(data, name)
    shards = data.draw(st.sampled_from([10**9, 1]), label="bytes in a file")
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder, max_shard_size=shards)
        assert (len(list(Path(folder).glob("*.safetensors"))) > 1) == (shards == 1)
        with torch.device(data.draw(st.sampled_from(["cpu", "meta"]))):
            loaded = encoders.load(folder, task=task, attn_implementation="sdpa")
        loaded.trunk.packing = model.trunk.packing
        ours, theirs = loaded.config.to_dict(), model.config.to_dict()
        assert {key for key in theirs if ours[key] != theirs[key]} <= {"_name_or_path", "architectures"}
        assert_same(loaded, model, inputs)


@every_encoder
@given(data=st.data())
def test_made_without_memory_and_filled(name, data):
    """A model holds nothing but its parameters: given those, one that was made on the meta device is complete."""
    _, model, inputs = draw_model(data, name)
    with torch.device("meta"):
        empty = type(model)(copy.deepcopy(model.config))
    empty.load_state_dict(model.state_dict(), assign=True)
    empty.tie_weights()
    empty.trunk.packing = model.trunk.packing
    assert_same(empty, model, inputs)


@every_encoder
@given(data=st.data())
def test_copied_and_pickled(name, data):
    """A copy has everything and shares nothing."""
    _, model, inputs = draw_model(data, name)
    twin = data.draw(st.sampled_from([copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]))(model)
    assert_same(twin, model, inputs)
    assert twin.trunk.packing is model.trunk.packing
    assert twin.config is not model.config
    before = [parameter.clone() for parameter in model.parameters()]
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.fill_(3)
    assert all(torch.equal(one, other) for one, other in zip(model.parameters(), before, strict=True))
