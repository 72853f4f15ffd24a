"""`encoders.load`: its report, its warnings, and cases that were reported in public for such checkpoints."""

from __future__ import annotations

import json
import logging
import threading
import warnings

import pytest
import torch
from safetensors import safe_open

import encoders
from encoders.family import AUTO_CLASSES, TASKS
from encoders.registry import families
from tests.encoders.checkpoints.folders import FORMS, golden_folder, write_json
from tests.support import ALL_TASKS, NANO, assert_close, inputs_of, make_batch, make_model, predictions

every_encoder = pytest.mark.parametrize("name", NANO)
every_model = pytest.mark.parametrize("task", ALL_TASKS)


def run(model, task):
    with torch.no_grad():
        return predictions(model(**inputs_of(make_batch(task))))


def same_weights(one, other):
    return all(torch.equal(value, other.state_dict()[key]) for key, value in one.state_dict().items())


@every_encoder
@every_model
def test_what_is_saved_is_loaded(name, task, tmp_path):
    """Every class, bit for bit, with nothing missing (transformers #43951, #48253)."""
    model = make_model(name, task)
    model.save_pretrained(tmp_path)
    loaded, report = encoders.load(str(tmp_path), task=task, return_report=True)
    assert type(loaded) is type(model)
    assert not loaded.training
    assert (report.missing, report.unexpected, report.converted, report.notes) == ((), (), {}, ())
    assert set(report.loaded) | set(report.tied) == set(model.state_dict())
    assert same_weights(loaded, model)
    assert_close(run(loaded, task), run(model, task), 1e-6)
    assert dict(loaded.named_buffers()) == {}
    assert all(p.requires_grad == q.requires_grad for p, q in zip(model.parameters(), loaded.parameters(), strict=True))


@every_encoder
@every_model
def test_transformers_loads_what_we_save(name, task, tmp_path):
    """By from_pretrained of our classes, from a folder that was loaded and saved again."""
    make_model(name, task).save_pretrained(tmp_path / "first")
    model = encoders.load(str(tmp_path / "first"), task=task)
    model.save_pretrained(tmp_path / "second")
    again, info = type(model).from_pretrained(tmp_path / "second", output_loading_info=True)
    assert not info["missing_keys"]
    assert same_weights(again, model)
    assert_close(run(again.eval(), task), run(model, task), 1e-6)


@every_encoder
def test_one_of_two_tied_tensors_is_saved(name, tmp_path):
    """Loaded tied, and saved with one of the two names, whichever the source had (transformers #30202, #44861)."""
    make_model(name, "masked-lm").save_pretrained(tmp_path / "first")
    model = encoders.load(str(tmp_path / "first"), task="masked-lm")
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    model.save_pretrained(tmp_path / "second")
    with safe_open(tmp_path / "second" / "model.safetensors", "pt") as file:
        assert len(set(file.keys())) == len(model.state_dict()) - 1
    again = encoders.load(str(tmp_path / "second"), task="masked-lm")
    assert again.get_output_embeddings().weight is again.get_input_embeddings().weight
    assert same_weights(again, model)


@every_encoder
def test_a_loaded_model_can_be_resized(name, tmp_path):
    """Embeddings, decoder and its bias grow together and stay tied (transformers #8880)."""
    make_model(name, "masked-lm").save_pretrained(tmp_path)
    model = encoders.load(str(tmp_path), task="masked-lm")
    model.resize_token_embeddings(150)
    decoder, embeddings = model.get_output_embeddings(), model.get_input_embeddings()
    assert decoder.weight is embeddings.weight
    assert (decoder.weight.shape[0], decoder.bias.shape[0], model.config.vocab_size) == (150, 150, 150)
    assert model(torch.tensor([[120, 145, 149]])).logits.shape[-1] == 150
    model.save_pretrained(tmp_path / "larger")
    assert encoders.load(str(tmp_path / "larger"), task="masked-lm").config.vocab_size == 150


@every_encoder
@every_model
@pytest.mark.parametrize("suffix", ["safetensors", "bin"])
def test_under_the_meta_device(name, task, suffix, tmp_path):
    """Trained weights need memory, so they get it; no buffer comes back as garbage (transformers #48892)."""
    model = make_model(name, task)
    model.save_pretrained(tmp_path)
    if suffix == "bin":
        (tmp_path / "model.safetensors").unlink()
        torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with torch.device("meta"):
        loaded = encoders.load(str(tmp_path), task=task)
    assert {tensor.device.type for tensor in loaded.state_dict().values()} == {"cpu"}
    assert same_weights(loaded, model)
    assert_close(run(loaded, task), run(model, task), 1e-6)


@every_encoder
def test_the_model_does_not_depend_on_its_files(name, tmp_path):
    """Saving over the folder that it came from, or deleting it, changes nothing."""
    model = make_model(name, None)
    model.save_pretrained(tmp_path)
    loaded = encoders.load(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * (tmp_path / "model.safetensors").stat().st_size)
    assert same_weights(loaded, model)
    loaded.save_pretrained(tmp_path)
    assert same_weights(encoders.load(str(tmp_path)), model)


@every_encoder
def test_transformers_says_nothing_in_addition(name, tmp_path, caplog, capfd):
    make_model(name, "masked-lm").save_pretrained(tmp_path)
    capfd.readouterr()
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        encoders.load(str(tmp_path), task="token-classification")
    assert len(caught) == 1
    assert not [record for record in caplog.records if record.name.startswith("transformers")]
    assert capfd.readouterr() == ("", "")


def test_global_state_is_left_alone(tmp_path):
    make_model("norbert3-nano", "masked-lm").to(torch.bfloat16).save_pretrained(tmp_path)
    before = (torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_default_device(), torch.get_num_threads())
    encoders.load(str(tmp_path), task="masked-lm")
    assert before == (
        *(torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_default_device(), torch.get_num_threads()),
    )


def test_several_threads(tmp_path):
    model = make_model("distilbert-nano", None)
    model.save_pretrained(tmp_path)
    results = []
    threads = [threading.Thread(target=lambda: results.append(encoders.load(str(tmp_path)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all(same_weights(result, model) for result in results)


def test_the_report(tmp_path):
    """What the report of a published folder says, in its fields and as text."""
    folder, _, _ = golden_folder("hplt", "norbert-contiguous-masked-lm", tmp_path)
    with pytest.warns(UserWarning, match="encoders diagnose"):
        model, report = encoders.load(str(folder), task="masked-lm", return_report=True)
    assert isinstance(report, encoders.LoadReport)
    assert (report.family, report.layout, report.evidence, report.dtype) == (
        *("norbert", "HPLT", "architectures", "float32"),
    )
    assert report.source == str(folder) == model.config.name_or_path
    assert len(report.loaded) == len(model.state_dict()) - 1
    assert report.tied == {"classifier.nonlinearity.5.weight": "embedding.word_embedding.weight"}
    text = str(report)
    for part in (
        "HPLT (norbert, seen by its architectures), float32",
        "missing     -",
        "told from class names",
    ):
        assert part in text


def test_a_path_object_will_do(tmp_path):
    make_model("distilbert-nano", None).save_pretrained(tmp_path)
    assert encoders.load(tmp_path).config.name_or_path == str(tmp_path)


@pytest.mark.filterwarnings("ignore:.*freshly initialised", "ignore:.*encoders diagnose")
@pytest.mark.parametrize("form", FORMS)
def test_every_layout_for_every_task(form, tmp_path):
    """A published masked-LM folder gives a working model for each task."""
    case = {"helmbert": "helmbert-masked-lm", "norbert3": "norbert-interleaved-masked-lm"}.get(
        form, "distilbert-masked-lm" if form.startswith("distil") else "norbert-contiguous-masked-lm"
    )
    folder, _, tensors = golden_folder(form, case, tmp_path)
    for task in TASKS:
        model, report = encoders.load(str(folder), task=task, num_labels=4, return_report=True)
        assert type(model) is families()[report.family].tasks[task]
        inputs = inputs_of(tensors["in"])
        if task == "multiple-choice":
            inputs = {name: value[:, None].expand(-1, 3, -1) for name, value in inputs.items()}
        with torch.no_grad():
            assert not predictions(model(**inputs)).isnan().any()


def test_a_family_of_ones_own(tmp_path, monkeypatch):
    """A family that declares no layouts is recognised by the class names and the model type that it saves."""
    import dataclasses

    from encoders import distilbert, registry

    monkeypatch.setattr(
        distilbert, "FAMILY", dataclasses.replace(distilbert.FAMILY, layouts=(), strangers=(), publish=None)
    )
    assert registry.families()["distilbert"].layouts == ()
    model = make_model("distilbert-nano", "masked-lm")
    model.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    for evidence, change in (("architectures", {}), ("model_type", {"architectures": None})):
        write_json(tmp_path / "config.json", {**config, **change})
        loaded, report = encoders.load(str(tmp_path), task="masked-lm", return_report=True)
        assert report.evidence == evidence
        assert same_weights(loaded, model)


@every_encoder
@every_model
def test_auto_classes_read_a_published_folder_after_conversion(name, task, tmp_path):
    """What was loaded and saved is found by transformers' Auto classes, without code from the folder."""
    import encoders.auto

    make_model(name, task, num_labels=2).save_pretrained(tmp_path / "first")
    model = encoders.load(str(tmp_path / "first"), task=task)
    model.save_pretrained(tmp_path / "second")
    found = AUTO_CLASSES[task].from_pretrained(tmp_path / "second").eval()
    assert type(found) is type(model) or type(found).__module__.startswith("transformers.")
