"""Ours and transformers' own DistilBERT: the same weights, both ways, and the same numbers, for every head."""

from __future__ import annotations

import pytest
import torch
import transformers

import encoders
from encoders.distilbert import FAMILY, DistilBertConfig
from tests.support import (
    ALL_TASKS,
    BACKENDS,
    SMALL,
    assert_close,
    inputs_of,
    loss_of,
    make_batch,
    make_model,
    predictions,
    real,
)

every_model = pytest.mark.parametrize("task", ALL_TASKS)
every_backend = pytest.mark.parametrize("backend", BACKENDS)
# Largest difference between the two, as a share of the largest value: about ten times the rounding of the format.
TOLERANCES = {torch.float32: 1e-5, torch.bfloat16: 0.1, torch.float16: 0.01}
every_dtype = pytest.mark.parametrize("dtype", TOLERANCES)


def pair(task, backend="eager", **overrides):
    """Our model, and transformers' class of the same name with the same weights; eager, where it lacks the backend."""
    labels = 2 if task == "question-answering" else SMALL["num_labels"]
    ours = make_model("distilbert-nano", task, backend, num_labels=labels, **overrides)
    config = {key: value for key, value in ours.config.to_dict().items() if key not in ("pooling", "pruned_heads")}
    config["attn_implementation"] = backend if backend == "sdpa" else "eager"
    theirs = getattr(transformers, type(ours).__name__)(transformers.DistilBertConfig(**config))
    theirs.load_state_dict(ours.state_dict(), strict=True)
    return ours, theirs.eval()


@every_model
@every_backend
@every_dtype
def test_outputs(task, backend, dtype):
    tolerance = TOLERANCES[dtype]
    ours, theirs = (model.to(dtype) for model in pair(task, backend))
    batch = make_batch(task)
    with torch.no_grad():
        a, b = ours(**batch, output_hidden_states=True), theirs(**batch, output_hidden_states=True)
    mask = batch["attention_mask"]
    assert_close(real(predictions(a), mask).float(), real(predictions(b), mask).float(), tolerance)
    if task:
        assert_close(a.loss.float(), b.loss.float(), tolerance)
    flat = mask.flatten(0, -2)
    for mine, other in zip(a.hidden_states, b.hidden_states, strict=True):
        assert_close(real(mine, flat).float(), real(other, flat).float(), tolerance)


@every_model
def test_attentions(task):
    ours, theirs = pair(task, "eager")
    batch = make_batch(task)
    with torch.no_grad():
        a, b = (model(**inputs_of(batch), output_attentions=True).attentions for model in (ours, theirs))
    for mine, other in zip(a, b, strict=True):
        assert_close(mine, other, 1e-5)


@every_model
@every_backend
def test_gradients(task, backend):
    batch = make_batch(task)
    gradients = []
    for model in pair(task, backend):
        loss_of(model(**batch), batch["attention_mask"]).backward()
        gradients.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    largest = max(gradient.abs().max() for gradient in gradients[1].values())
    for name, gradient in gradients[1].items():
        assert (gradients[0][name] - gradient).abs().max() <= 1e-4 * gradient.abs().max() + 1e-6 * largest, name


def vectors_of(model, task):
    """All results at real tokens, the loss and all gradients, each as one long vector in float64."""
    batch = make_batch(task)
    mask = batch["attention_mask"]
    output = model(**batch)
    loss = loss_of(output, mask)
    loss.backward()
    results = real(predictions(output), mask).detach().flatten()
    gradients = [parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None]
    return {
        "results": results[results.isfinite()].double(),
        "loss": loss.detach()[None].double(),
        "gradients": torch.cat(gradients).double(),
    }


@every_model
@every_backend
@pytest.mark.parametrize(
    ("dtype", "bounds"),
    [
        (torch.float32, {"results": 1e-5, "loss": 1e-5, "gradients": 2e-5}),
        (torch.bfloat16, {"results": 0.1, "loss": 0.1, "gradients": 0.5}),
        (torch.float16, {"results": 0.01, "loss": 0.01, "gradients": 0.05}),
    ],
    ids=["float32", "bfloat16", "float16"],
)
def test_error_against_float64(task, backend, dtype, bounds):
    """Within bounds of theirs in float64, and of results and gradients no more than twice what theirs has."""
    exact = vectors_of(pair(task, backend)[1].double(), task)
    ours, theirs = (vectors_of(model.to(dtype), task) for model in pair(task, backend))
    for name, bound in bounds.items():
        own, other = ((one[name] - exact[name]).norm() / exact[name].norm() for one in (ours, theirs))
        assert own <= bound, f"{name}: {own:.1e}"
        assert name == "loss" or own <= 2 * other, f"{name}: {own:.1e}, theirs {other:.1e}"


@every_model
def test_activation_reaches_the_masked_lm_head(task):
    """Transformers' rule: config.activation; an older document had GELU in the head whatever the configuration."""
    ours, theirs = pair(task, activation="relu")
    batch = make_batch(task)
    with torch.no_grad():
        mask = batch["attention_mask"]
        assert_close(real(predictions(ours(**batch)), mask), real(predictions(theirs(**batch)), mask), 1e-5)


@every_model
@every_dtype
def test_files_are_exchanged(task, dtype, tmp_path):
    """Theirs is read here, ours there: in the stored format, bit for bit, with the same numbers."""
    ours, theirs = (model.to(dtype) for model in pair(task))
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.mul_(0.9)
    ours.save_pretrained(tmp_path / "ours")
    theirs.save_pretrained(tmp_path / "theirs")
    read_here = encoders.load(tmp_path / "theirs", task=task).eval()
    read_there = type(theirs).from_pretrained(tmp_path / "ours").eval()
    assert type(read_here) is FAMILY.tasks[task]
    inputs = inputs_of(make_batch(task))
    for model, written in ((read_here, theirs), (read_there, ours)):
        weights, expected = model.state_dict(), written.state_dict()
        assert weights.keys() == expected.keys()
        for name, value in expected.items():
            assert weights[name].dtype == dtype, name
            assert torch.equal(weights[name], value), name
        with torch.no_grad():
            results = (real(predictions(one(**inputs)), inputs["attention_mask"]).float() for one in (model, written))
            assert_close(*results, TOLERANCES[dtype])


def test_transformers_keeps_its_own_classes():
    theirs, ours = transformers.DistilBertConfig(), DistilBertConfig()
    for config in (theirs, ours):
        config.n_layers = 1
    assert type(transformers.AutoModel.from_config(theirs)) is transformers.DistilBertModel
    assert type(transformers.AutoModel.from_config(ours)) is FAMILY.tasks[None]
    assert type(transformers.AutoConfig.for_model("distilbert")) is transformers.DistilBertConfig


@pytest.mark.parametrize("extra", [{"tie_weights_": True}, {"output_past": True, "model_max_length": 512}])
def test_published_configurations_are_read(extra):
    """With the keys that files on a hub carry beside the known ones: kept, not refused."""
    config = DistilBertConfig(**{"dim": 768, "n_layers": 6, "n_heads": 12, **extra})
    assert all(config.to_dict()[key] == value for key, value in extra.items())
