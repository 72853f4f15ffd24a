"""Running a model leaves everything around it as it was, and does not depend on it."""

from __future__ import annotations

import pickle
import random
import threading

import numpy as np
import pytest
import torch

import encoders
from tests.properties.strategies import make_small
from tests.support import (
    ALL_TASKS,
    BACKENDS,
    NANO,
    assert_close,
    inputs_of,
    loss_of,
    make_batch,
    make_model,
    predictions,
)

every_encoder = pytest.mark.parametrize("name", NANO)
every_model = pytest.mark.parametrize("task", ALL_TASKS)
every_backend = pytest.mark.parametrize("backend", BACKENDS)
LENGTHS = (7, 2, 5)
SMALL = {"num_hidden_layers": 2, "hidden_size": 12, "num_attention_heads": 3, "intermediate_size": 16}


def surroundings():
    """What a library could change behind a person's back."""
    return {
        "default dtype": torch.get_default_dtype(),
        "default device": torch.get_default_device(),
        "random numbers": torch.get_rng_state().tolist(),
        "random numbers of numpy": pickle.dumps(np.random.get_state()),  # noqa: NPY002
        "random numbers of Python": random.getstate(),
        "gradients": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "anomaly detection": torch.is_anomaly_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "threads": torch.get_num_threads(),
        "matrix products": torch.get_float32_matmul_precision(),
        "sdpa": torch.backends.cuda.math_sdp_enabled(),
    }


@every_encoder
@every_model
@every_backend
def test_a_call_leaves_no_trace(name, task, backend):
    """Forward and backward, packed or not; a call that is refused; and models that are in evaluation mode."""
    model, batch = make_model(name, task, backend, **SMALL), make_batch(task, LENGTHS)
    before = surroundings()
    for packing in (True, False):
        model.trunk.packing = packing
        loss_of(model(**batch), batch["attention_mask"]).backward()
        with torch.no_grad():
            assert not model(**batch, output_attentions=True, output_hidden_states=True)[0].requires_grad
            assert not torch.is_grad_enabled()
    with pytest.raises(ValueError, match=r"input_ids\[.*allowed: 0 \.\. 139"):
        model(**{**batch, "input_ids": batch["input_ids"] * 1000})
    assert surroundings() == before


@every_encoder
def test_looking_up_saving_and_loading_leave_no_trace(name, tmp_path):
    model = make_model(name, "masked-lm")
    before = surroundings()
    encoders.list_encoders()
    encoders.card(name)
    model.save_pretrained(tmp_path)
    encoders.load(tmp_path, task="masked-lm")
    assert surroundings() == before


@every_encoder
@every_backend
def test_inference_mode_and_deterministic_algorithms(name, backend):
    """No part lacks a deterministic form, and the answer is the same."""
    model, batch = make_model(name, "masked-lm", backend, **SMALL), make_batch("masked-lm", LENGTHS)
    expected = model(**batch)
    with torch.inference_mode():
        assert_close(model(**batch).logits, expected.logits.detach(), 1e-5)
    torch.use_deterministic_algorithms(True)
    try:
        actual = model(**batch)
        actual.loss.backward()
    finally:
        torch.use_deterministic_algorithms(False)
    assert_close(actual.logits.detach(), expected.logits.detach(), 1e-5)


@every_encoder
@pytest.mark.parametrize("backend", ["auto", "eager"])
def test_one_or_two_threads_of_torch(name, backend):
    """Sums may be split among threads: the same within rounding, for values and gradients."""
    task = "token-classification"
    model, batch = make_model(name, task, backend, num_hidden_layers=1), make_batch(task, (64, 31, 50))
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            model.zero_grad()
            output = model(**batch)
            output.loss.backward()
            found = {key: one.grad.clone() for key, one in model.named_parameters() if one.grad is not None}
            results.append((output.logits.detach()[batch["attention_mask"].bool()], found))
    finally:
        torch.set_num_threads(threads)
    assert_close(results[1][0], results[0][0], 1e-5)
    largest = max(gradient.abs().max() for gradient in results[0][1].values())
    for key, gradient in results[0][1].items():
        assert (results[1][1][key] - gradient).abs().max() <= 1e-5 * largest, key


@every_encoder
@every_model
def test_eight_threads_share_a_model(name, task):
    """Each with batches of its own, packed or not: what each gets is what it would get alone."""
    model = make_small(name, task, SMALL, "auto")
    batches = [inputs_of(make_batch(task, (7, *(1 + (seed + k) % 6 for k in range(3))), seed)) for seed in range(8)]

    def answer(batch):
        with torch.no_grad():
            return predictions(model(**batch))

    expected = [answer(batch) for batch in batches]
    results = [[] for _ in batches]
    start = threading.Barrier(len(batches))

    def work(number):
        start.wait()
        for _ in range(3):
            results[number].append(answer(batches[number]))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(len(batches))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for answers, alone in zip(results, expected, strict=True):
        assert len(answers) == 3
        for one in answers:
            assert_close(one, alone, 1e-12)
