"""Batches of the benchmarks, and the operations that they need."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import encoders
from benchmarks.cases import SETS, SHAPES, Shape, shape_names
from benchmarks.flops import necessary_operations
from tests.support import NANO


@pytest.mark.parametrize("name", SHAPES)
def test_batches_are_as_full_as_their_name_says(name):
    shape = SHAPES[name]
    mask = shape.batch(vocab_size=78)["attention_mask"]
    assert mask.shape == (shape.rows, shape.length)
    assert mask.sum(dim=1).tolist() == shape.lengths
    assert shape.lengths[0] == shape.length
    assert mask.float().mean().item() == pytest.approx(shape.fill, abs=0.01)


def test_sets_stand_for_their_shapes():
    assert shape_names(["1 x 32", "standard"])[:2] == ["1 x 32", "8 x 128"]
    assert len(shape_names(["standard", "1 x 32"])) == len(SETS["standard"])


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", NANO)
def test_necessary_operations_are_those_of_the_written_out_model(name, training, monkeypatch):
    """Which projects the reachable rows of its position tables as well: keys and queries, in each layer."""
    monkeypatch.setattr("encoders_shared.relative_position.ROUND", 1)  # none of them twice
    model = encoders.create(name, attn_implementation="eager").train(training)
    batch = Shape(2, 40).batch(vocab_size=78)
    with FlopCounterMode(display=False) as counter, torch.set_grad_enabled(training):
        output = model(**batch)
        if training:
            output[0].sum().backward()
    needed = necessary_operations(model.config, [40, 40], training=training)
    config = model.config
    for_one_row = config.num_hidden_layers * 4 * config.hidden_size**2 * (3 if training else 1)
    rows, rest = divmod(counter.get_total_flops() - needed, for_one_row)
    assert rest == 0
    assert (rows == 0) if name.startswith("distilbert") else (0 < rows <= 2 * 40 - 1)


@pytest.mark.parametrize("name", NANO)
def test_sequences_add_up(name):
    config = encoders.create(name).config
    alone = [necessary_operations(config, [length], training=False) for length in (7, 30)]
    assert necessary_operations(config, [7, 30], training=False) == sum(alone)
    assert alone[1] / 30 > alone[0] / 7  # attention grows with the square of the length
