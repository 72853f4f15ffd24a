"""Masks and padding: what is masked has no influence, wherever it stands and however the mask is written."""

from __future__ import annotations

import pytest
import torch

import encoders
from tests.support import (
    ALL_TASKS,
    BACKENDS,
    NANO,
    SMALL,
    assert_close,
    inputs_of,
    loss_of,
    make_batch,
    make_model,
    predictions,
    real,
)

every_encoder = pytest.mark.parametrize("name", NANO)
every_model = pytest.mark.parametrize("task", ALL_TASKS)
every_backend = pytest.mark.parametrize("backend", BACKENDS)
packed_or_not = pytest.mark.parametrize("packing", [True, False])
single = pytest.mark.parametrize("task", [task for task in ALL_TASKS if task != "multiple-choice"])


def run(model, inputs):
    with torch.no_grad():
        return predictions(model(**inputs))


@every_encoder
@single
@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.int32, torch.uint8, torch.float32, torch.float16])
def test_mask_forms_are_equivalent(name, task, dtype):
    model = make_model(name, task)
    inputs = inputs_of(make_batch(task))
    mask = inputs["attention_mask"]
    expected = run(model, inputs)
    rows, length = mask.shape
    forms = [
        mask,
        mask[:, None, None, :],
        mask[:, None, :].expand(rows, length, length),
        mask[:, None, None, :].expand(rows, 1, length, length),
    ]
    for form in forms:
        actual = run(model, {**inputs, "attention_mask": form.to(dtype)})
        assert_close(real(actual, mask), real(expected, mask), 1e-5, str(list(form.shape)))


@every_encoder
@every_backend
def test_a_mask_that_differs_by_query(name, backend):
    """A causal mask: a token's state depends on the tokens before it alone, as if the rest were cut off.

    The n-gram convolution of HELM-BERT looks one token ahead by design, so only the first layer's attention is causal
    there; hence the check through the attention weights.
    """
    model = make_model(name, None, backend)
    inputs = inputs_of(make_batch(None, lengths=(7, 7)))
    causal = torch.ones(7, 7).tril().expand(2, 7, 7)
    with torch.no_grad():
        output = model(input_ids=inputs["input_ids"], attention_mask=causal, output_attentions=True)
        plain = model(input_ids=inputs["input_ids"], attention_mask=causal)
    for weights in output.attentions:
        assert not weights.triu(diagonal=1).any()
    assert_close(plain.last_hidden_state, output.last_hidden_state, 1e-5)


@every_encoder
@every_model
@every_backend
@packed_or_not
def test_padding_and_company_change_nothing(name, task, backend, packing):
    """A row alone, the same row padded on the right among others, with garbage ids under the mask."""
    model = make_model(name, task, backend)
    model.trunk.packing = packing
    inputs = inputs_of(make_batch(task))
    padded = run(model, inputs)
    ids, mask = inputs["input_ids"], inputs["attention_mask"]
    garbage = torch.where(mask == 1, ids, torch.randint(0, SMALL["vocab_size"], ids.shape))
    assert_close(real(run(model, {**inputs, "input_ids": garbage}), mask), real(padded, mask), 1e-5, "garbage")
    for row, length in enumerate((12, 5, 9)):
        alone = run(model, {"input_ids": ids[row : row + 1, ..., :length]})[0]
        among = padded[row, :length] if task in (None, "masked-lm", "token-classification") else padded[row]
        if task == "question-answering":
            among = among[:length]
        assert_close(among, alone, 1e-5, f"row {row}")


@every_encoder
@every_model
@every_backend
@packed_or_not
def test_left_padding(name, task, backend, packing):
    model = make_model(name, task, backend)
    model.trunk.packing = packing
    right = inputs_of(make_batch(task))
    expected = run(model, right)
    shift = [12 - length for length in (12, 5, 9)]
    left = {
        key: torch.stack([row.roll(by, dims=-1) for row, by in zip(value, shift, strict=True)])
        for key, value in right.items()
    }
    positions = (left["attention_mask"].cumsum(-1) - 1).clamp(min=0)
    calls = [{**left, "position_ids": positions}]
    if encoders.card(name).padding.startswith("left or right"):
        calls.append(left)
    for inputs in calls:
        actual = run(model, inputs)
        if actual.shape[:2] == (3, 12):  # one prediction for each token
            actual = torch.stack([row.roll(-by, dims=0) for row, by in zip(actual, shift, strict=True)])
        mask = right["attention_mask"]
        assert_close(real(actual, mask), real(expected, mask), 1e-5)


@every_encoder
@every_model
@packed_or_not
def test_fully_masked_row(name, task, packing):
    """It attends to nothing, on every backend; nothing becomes nan, forward or backward; other rows do not notice."""
    batch = make_batch(task)
    batch["attention_mask"][1] = 0
    results = []
    for backend in BACKENDS:
        model = make_model(name, task, backend)
        model.trunk.packing = packing
        output = model(**batch)
        results.append(predictions(output).detach())
        assert not results[-1].isnan().any()
        loss_of(output, batch["attention_mask"]).backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
        with torch.no_grad():
            weights = model(**inputs_of(batch), output_attentions=True).attentions
        masked = batch["attention_mask"].flatten(0, -2).sum(-1) == 0
        assert all(not layer[masked].any() for layer in weights)
    mask = batch["attention_mask"]
    assert_close(real(results[1], mask), real(results[0], mask), 1e-5)
    clean = run(make_model(name, task), inputs_of(make_batch(task)))
    others = mask[[0, 2]]
    assert_close(real(results[1][[0, 2]], others), real(clean[[0, 2]], others), 1e-5)


@every_encoder
@every_model
def test_an_empty_batch(name, task):
    model = make_model(name, task)
    empty = {key: value[:0] for key, value in inputs_of(make_batch(task)).items()}
    assert run(model, empty).shape[0] == 0


@every_encoder
@every_model
def test_one_token(name, task):
    model = make_model(name, task)
    inputs = {key: value[..., :1] for key, value in inputs_of(make_batch(task)).items()}
    assert not run(model, inputs).isnan().any()


@every_encoder
@every_model
def test_backends_agree(name, task):
    batch = make_batch(task)
    gradients, losses = [], []
    for backend in BACKENDS:
        model = make_model(name, task, backend)
        loss = loss_of(model(**batch), batch["attention_mask"])
        loss.backward()
        losses.append(loss.detach())
        gradients.append({n: p.grad for n, p in model.named_parameters() if p.grad is not None})
    assert_close(losses[1], losses[0], 1e-5)
    assert gradients[0].keys() == gradients[1].keys()
    largest = max(gradient.abs().max() for gradient in gradients[0].values())
    for parameter, gradient in gradients[0].items():
        assert (gradients[1][parameter] - gradient).abs().max() <= 1e-4 * gradient.abs().max() + 1e-6 * largest
