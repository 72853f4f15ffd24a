"""DistilBERT: pruning, positions, and the names of its configuration."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import encoders
from encoders.distilbert import DistilBertConfig
from tests.support import ALL_TASKS, BACKENDS, assert_close, inputs_of, make_batch, make_model, predictions

every_model = pytest.mark.parametrize("task", ALL_TASKS)


def run(model, inputs, **more):
    with torch.no_grad():
        return predictions(model(**inputs, **more))


@every_model
@pytest.mark.parametrize("backend", BACKENDS)
def test_pruning_equals_masking(task, backend):
    model = make_model("distilbert-nano", task, backend)
    inputs = inputs_of(make_batch(task))
    mask = torch.ones(3, 4)
    mask[0, [1, 3]] = mask[2, 0] = 0
    expected = run(model, inputs, head_mask=mask)
    before = sum(p.numel() for p in model.parameters())
    model.prune_heads({0: [1], 2: [0]})
    model.prune_heads({0: [3]})
    assert model.config.pruned_heads == {0: [1, 3], 2: [0]}
    assert before - sum(p.numel() for p in model.parameters()) == 3 * (4 * 32 * 128 + 3 * 32)
    assert_close(run(model, inputs), expected, 1e-5)
    assert_close(run(model, inputs, head_mask=torch.ones(3, 4)), expected, 1e-5)
    half = mask.clone()
    half[0, 2] = 0.5
    kept = run(model, inputs, head_mask=half)
    assert_close(kept, run(make_model("distilbert-nano", task, backend), inputs, head_mask=half), 1e-5)


def test_a_pruned_model_is_saved_and_loaded(tmp_path):
    model = make_model("distilbert-nano", "masked-lm")
    model.prune_heads({1: [0, 2]})
    model.save_pretrained(tmp_path)
    loaded = encoders.load(str(tmp_path), task="masked-lm").eval()
    assert loaded.config.pruned_heads == {1: [0, 2]}
    inputs = inputs_of(make_batch(None))
    assert torch.equal(run(loaded, inputs), run(model, inputs))


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ({3: [0]}, "no layer 3 to prune; layers: 0 .. 2"),
        ({0: [4]}, r"heads \[4\] can't be pruned; there are \[0, 1, 2, 3\]"),
        ({0: [0, 1, 2, 3]}, "at least one must stay"),
    ],
)
def test_wrong_pruning_is_refused(heads, message):
    model = make_model("distilbert-nano", None)
    with pytest.raises(ValueError, match=message):
        model.prune_heads(heads)
    assert model.config.pruned_heads == {}


def sinusoids(length, dim):
    """The formula of Vaswani et al. 2017, section 3.5, in float64."""
    table = np.zeros((length, dim))
    for position in range(length):
        for column in range(dim):
            angle = position / 10_000 ** (2 * (column // 2) / dim)
            table[position, column] = np.cos(angle) if column % 2 else np.sin(angle)
    return torch.tensor(table)


def test_sinusoidal_positions_are_exact_and_frozen(tmp_path):
    model = encoders.create("distilbert-nano", sinusoidal_pos_embds=True, max_position_embeddings=40)
    table = model.get_position_embeddings().weight
    assert_close(table.double(), sinusoids(40, 128), 1e-6)
    model.save_pretrained(tmp_path)
    loaded = encoders.load(str(tmp_path))
    for one in (model, loaded, type(model).from_pretrained(tmp_path)):
        one(**inputs_of(make_batch(None))).last_hidden_state.square().mean().backward()
        assert one.get_input_embeddings().weight.grad is not None
        assert one.get_position_embeddings().weight.grad is None
        one.resize_position_embeddings(60)
        assert not one.get_position_embeddings().weight.requires_grad
        assert_close(one.get_position_embeddings().weight.double(), sinusoids(60, 128), 1e-6)


def test_position_ids_choose_the_positions():
    model = make_model("distilbert-nano", None)
    inputs = inputs_of(make_batch(None, lengths=(6, 6)))
    plain = run(model, inputs)
    assert torch.equal(run(model, inputs, position_ids=torch.arange(6)), plain)
    assert torch.equal(run(model, inputs, position_ids=torch.arange(6).expand(2, 6)), plain)
    assert not torch.allclose(run(model, inputs, position_ids=torch.arange(6) + 7), plain, atol=1e-3)
    with pytest.raises(ValueError, match=r"position_ids\[0, 5\] is 512; allowed: 0 .. 511 \(max_position_embeddings"):
        run(model, inputs, position_ids=torch.arange(6) + 507)


def test_the_usual_names_of_the_configuration():
    config = DistilBertConfig(hidden_size=96, num_hidden_layers=2, num_attention_heads=3, intermediate_size=100)
    assert (config.dim, config.n_layers, config.n_heads, config.hidden_dim) == (96, 2, 3, 100)
    assert config.hidden_dropout_prob == config.dropout
    with pytest.raises(encoders.ConfigurationError, match="'dim' and 'hidden_size' are the same field"):
        encoders.create("distilbert-nano", hidden_size=64, dim=64)
