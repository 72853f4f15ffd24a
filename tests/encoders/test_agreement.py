"""Parity as a function for users: where do two models part?"""

from __future__ import annotations

import copy

import pytest
import torch

import encoders
from tests.support import ALL_TASKS, NANO, inputs_of, make_batch, make_model

every_encoder = pytest.mark.parametrize("name", NANO)


@every_encoder
@pytest.mark.parametrize("task", ALL_TASKS)
def test_a_model_agrees_with_itself(name, task):
    model = make_model(name, task)
    report = encoders.parity(model, make_model(name, task, "eager"), inputs_of(make_batch(task)))
    assert report.agree
    assert report.first_departure is None
    assert [one.name for one in report.differences[:4]] == ["embeddings", "layer 1", "layer 2", "layer 3"]
    assert "agree everywhere" in str(report)


@every_encoder
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_a_fault_is_found_where_it_is(name, layer):
    model = make_model(name, "masked-lm")
    broken = copy.deepcopy(model).train()
    last_linear = ("mlp.mlp.4.weight", "linear2.weight", "ffn.lin2.weight")
    fault = next(p for key, p in broken.named_parameters() if f".{layer}." in key and key.endswith(last_linear))
    with torch.no_grad():
        fault[0].mul_(1.1)
    report = encoders.parity(model, broken, inputs_of(make_batch(None)))
    assert report.first_departure == f"layer {layer + 1}"
    assert not report.agree
    assert f"depart at layer {layer + 1}" in str(report)
    assert broken.training
    assert not model.training


@every_encoder
def test_padding_is_left_out_and_the_tolerance_counts(name):
    model = make_model(name, None)
    inputs = inputs_of(make_batch(None))
    half = copy.deepcopy(model).to(torch.bfloat16)
    assert not encoders.parity(model, half, inputs).agree
    assert encoders.parity(model, half, inputs, tolerance=0.5).agree
    nan = copy.deepcopy(model)
    with torch.no_grad():
        nan.get_input_embeddings().weight.fill_(float("nan"))
    assert encoders.parity(model, nan, inputs, tolerance=0.5).first_departure == "embeddings"


def test_models_that_cannot_be_compared():
    inputs = inputs_of(make_batch(None))
    shallow = make_model("distilbert-nano", None, n_layers=2)
    with pytest.raises(ValueError, match=r"can't be compared: one gives \['embeddings', 'layer 1'"):
        encoders.parity(make_model("distilbert-nano", None), shallow, inputs)
    narrow = make_model("distilbert-nano", None, dim=64)
    with pytest.raises(ValueError, match=r"embeddings is \[3, 12, 128\] against \[3, 12, 64\]"):
        encoders.parity(make_model("distilbert-nano", None), narrow, inputs)
