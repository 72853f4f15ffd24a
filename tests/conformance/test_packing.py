"""Ragged batches without work on padding: the same numbers, zero at padding, only where it is possible."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

from encoders_shared.masks import read_attention_mask
from encoders_shared.packing import plan_packing
from tests.support import (
    ALL_TASKS,
    BACKENDS,
    NANO,
    assert_close,
    inputs_of,
    make_batch,
    make_model,
    predictions,
)
from tests.support import real as at_real_tokens

every_encoder = pytest.mark.parametrize("name", NANO)
every_model = pytest.mark.parametrize("task", ALL_TASKS)
LENGTHS = (12, 5, 9, 1)


def plan(rows, wanted=True):
    mask = torch.tensor(rows)
    return plan_packing(read_attention_mask(mask, *mask.shape[:1], mask.shape[-1], mask.device), wanted)


@every_encoder
@every_model
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("filling", [0, 5])
def test_values_and_gradients(name, task, backend, filling, monkeypatch):
    monkeypatch.setattr("encoders_shared.model.rows_to_add", lambda *_: filling)
    batch = make_batch(task, LENGTHS)
    if task == "question-answering":  # with answers it is not packed
        batch = inputs_of(batch)
    mask = batch["attention_mask"]
    results = []
    for packing in (False, True):
        model = make_model(name, task, backend)
        model.trunk.packing = packing
        output = model(**batch, output_hidden_states=True)
        loss = output.loss if "labels" in batch else at_real_tokens(predictions(output), mask).square().mean()
        loss.backward()
        gradients = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
        results.append((output, gradients))
    (plain, expected), (packed, actual) = results
    assert_close(at_real_tokens(predictions(packed), mask), at_real_tokens(predictions(plain), mask), 1e-5)
    flat = mask.flatten(0, -2).bool()
    for ours, theirs in zip(packed.hidden_states, plain.hidden_states, strict=True):
        assert_close(ours[flat], theirs[flat], 1e-5)
        assert not ours[~flat].any()
    assert actual.keys() == expected.keys()
    largest = max(gradient.abs().max() for gradient in expected.values())
    for parameter, gradient in expected.items():
        assert (actual[parameter] - gradient).abs().max() <= 1e-4 * gradient.abs().max() + 1e-6 * largest, parameter


@every_encoder
@every_model
def test_work_is_saved(name, task, monkeypatch):
    """The layers see real tokens alone, as a model with or without a head is told."""
    seen = []
    model = make_model(name, task)
    layers = next(module for module in model.modules() if isinstance(module, torch.nn.ModuleList))
    layers[-2].register_forward_pre_hook(lambda module, arguments: seen.append(tuple(arguments[0].shape[:2])))
    inputs = inputs_of(make_batch(task, LENGTHS))
    for packing in (True, False, None):
        model.packing = packing
        model(**inputs)
    tokens, rows = inputs["attention_mask"].sum().item(), inputs["attention_mask"].numel() // 12
    assert seen == [(1, tokens), (rows, 12), (1, tokens)]
    monkeypatch.setattr("encoders_shared.model.rows_to_add", lambda count, *_: 5 if count == tokens else 0)
    model(**inputs)
    assert seen[3:] == [(1, tokens + 5)]


@every_encoder
@every_model
def test_one_setting_for_a_model_and_its_trunk(name, task, tmp_path):
    """It goes with copies and pickles; a saved model is one of the default."""
    model = make_model(name, task)
    assert model.packing is None
    model.packing = True
    assert model.trunk.packing is True
    model.trunk.packing = False
    assert model.packing is False
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert twin.packing is twin.trunk.packing is False
        twin.packing = True
        assert model.packing is False
    for wrong in ("yes", 1, torch.tensor(True)):
        with pytest.raises(TypeError, match=r"packing must be True, False or None, got .*: pass one of these"):
            model.packing = wrong
    assert model.packing is False
    model.save_pretrained(tmp_path)
    assert type(model).from_pretrained(tmp_path).packing is None


@every_encoder
def test_attention_weights_need_the_padded_form(name):
    model = make_model(name, None)
    model.packing = True
    weights = model(**inputs_of(make_batch(None, LENGTHS)), output_attentions=True).attentions
    assert weights[0].shape == (4, 4, 12, 12)


@every_encoder
@pytest.mark.parametrize("packing", [True, False])
@pytest.mark.parametrize("asked", [{}, {"output_hidden_states": True, "output_attentions": True}])
def test_packed_output(name, packing, asked):
    """The states of real tokens alone, row by row; all else as ever."""
    model, batch = make_model(name, None), inputs_of(make_batch(None, LENGTHS))
    model.packing = packing
    with torch.no_grad():
        expected, actual = model(**batch, **asked), model(**batch, **asked, packed_output=True)
    tokens = batch["attention_mask"].bool()
    assert actual.keys() == expected.keys()
    assert torch.equal(actual.last_hidden_state, expected.last_hidden_state[tokens])
    assert torch.equal(actual.pooler_output, expected.pooler_output)
    if asked:
        assert all(torch.equal(a, e[tokens]) for a, e in zip(actual.hidden_states, expected.hidden_states, strict=True))
        assert all(torch.equal(a, e) for a, e in zip(actual.attentions, expected.attentions, strict=True))


@pytest.mark.parametrize(
    ("rows", "lengths"),
    [
        ([[1, 1, 1, 0], [1, 0, 0, 0]], [3, 1]),
        ([[0, 1, 1, 1], [0, 0, 1, 1]], [3, 2]),
        ([[0, 1, 1, 0], [0, 0, 0, 0]], [2]),
        ([[1, 1, 1, 1], [0, 0, 0, 1]], [4, 1]),
    ],
)
def test_what_is_packed(rows, lengths):
    packing = plan(rows)
    assert packing is not None
    assert packing.lengths == lengths
    values = torch.arange(1.0, 1 + 2 * len(rows) * 4).reshape(len(rows), 4, 2)
    restored = packing.unpack(packing.pack(values))
    assert torch.equal(restored, values * torch.tensor(rows)[:, :, None])


@pytest.mark.parametrize(
    "rows",
    [
        [[1, 1, 1, 1], [1, 1, 1, 1]],  # nothing is masked
        [[1, 0, 1, 0], [1, 1, 0, 0]],  # a gap
        [[0, 0, 0, 0], [0, 0, 0, 0]],  # nothing is left
        [[[1, 1], [0, 1]], [[1, 0], [1, 1]]],  # differs by query
    ],
)
def test_what_is_not_packed(rows):
    assert plan(rows) is None


def test_the_choice():
    sparse, dense = [[1] * 20, [1] * 17 + [0] * 3], [[1] * 20, [1] * 19 + [0]]
    assert plan(sparse, wanted=None) is not None
    assert plan(dense, wanted=None) is None
    assert plan(dense, wanted=True) is not None
    assert plan(sparse, wanted=False) is None
