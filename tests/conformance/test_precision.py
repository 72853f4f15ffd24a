"""Other number formats give the same answer as far as they can."""

from __future__ import annotations

import pytest
import torch

from tests.support import ALL_TASKS, BACKENDS, NANO, assert_close, inputs_of, make_batch, make_model, predictions, real

every_encoder = pytest.mark.parametrize("name", NANO)
every_model = pytest.mark.parametrize("task", ALL_TASKS)
every_backend = pytest.mark.parametrize("backend", BACKENDS)


def exact(name, task, backend):
    with torch.no_grad():
        return predictions(make_model(name, task, backend).double()(**inputs_of(make_batch(task))))


@every_encoder
@every_model
@every_backend
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-5), (torch.bfloat16, 0.15), (torch.float16, 0.02)])
def test_error_against_float64(name, task, backend, dtype, tolerance):
    """Bounds on the largest error, as a share of the largest value; the weights here are spread far more than trained
    ones, so that three layers amplify the rounding of the inputs.
    """
    batch = make_batch(task)
    model = make_model(name, task, backend).to(dtype)
    output = model(**batch)
    actual = predictions(output)
    assert actual.dtype == dtype
    mask = batch["attention_mask"]
    assert_close(real(actual.detach(), mask).double(), real(exact(name, task, backend), mask), tolerance)
    if task is not None:
        output.loss.backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@every_encoder
@every_model
def test_autocast(name, task):
    batch = make_batch(task)
    model = make_model(name, task)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = model(**batch)
    mask = batch["attention_mask"]
    expected = real(exact(name, task, "sdpa"), mask)
    assert_close(real(predictions(output).detach(), mask).double(), expected, 0.15)
    if task is not None:
        assert output.loss.dtype == torch.float32


@every_encoder
def test_the_default_dtype_has_no_influence(name):
    model = make_model(name, None)
    inputs = inputs_of(make_batch(None, lengths=(40, 23)))
    expected = model(**inputs).last_hidden_state
    torch.set_default_dtype(torch.bfloat16)
    try:
        actual = model(**inputs).last_hidden_state
        made = make_model(name, None)
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(actual, expected)
    assert next(made.parameters()).dtype == torch.bfloat16


@every_encoder
@every_backend
def test_extreme_scores_stay_finite(name, backend):
    model = make_model(name, None, backend)
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if any(part in parameter_name for part in ("q_lin", "k_lin", "in_proj_qk", "query_proj", "key_proj")):
                parameter.mul_(30)
    output = model.half()(**inputs_of(make_batch(None)))
    assert output.last_hidden_state.isfinite().all()
    output.last_hidden_state.float().square().mean().backward()
