"""Changing the size of the vocabulary and of the position table."""

from __future__ import annotations

import pytest
import torch

from tests.support import ALL_TASKS, NANO, inputs_of, make_batch, make_model, predictions

every_encoder = pytest.mark.parametrize("name", NANO)


def run(model, inputs):
    with torch.no_grad():
        return predictions(model(**inputs))


@every_encoder
@pytest.mark.parametrize("task", ALL_TASKS)
@pytest.mark.parametrize("size", [150, 139])
def test_vocabulary(name, task, size):
    model = make_model(name, task)
    inputs = inputs_of(make_batch(task))
    inputs["input_ids"] = inputs["input_ids"].clamp(max=138)
    before = run(model, inputs)
    model.resize_token_embeddings(size, mean_resizing=False)
    assert model.config.vocab_size == size
    assert model.get_input_embeddings().num_embeddings == size
    after = run(model, inputs)
    if task == "masked-lm":
        decoder = model.get_output_embeddings()
        assert decoder.weight is model.get_input_embeddings().weight
        assert tuple(decoder.bias.shape) == (size,)
        assert after.shape[-1] == size
        before, after = before[..., :139], after[..., :139]
    assert torch.allclose(after, before, atol=1e-5)
    run(model, {**inputs, "input_ids": torch.full_like(inputs["input_ids"], size - 1)})


@every_encoder
@pytest.mark.parametrize("size", [600, 40])
def test_positions(name, size):
    model = make_model(name, "masked-lm")
    if model.position_embeddings is None:
        with pytest.raises(NotImplementedError, match="has no absolute positions: it takes any length"):
            model.resize_position_embeddings(size)
        return
    inputs = inputs_of(make_batch(None))
    before = run(model, inputs)
    old = model.get_position_embeddings().weight.detach().clone()
    model.resize_position_embeddings(size)
    table = model.get_position_embeddings()
    assert model.config.max_position_embeddings == table.num_embeddings == size
    kept = min(size, len(old))
    assert torch.equal(table.weight[:kept], old[:kept])
    assert table.weight[kept:].std() < 0.1 if size > len(old) else True
    assert torch.equal(run(model, inputs), before)
    longer = torch.full((1, size), 120)
    assert run(model, {"input_ids": longer}).shape[1] == size
    with pytest.raises(ValueError, match=f"have {size + 1} tokens, but max_position_embeddings is {size}"):
        run(model, {"input_ids": torch.full((1, size + 1), 120)})
    with pytest.raises(ValueError, match="at least 1 row, got 0"):
        model.resize_position_embeddings(0)
