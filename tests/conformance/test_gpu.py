"""Models on a GPU, simulated: everything is made there, and the numbers are those of the CPU."""

from __future__ import annotations

import pytest
import torch

from encoders_shared.attention import backends
from encoders_shared.attention.sdpa import sdpa
from tests.simulated_gpu import OnGPU, simulated_gpu
from tests.support import ALL_TASKS, BACKENDS, NANO, assert_close, make_batch, make_model, predictions


@pytest.fixture(autouse=True)
def no_nested_tensors(monkeypatch):
    """Packed rows of plain attention: what is made for all of them at once has tests of its own (test_jagged.py)."""
    monkeypatch.setattr(backends, "jagged_sdpa", backends.by_sequence(sdpa))


def run(model, batch):
    """Predictions, loss, and all gradients in one row: those of some biases are nothing but rounding."""
    output = model(**batch)
    loss = output.loss if "loss" in output else output.last_hidden_state.square().mean()
    loss.backward()
    gradients = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
    return {"predictions": predictions(output), "loss": loss, "gradients": torch.cat(gradients)}


@pytest.mark.parametrize("name", NANO)
@pytest.mark.parametrize("task", ALL_TASKS)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("form", ["packed", "padded", "without mask"])
def test_same_as_on_the_cpu(name, task, backend, form):
    model = make_model(name, task, backend)
    model.packing = form == "packed"
    batch = make_batch(task)
    if form == "without mask":
        del batch["attention_mask"]
    expected = run(model, batch)
    model.zero_grad()
    with simulated_gpu() as gpu:
        model.to(gpu).tie_weights()
        found = run(model, {key: value.to(gpu) for key, value in batch.items()})
    for key, value in found.items():
        assert isinstance(value, OnGPU), key
        assert_close(value.held.detach(), expected[key].detach(), 1e-5, key)


@pytest.mark.parametrize("name", NANO)
@pytest.mark.parametrize("backend", BACKENDS)
def test_training(name, backend):
    """With dropout, whose numbers are others there."""
    model = make_model(name, None, backend).train()
    with simulated_gpu() as gpu:
        found = run(model.to(gpu), {key: value.to(gpu) for key, value in make_batch(None).items()})
    assert all(isinstance(value, OnGPU) and value.held.isfinite().all() for value in found.values())
