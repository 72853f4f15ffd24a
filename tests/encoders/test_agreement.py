"""Parity as a function for users: where do two models part?"""

from __future__ import annotations

import copy
import json
from functools import cache, partial

import pytest
import torch

import encoders
from encoders.agreement import difference_figure
from encoders.registry import family_of
from tests.encoders.checkpoints.references import small_bert
from tests.encoders.faults import (
    IN_LAYERS,
    OF_RELATIVE_POSITIONS,
    Fault,
    one_weight_off,
    untied_decoder,
    wrong_pooled_token,
)
from tests.support import ALL_TASKS, NANO, inputs_of, make_batch, make_model

every_encoder = pytest.mark.parametrize("name", NANO)
LAYER_FAULTS = [
    pytest.param(name, fault, id=f"{name}-{fault.__name__}")
    for name in NANO
    for fault in (*IN_LAYERS, *(OF_RELATIVE_POSITIONS if "relative" in family_of(name).positions else ()))
]


@cache
def healthy(name: str, task: str | None):
    """A model in double precision, in which small faults show; ragged batches keep their padding."""
    model = make_model(name, task).double()
    model.trunk.packing = False
    return model


def spoiled(name: str, task: str | None, fault: Fault, index: int = 0):
    """A report on a model and a copy of it with a fault, and where the fault must show."""
    model = healthy(name, task)
    broken = copy.deepcopy(model)
    place = fault(broken, index)
    inputs = inputs_of(make_batch(None, lengths=(40, 9)))
    return encoders.parity(model, broken, inputs, tolerance=1e-12), place


@every_encoder
@pytest.mark.parametrize("task", ALL_TASKS)
def test_a_model_agrees_with_itself(name, task):
    batch = inputs_of(make_batch(task))
    report = encoders.parity(make_model(name, task), make_model(name, task, "eager"), batch)
    assert report.agree
    assert encoders.parity(healthy(name, task), copy.deepcopy(healthy(name, task)), batch, tolerance=1e-12).agree
    assert report.first_departure is None
    assert [one.name for one in report.differences[:4]] == ["embeddings", "layer 1", "layer 2", "layer 3"]
    assert "agree everywhere" in str(report)


@pytest.mark.parametrize("index", [0, 2])
@pytest.mark.parametrize(("name", "fault"), LAYER_FAULTS)
def test_a_fault_is_found_where_it_is(name, fault, index):
    report, place = spoiled(name, None, fault, index)
    assert report.first_departure == place
    assert not report.agree
    assert f"depart at {place}" in str(report)


@every_encoder
@pytest.mark.parametrize(
    ("task", "fault", "place"),
    [
        ("masked-lm", untied_decoder, "logits"),
        (None, wrong_pooled_token, "pooler output"),
        ("sequence-classification", wrong_pooled_token, "logits"),
    ],
)
def test_a_fault_after_the_layers_is_found_in_the_output(name, task, fault, place):
    report, _ = spoiled(name, task, fault)
    assert [one.name for one in report.differences if one.relative > report.tolerance] == [place]


@every_encoder
def test_models_are_left_as_they_were(name):
    model = make_model(name, "masked-lm")
    broken = copy.deepcopy(model).train()
    place = one_weight_off(broken, 1)
    assert encoders.parity(model, broken, inputs_of(make_batch(None))).first_departure == place
    assert broken.training
    assert not model.training


def test_a_part_in_evaluation_mode_stays_in_it():
    model = make_model("distilbert-nano", None).train()
    model.transformer.layer[0].eval()
    modes = [module.training for module in model.modules()]
    encoders.parity(model, make_model("distilbert-nano", None), inputs_of(make_batch(None)))
    assert [module.training for module in model.modules()] == modes


def test_nothing_to_compare_is_no_agreement():
    model, inputs = make_model("distilbert-nano", None), inputs_of(make_batch(None))
    with pytest.raises(ValueError, match="no real token"):
        encoders.parity(model, model, inputs | {"attention_mask": torch.zeros_like(inputs["input_ids"])})


def test_the_tolerance_is_stated_as_it_is():
    model = make_model("distilbert-nano", None)
    report = encoders.parity(model, model, inputs_of(make_batch(None)), tolerance=2.5e-4)
    assert str(report).endswith("(relative tolerance 0.00025).")


def add_one(_model, _given, output, field):
    """Spoil the last number of the second row."""
    output[field][1, -1] += 1.0


@every_encoder
@pytest.mark.parametrize("task", ["sequence-classification", "question-answering"])
def test_outputs_as_wide_as_the_batch_is_long_are_not_taken_for_tokens(name, task):
    """The logits [batch, labels] of a padded batch whose length is the number of labels count in full."""
    model = make_model(name, task, num_labels=5)
    inputs = inputs_of(make_batch(None, lengths=(5, 2, 3)))
    broken = copy.deepcopy(model)
    if task == "question-answering":  # here the logits are by token, and padding doesn't count
        broken.register_forward_hook(partial(add_one, field="start_logits"))
        assert encoders.parity(model, broken, inputs).agree
    else:
        broken.register_forward_hook(partial(add_one, field="logits"))
        assert encoders.parity(model, broken, inputs).first_departure == "logits"


@every_encoder
def test_embeddings_in_place_of_ids_and_two_types(name):
    model = make_model(name, None)
    batch = inputs_of(make_batch(None))
    embeds = model.get_input_embeddings()(batch.pop("input_ids")).detach()
    batch["inputs_embeds"] = embeds
    report = encoders.parity(model, copy.deepcopy(model).double(), batch)
    assert report.agree
    assert max(one.relative for one in report.differences) > 0
    assert embeds.dtype == torch.float32


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
    with pytest.raises(ValueError, match="tolerance is -1; a number from 0 on is needed"):
        encoders.parity(shallow, shallow, inputs, tolerance=-1)
    with pytest.raises(ValueError, match="tolerance is nan"):
        encoders.parity(shallow, shallow, inputs, tolerance=float("nan"))

    class Stateless(torch.nn.Linear):
        def forward(self, input_ids, **options):
            return {"logits": self.weight}

    with pytest.raises(ValueError, match="Stateless returns no hidden states"):
        encoders.parity(shallow, Stateless(2, 2), inputs)


@every_encoder
def test_pooled_vectors_are_compared_only_where_they_mean_the_same(name):
    inputs = inputs_of(make_batch(None))
    cls, mean = (make_model(name, None, pooling=pooling) for pooling in ("cls", "mean"))
    same, other = encoders.parity(cls, cls, inputs), encoders.parity(cls, mean, inputs)
    assert "pooler output" in [one.name for one in same.differences]
    assert same.left_out == ()
    assert other.agree
    assert "pooler output" not in [one.name for one in other.differences]
    assert "not compared: pooler output (pooling of the first: cls; of the second: mean)" in str(other)


def test_a_model_of_another_library(tmp_path):
    """BERT's pooler has weights of its own: its states are compared, its vector is not."""
    bert = small_bert()
    bert.save_pretrained(tmp_path)
    report = encoders.parity(bert, encoders.load(tmp_path), inputs_of(make_batch(None)))
    assert report.agree
    assert report.left_out == ("pooler output (pooling of the first: none, or one of its own; of the second: cls)",)


def test_a_report_is_data_and_a_figure():
    model = make_model("distilbert-nano", None)
    nan = copy.deepcopy(model)
    with torch.no_grad():
        nan.transformer.layer[1].ffn.lin2.weight[0, 0] = float("nan")
    report = encoders.parity(model, nan, inputs_of(make_batch(None)))
    facts = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert facts["first_departure"] == "layer 2"
    assert facts["differences"][1] == {"name": "layer 1", "absolute": 0.0, "relative": 0.0}
    assert facts["differences"][2] == {"name": "layer 2", "absolute": None, "relative": None}
    assert not facts["agree"]
    assert facts["tolerance"] == 1e-5
    pytest.importorskip("matplotlib")
    figure = difference_figure(report, title="two models")
    axes = figure.axes[0]
    assert axes.get_yscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == [one["name"] for one in facts["differences"]]
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend[:2] == ["tolerance 1e-05", "layer 2: nan or infinite"]
