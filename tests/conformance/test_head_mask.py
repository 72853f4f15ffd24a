"""Masking attention heads."""

from __future__ import annotations

import pytest
import torch

from tests.support import ALL_TASKS, BACKENDS, NANO, assert_close, inputs_of, make_batch, make_model, predictions

every_encoder = pytest.mark.parametrize("name", NANO)


@every_encoder
@pytest.mark.parametrize("task", ALL_TASKS)
def test_backends_agree_and_forms_are_equivalent(name, task):
    inputs = inputs_of(make_batch(task))
    one_for_all = torch.tensor([1.0, 0.0, 0.5, 1.0])
    results = []
    for backend in BACKENDS:
        model = make_model(name, task, backend)
        with torch.no_grad():
            plain = predictions(model(**inputs))
            results.append(predictions(model(**inputs, head_mask=one_for_all)))
            by_layer = predictions(model(**inputs, head_mask=one_for_all.expand(3, 4)))
            none = predictions(model(**inputs, head_mask=torch.ones(4)))
        assert torch.equal(by_layer, results[-1])
        assert_close(none, plain, 1e-6)
        assert not torch.allclose(results[-1], plain, atol=1e-3)
    assert_close(results[1], results[0], 1e-5)


@every_encoder
def test_a_masked_head_has_no_weights_and_no_influence(name):
    model = make_model(name, None)
    inputs = inputs_of(make_batch(None))
    mask = torch.ones(3, 4)
    mask[1, 2] = 0
    with torch.no_grad():
        weights = model(**inputs, head_mask=mask, output_attentions=True).attentions
    assert not weights[1][:, 2].any()
    assert weights[1][:, 1].any()
    assert weights[0][:, 2].any()


@every_encoder
def test_head_importance(name):
    """The gradient of the head mask (Michel et al. 2019)."""
    model = make_model(name, None)
    for backend in BACKENDS:
        model.set_attn_implementation(backend)
        mask = torch.ones(3, 4, requires_grad=True)
        model(**inputs_of(make_batch(None)), head_mask=mask).last_hidden_state.square().mean().backward()
        assert mask.grad.all()


@every_encoder
def test_a_wrong_shape_is_refused(name):
    with pytest.raises(ValueError, match=r"head_mask has shape \[3\]; expected \[4\] or \[3, 4\]"):
        make_model(name, None)(**inputs_of(make_batch(None)), head_mask=torch.ones(3))
