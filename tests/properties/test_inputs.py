"""The same input in another form gives the same output, and no input is changed."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from encoders.registry import family_of
from tests.properties.strategies import (
    assert_same_gradients,
    at_tokens,
    backends,
    batches,
    fields,
    gradients,
    make_small,
    packings,
    run,
)
from tests.support import ALL_TASKS, BACKENDS, NANO, assert_close, inputs_of, loss_of, make_batch, predictions

every_encoder = pytest.mark.parametrize("name", NANO)
every_model = pytest.mark.parametrize("task", ALL_TASKS)
PRUNABLE = [name for name in NANO if hasattr(family_of(name).tasks[None], "prune_heads")]


def strided(values):
    """The same numbers with others between them in memory, and the axes in reverse order."""
    reverse = tuple(reversed(range(values.dim())))
    spread = torch.stack([values.permute(reverse), values.permute(reverse) + 1], dim=-1)[..., 0]
    return spread.permute(reverse)


@every_encoder
@every_model
@given(data=st.data())
def test_how_tensors_lie_in_memory(name, task, data):
    """Strided, in another order of the axes, as narrower integers: the same, bit for bit; and nothing is changed."""
    model = make_small(name, task, data.draw(fields(name)), data.draw(backends), data.draw(packings))
    batch = data.draw(batches(task))
    batch["position_ids"] = torch.arange(batch["input_ids"].shape[-1]).expand_as(batch["input_ids"]).contiguous()
    batch["head_mask"] = torch.rand(model.config.num_hidden_layers, model.config.num_attention_heads).double()
    if data.draw(st.booleans(), label="embeddings"):
        batch["inputs_embeds"] = model.get_input_embeddings()(batch.pop("input_ids")).detach()
    integers = data.draw(st.sampled_from([torch.int64, torch.int32, torch.int16]))
    other = {key: strided(v if v.is_floating_point() else v.to(integers)) for key, v in batch.items()}
    before = copy.deepcopy(other)
    with torch.no_grad():
        expected, actual = model(**batch), model(**other)
    assert all(torch.equal(value, before[key]) for key, value in other.items())
    assert torch.equal(predictions(actual), predictions(expected))
    assert task is None or torch.equal(actual.loss, expected.loss)


@every_encoder
@every_model
@given(data=st.data())
def test_embeddings_in_place_of_ids(name, task, data):
    """Values and gradients, those of the embeddings included, which flow back through what was passed."""
    model = make_small(name, task, data.draw(fields(name)), data.draw(backends), data.draw(packings))
    batch = data.draw(batches(task))
    without_ids = {key: value for key, value in batch.items() if key != "input_ids"}
    results = []
    for given_now in (batch, {**without_ids, "inputs_embeds": model.get_input_embeddings()(batch["input_ids"])}):
        output = model(**given_now)
        loss = loss_of(output, batch["attention_mask"])
        results.append((predictions(output).detach(), gradients(model, loss)))
    assert_close(results[1][0], results[0][0], 1e-12)
    assert_same_gradients(results[1][1], results[0][1], 1e-12)


@pytest.mark.parametrize("name", PRUNABLE)
@every_model
@given(data=st.data())
def test_a_pruned_head_is_one_with_a_factor_of_zero(name, task, data):
    chosen, backend = data.draw(fields(name)), data.draw(backends)
    layers, heads = chosen["num_hidden_layers"], chosen["num_attention_heads"]
    pruned = data.draw(
        st.dictionaries(st.integers(0, layers - 1), st.sets(st.integers(0, heads - 1), max_size=heads - 1))
    )
    batch = inputs_of(data.draw(batches(task)))
    factors = torch.ones(layers, heads)
    for layer, gone in pruned.items():
        factors[layer, list(gone)] = 0
    model = make_small(name, task, chosen, backend, data.draw(packings))
    expected = run(model, {**batch, "head_mask": factors})
    model.prune_heads({layer: list(gone) for layer, gone in pruned.items()})
    mask = batch["attention_mask"]
    assert_close(at_tokens(task, run(model, batch), mask), at_tokens(task, expected, mask), 1e-9)


@every_encoder
@every_model
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("packing", [True, False])
def test_a_batch_without_rows(name, task, backend, packing):
    """Everything that was asked for, empty; a loss of zero without gradients."""
    model = make_small(name, task, {"num_hidden_layers": 2}, backend, packing)
    batch = {key: value[:0] for key, value in make_batch(task).items()}
    output = model(**batch, output_hidden_states=True)
    assert [len(state) for state in output.hidden_states] == [0] * 3
    assert [len(weights) for weights in model(**batch, output_attentions=True).attentions] == [0] * 2
    assert len(predictions(output)) == 0
    if task is not None:
        assert output.loss.item() == 0
        assert not any(gradient.any() for gradient in gradients(model, output.loss).values())
