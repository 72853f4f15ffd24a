"""Saving, loading, copying, and moving weights between a bare model and its heads."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from safetensors import safe_open
from transformers import AutoConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import encoders
import encoders.auto
from encoders.family import AUTO_CLASSES, TASKS
from tests.support import ALL_TASKS, NANO, assert_close, inputs_of, make_batch, make_model, predictions

every_encoder = pytest.mark.parametrize("name", NANO)
every_model = pytest.mark.parametrize("task", ALL_TASKS)


def run(model, task):
    with torch.no_grad():
        return predictions(model(**inputs_of(make_batch(task))))


@every_encoder
@every_model
def test_round_trip(name, task, tmp_path):
    """Bit for bit, without a buffer that could come back as garbage."""
    model = make_model(name, task)
    assert not dict(model.named_buffers())
    model.save_pretrained(tmp_path)
    for loaded in (type(model).from_pretrained(tmp_path), encoders.load(str(tmp_path), task=task)):
        loaded.eval()
        assert type(loaded) is type(model)
        assert loaded.config.to_dict().keys() == model.config.to_dict().keys()
        assert loaded.state_dict().keys() == model.state_dict().keys()
        assert all(torch.equal(value, model.state_dict()[key]) for key, value in loaded.state_dict().items())
        assert_close(run(loaded, task), run(model, task), 1e-6)


@every_encoder
def test_labels_that_could_not_be_loaded_are_not_saved(name, tmp_path):
    """Neither the configuration nor the weights, until what the message says is done."""
    model = make_model(name, "sequence-classification", num_labels=2)
    model.config.id2label, model.config.label2id = {0: "a", 1: "b"}, {"a": 0, "b": 1}
    model.config.id2label = {0: "b", 1: "a"}
    with pytest.raises(ValueError, match="Set label2id too, or set it to None"):
        model.save_pretrained(tmp_path)
    assert not list(tmp_path.iterdir())
    model.config.label2id = None
    model.save_pretrained(tmp_path)
    assert encoders.load(str(tmp_path), task="sequence-classification").config.id2label == {0: "b", 1: "a"}


@every_encoder
def test_sharded_round_trip(name, tmp_path):
    model = make_model(name, "masked-lm")
    model.save_pretrained(tmp_path, max_shard_size="300kB")
    assert (tmp_path / "model.safetensors.index.json").exists()
    assert torch.equal(run(encoders.load(str(tmp_path), task="masked-lm").eval(), "masked-lm"), run(model, "masked-lm"))


@every_encoder
def test_tied_weights(name, tmp_path):
    """One tensor in memory, one in the file, tied again after loading; two of each if they are not tied."""
    for tie in (True, False):
        model = make_model(name, "masked-lm", tie_word_embeddings=tie)
        folder = tmp_path / str(tie)
        model.save_pretrained(folder)
        loaded = encoders.load(str(folder), task="masked-lm")
        for one in (model, loaded):
            shared = one.get_output_embeddings().weight is one.get_input_embeddings().weight
            assert shared == tie
        with safe_open(folder / "model.safetensors", "pt") as file:
            stored = set(file.keys())
        assert len(stored) == len(model.state_dict()) - int(tie)


@every_encoder
@pytest.mark.parametrize("task", TASKS)
def test_bare_into_head_and_back(name, task, tmp_path):
    bare = make_model(name, None)
    bare.save_pretrained(tmp_path / "bare")
    cls = type(make_model(name, task))
    headed, info = cls.from_pretrained(tmp_path / "bare", output_loading_info=True)
    headed.eval()
    new = set(headed.state_dict()) - {
        prefix + key for key in bare.state_dict() for prefix in ("", f"{headed.base_model_prefix}.")
    }
    tied = set(cls._tied_weights_keys or ())
    assert set(info["missing_keys"]) - tied == new - tied
    assert not info["unexpected_keys"]
    assert all(parameter.isfinite().all() for parameter in headed.parameters())
    inputs = inputs_of(make_batch(None))
    with torch.no_grad():
        expected = bare(**inputs).last_hidden_state
        assert torch.equal(headed.trunk.encode(**inputs).last_hidden_state, expected)
        headed.save_pretrained(tmp_path / "head")
        back = encoders.load(str(tmp_path / "head")).eval()
        assert torch.equal(back(**inputs).last_hidden_state, expected)


@pytest.mark.filterwarnings("ignore:.*freshly initialised")
@every_encoder
@every_model
def test_loading_on_the_meta_device_first(name, task, tmp_path):
    """As big models are loaded: made without memory, then filled. Fresh heads must not be raw memory."""
    make_model(name, None).save_pretrained(tmp_path)
    first, second = (run_seeded(name, task, tmp_path) for _ in range(2))
    for key, value in first.items():
        assert value.isfinite().all()
        assert value.abs().max() < 10
        assert torch.equal(value, second[key]), key


def run_seeded(name, task, folder):
    torch.manual_seed(3)
    with torch.no_grad():
        return encoders.load(str(folder), task=task).state_dict()


@every_encoder
@every_model
def test_copies_and_pickles(name, task):
    model = make_model(name, task)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert_close(run(twin, task), run(model, task), 1e-6)


@every_encoder
@every_model
def test_auto_classes(name, task, tmp_path):
    """Ours are found by their own model types; where transformers has a class for the type, it keeps it."""
    model = make_model(name, task, num_labels=2)
    assert type(AUTO_CLASSES[task].from_config(model.config)) is type(model)
    model.save_pretrained(tmp_path)
    config_class = CONFIG_MAPPING[model.config.model_type]
    found = AUTO_CLASSES[task].from_pretrained(tmp_path)
    assert type(AutoConfig.from_pretrained(tmp_path)) is config_class
    if config_class is type(model.config):
        assert type(found) is type(model)
    else:
        assert type(found).__module__.startswith("transformers.")


@every_encoder
@every_model
def test_initial_weights(name, task):
    """Finite and small; the same from the same seed; norms at one and zero; nothing left as it came."""
    models = []
    for _ in range(2):
        torch.manual_seed(5)
        models.append(encoders.create(name, task=task, vocab_size=140))
    for (key, first), second in zip(models[0].state_dict().items(), models[1].state_dict().values(), strict=True):
        assert torch.equal(first, second), key
        assert first.isfinite().all()
        assert first.abs().max() <= 1.0, key
        if key.endswith("bias") and "conv" not in key:
            assert not first.any(), key
        elif first.dim() == 2:
            assert 0.005 < first.std() < 0.1, key
