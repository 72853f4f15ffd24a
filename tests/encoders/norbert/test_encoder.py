"""NorBERT: position projections, layer differences, reserved ids, lengths, initial weights."""

from __future__ import annotations

import math

import pytest
import torch

import encoders
from encoders.norbert import NorbertModel, layer_differences
from encoders.norbert.encoder import contiguous_projection, interleaved_projection
from tests.support import inputs_of, make_batch, make_model, predictions


def test_projections_by_hand():
    """Row r of the table, 2 heads of size 3: columns 0 .. 11."""
    projected = torch.arange(24).reshape(2, 12)
    query, key = interleaved_projection(projected, heads=2)
    assert query[:, 0].tolist() == [[0, 1, 2], [6, 7, 8]]
    assert key[:, 0].tolist() == [[3, 4, 5], [9, 10, 11]]
    query, key = contiguous_projection(projected, heads=2)
    assert query[:, 0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert key[:, 1].tolist() == [[18, 19, 20], [21, 22, 23]]


def test_the_same_weights_differ_under_the_two_layouts(tmp_path):
    inputs = inputs_of(make_batch(None))
    models = [make_model("norbert3-nano", None, position_projection=layout) for layout in ("interleaved", "contiguous")]
    models[1].load_state_dict(models[0].state_dict())
    with torch.no_grad():
        first, second = (model(**inputs).last_hidden_state for model in models)
    assert (first - second).abs().max() > 1e-3
    models[1].save_pretrained(tmp_path)
    assert encoders.load(str(tmp_path)).config.position_projection == "contiguous"


def test_layer_differences_sum_to_the_last_state():
    with torch.no_grad():
        output = make_model("norbert3-nano", None)(**inputs_of(make_batch(None)), output_hidden_states=True)
    differences = layer_differences(output.hidden_states)
    assert len(differences) == len(output.hidden_states)
    assert torch.equal(differences[0], output.hidden_states[0])
    assert torch.allclose(sum(differences), output.last_hidden_state, atol=1e-5)


def test_reserved_ids_are_never_predicted():
    model = make_model("norbert3-nano", "masked-lm", num_reserved_ids=107)
    batch = make_batch("masked-lm")
    with torch.no_grad():
        output = model(**batch)
    assert output.logits[..., :107].eq(float("-inf")).all()
    assert output.logits[..., 107:].isfinite().all()
    assert output.loss.isfinite()
    batch["labels"][0, 0] = 106
    with pytest.raises(ValueError, match=r"label 106 is out of range; allowed: 107 \.\. 139.*num_reserved_ids"):
        model(**batch)


@pytest.mark.parametrize("reserved", [0, 105])
def test_siblings_reserve_other_ids(reserved):
    model = make_model("norbert3-nano", "masked-lm", num_reserved_ids=reserved)
    with torch.no_grad():
        logits = model(**inputs_of(make_batch(None))).logits
    assert logits.isfinite().sum(-1).eq(140 - reserved).all()


def test_a_vocabulary_of_reserved_ids_alone():
    """It is no obstacle to tasks that predict no words, so that any tokenizer can be tried."""
    assert encoders.create("norbert3-nano", task="sequence-classification", vocab_size=78).config.vocab_size == 78
    with pytest.raises(encoders.ConfigurationError, match=r"num_reserved_ids 107 leaves nothing to predict of .* 78"):
        encoders.create("norbert3-nano", task="masked-lm", vocab_size=78)


@pytest.mark.parametrize("length", [64, 65, 200])
def test_any_length_without_side_effects(length):
    """Upstream's code corrupts its own tables when a sequence is longer than max_position_embeddings."""
    model = make_model("norbert3-nano", None, max_position_embeddings=64, position_bucket_size=16)
    inputs = inputs_of(make_batch(None))
    with torch.no_grad():
        before = predictions(model(**inputs))
        states = model(input_ids=torch.full((1, length), 120)).last_hidden_state
        assert torch.equal(predictions(model(**inputs)), before)
    assert states.isfinite().all()


def test_upstream_position_tables_are_accepted(tmp_path):
    model = make_model("norbert3-nano", None)
    state = model.state_dict()
    assert not any("position_indices" in key for key in state)
    tables = {f"transformer.layers.{i}.attention.position_indices": torch.zeros(512, 512).long() for i in range(3)}
    NorbertModel(model.config).load_state_dict({**state, **tables}, strict=True)
    model.save_pretrained(tmp_path, state_dict={**state, **tables})
    loaded, info = NorbertModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["unexpected_keys"]
    assert not info["missing_keys"]
    inputs = inputs_of(make_batch(None))
    with torch.no_grad():
        assert torch.equal(predictions(loaded.eval()(**inputs)), predictions(model(**inputs)))


def test_initial_weights():
    """Standard deviation sqrt(2 / (5 * hidden)), cut at two of them; feed-forward layers scaled down by depth."""
    torch.manual_seed(0)
    model = encoders.create("norbert3-nano", num_hidden_layers=4)
    std = math.sqrt(2 / (5 * 128))
    cut = 0.8796  # standard deviation of a normal cut at two, for a standard deviation of one
    for name, weight in model.state_dict().items():
        if weight.dim() < 2:
            continue
        gain = math.sqrt(1 / (2 * (1 + int(name.split(".")[2])))) if "mlp" in name else 1.0
        assert weight.abs().max() <= 2 * gain * std * (1 + 1e-6), name
        assert weight.std().item() == pytest.approx(cut * gain * std, rel=0.05), name


def test_dropout_of_the_task_head():
    for given, expected in ((None, 0.3), (0.5, 0.5)):
        model = encoders.create(
            "norbert3-nano", task="sequence-classification", hidden_dropout_prob=0.3, cls_dropout=given
        )
        assert model.head.nonlinearity[4].p == expected
