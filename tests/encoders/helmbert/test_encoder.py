"""HELM-BERT: the enhanced mask decoder, positions, n-grams, and what its configuration refuses."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

import encoders
from encoders.helmbert.encoder import table_rows
from encoders_shared.masks import AttentionMask
from encoders_shared.relative_position import ClampedOffsets, TwoSidedLogBuckets
from tests.support import assert_close, inputs_of, make_batch, make_model, predictions


def run(model, inputs, **more):
    with torch.no_grad():
        return predictions(model(**inputs, **more))


def test_the_decoder_is_on_by_default_and_can_be_left_out():
    model = make_model("helmbert-nano", "masked-lm")
    inputs = inputs_of(make_batch(None))
    default = run(model, inputs)
    assert torch.equal(run(model, inputs, use_emd=True), default)
    without = run(model, inputs, use_emd=False)
    assert not torch.allclose(without, default, atol=1e-2)
    with torch.no_grad():
        states = model.base_model(**inputs).last_hidden_state
        assert torch.equal(without, model.lm_head(states))


@pytest.mark.parametrize("task", [None, "sequence-classification"])
def test_use_emd_belongs_to_the_masked_lm(task):
    with pytest.raises(TypeError, match="unknown keyword 'use_emd'"):
        make_model("helmbert-nano", task)(**inputs_of(make_batch(task)), use_emd=True)


def test_absolute_positions_count_from_the_first_token():
    """Left padding must not move them; the reference's code counts from the padding."""
    model = make_model("helmbert-nano", "masked-lm")
    ids = inputs_of(make_batch(None, lengths=(6,)))["input_ids"]
    alone = run(model, {"input_ids": ids})
    padded = {
        "input_ids": torch.cat([torch.zeros(1, 4, dtype=torch.long), ids], dim=1),
        "attention_mask": torch.tensor([[0] * 4 + [1] * 6]),
    }
    assert_close(run(model, padded)[:, 4:], alone, 1e-5)
    from_padding = run(model, padded, position_ids=torch.arange(10))
    assert not torch.allclose(from_padding[:, 4:], alone, atol=1e-2)


def test_one_layer_has_no_decoder():
    with pytest.warns(UserWarning, match="no enhanced mask decoder") as caught:
        model = make_model("helmbert-nano", "masked-lm", num_hidden_layers=1)
    assert len(caught) == 1
    inputs = inputs_of(make_batch(None))
    assert torch.equal(run(model, inputs), run(model, inputs, use_emd=False))


def test_the_last_position_table_is_untrained_by_the_masked_lm():
    """As published: the decoder reads the first layer's table."""
    model = make_model("helmbert-nano", "masked-lm")
    inputs = inputs_of(make_batch(None))
    before = run(model, inputs)
    states = run(model.base_model, inputs)
    with torch.no_grad():
        model.base_model.encoder.layers[2].self_attn.rel_embeddings.weight.normal_()
    assert torch.equal(run(model, inputs), before)
    assert not torch.allclose(run(model.base_model, inputs), states, atol=1e-2)


@pytest.mark.parametrize(("types", "terms"), [("c2p|p2c", 3), ("p2c", 2), ("c2p", 2), ("", 1), (" C2P | p2c ", 3)])
def test_score_types(types, terms):
    attention = make_model("helmbert-nano", None, pos_att_type=types).encoder.layers[0].self_attn
    assert attention.scale == pytest.approx((32 * terms) ** -0.5)
    assert (attention.pos_key_proj is not None) == ("c2p" in types.lower())
    assert (attention.pos_query_proj is not None) == ("p2c" in types.lower())


def test_table_rows_by_hand():
    """Eight buckets: exact up to distance 1, and the published double shift puts all rows in the upper half."""
    offsets = torch.tensor([-20, -2, -1, 0, 1, 2, 20])
    rows = table_rows(TwoSidedLogBuckets(8, 16), 8, offsets)
    assert rows.tolist() == [11, 10, 9, 8, 13, 14, 15]
    assert table_rows(ClampedOffsets(4), 4, offsets).tolist() == [4, 6, 7, 7, 7, 7, 7]


def test_n_grams_reach_one_token_to_each_side():
    """Only neighbours feel a changed token through the convolution; in a packed row, only those of its own sequence."""
    layer = make_model("helmbert-nano", None).encoder.ngie_layer
    mask = AttentionMask(tokens=torch.ones(1, 9, dtype=torch.bool), allowed=None)
    embedded, states = torch.randn(1, 9, 128), torch.randn(1, 9, 128)
    changed = embedded.clone()
    changed[0, 4] += 1
    for lengths, feel_it in ((None, [3, 4, 5]), ([5, 4], [3, 4]), ([4, 1, 4], [4]), ([3, 6], [3, 4, 5])):
        inputs = SimpleNamespace(mask=mask, lengths=lengths)
        with torch.no_grad():
            difference = (layer(changed, states, inputs) - layer(embedded, states, inputs)).abs().amax(-1)[0]
        assert difference.gt(1e-4).nonzero().flatten().tolist() == feel_it


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"ngie_kernel_size": 4}, "ngie_kernel_size is 4; it must be odd"),
        ({"ngie_kernel_size": 0}, "ngie_kernel_size is 0; it must be at least 1"),
        ({"pos_att_type": "c2p|p2p"}, "names 'p2p'; allowed: 'c2p', 'p2c', 'c2p|p2c', or ''"),
        ({"pos_att_type": "c2q"}, "Did you mean 'c2p'"),
        ({"pos_att_type": ["c2p"]}, "expected str, got list"),
        ({"position_buckets": 3}, "position_buckets is 3; it must be at least 4"),
        (
            {"position_buckets": 64, "max_relative_positions": 15},
            "max_relative_positions .* is 15; it must be at least 16",
        ),
        ({"classifier_num_layers": -1}, "classifier_num_layers is -1"),
    ],
)
def test_wrong_configurations(overrides, message):
    with pytest.raises(encoders.ConfigurationError, match=message.replace("|", r"\|")):
        encoders.create("helmbert-nano", **overrides)


@pytest.mark.parametrize("layers", [0, 1, 2])
def test_classifier_layers(layers):
    model = make_model("helmbert-nano", "sequence-classification", classifier_num_layers=layers)
    names = {name for name in model.state_dict() if name.startswith("classifier")}
    if layers == 0:
        assert names == {"classifier.weight", "classifier.bias"}
    else:
        assert {"classifier.output_layer.weight", f"classifier.layers.{layers - 1}.weight"} < names
        assert f"classifier.layers.{layers}.weight" not in names
    assert run(model, inputs_of(make_batch(None))).shape == (3, 3)
