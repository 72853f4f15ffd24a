"""Batches under a budget of tokens: nothing lost, nothing too large, every result in its place."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, Dataset

from encoders.batching import TokenBudgetSampler, batches_by_length, encode_in_batches, map_in_batches
from tests.support import FIRST_ID, NANO, SMALL, assert_close, make_model

LENGTHS = st.lists(st.integers(1, 50), max_size=60)
BUDGETS = st.integers(50, 400)
SEEDS = st.none() | st.integers(0, 9)


@settings(max_examples=100, deadline=None)
@given(LENGTHS, BUDGETS, SEEDS)
def test_every_index_once_within_the_budget(lengths, budget, seed):
    batches = batches_by_length(lengths, budget, shuffle_seed=seed)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        assert 0 < len(batch) * max(lengths[index] for index in batch) <= budget


@settings(max_examples=100, deadline=None)
@given(LENGTHS, BUDGETS, SEEDS)
def test_batches_are_of_like_length_and_full(lengths, budget, seed):
    """No two batches overlap in length, and the next sequence would not have fitted."""
    batches = batches_by_length(lengths, budget, shuffle_seed=seed)
    ranges = sorted((sorted(lengths[index] for index in batch) for batch in batches), reverse=True)
    ranges.sort(key=lambda one: (one[-1], one[0]), reverse=True)
    for longer, shorter in pairwise(ranges):
        assert longer[0] >= shorter[-1]
        assert (len(longer) + 1) * longer[-1] > budget


@settings(max_examples=60, deadline=None)
@given(LENGTHS, BUDGETS, st.integers(0, 9))
def test_a_seed_gives_one_order_and_as_many_batches(lengths, budget, seed):
    batches = batches_by_length(lengths, budget, shuffle_seed=seed)
    assert batches == batches_by_length(lengths, budget, shuffle_seed=seed)
    assert len(batches) == len(batches_by_length(lengths, budget))


def test_the_longest_come_first_and_seeds_shuffle():
    lengths = [3, 9, 5, 5, 5, 5, 1, 2] * 5
    batches = batches_by_length(lengths, 20)
    assert lengths[batches[0][0]] == 9
    assert len({str(batches_by_length(lengths, 20, shuffle_seed=seed)) for seed in range(5)}) == 5


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([3, 12], r"sequence 1 has 12 tokens; allowed: 1 \.\. 10 \(max_tokens\). Raise max_tokens or truncate"),
        ([0, 3], r"sequence 0 has 0 tokens; allowed: 1 \.\. 10 \(max_tokens\). Leave it out"),
    ],
)
def test_what_does_not_fit(lengths, message):
    with pytest.raises(ValueError, match=message):
        batches_by_length(lengths, 10)
    with pytest.raises(ValueError, match=message):
        TokenBudgetSampler(lengths, 10)


def test_a_data_loader_takes_the_sampler():
    lengths = [4, 2, 9, 2, 7, 2, 3]
    sampler = TokenBudgetSampler(lengths, 10, seed=3)
    loader = DataLoader(cast(Dataset, lengths), batch_sampler=sampler, collate_fn=list)
    first, second = list(loader), list(loader)
    assert len(loader) == len(first) == len(second)
    assert sorted(length for batch in first for length in batch) == sorted(lengths)
    assert first != second
    sampler.set_epoch(0)
    assert list(loader) == first


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=20), max_size=30), st.integers(20, 60))
def test_results_come_in_the_callers_order(rows, budget):
    assert map_in_batches(lambda batch: [row * 2 for row in batch], rows, [len(row) for row in rows], budget) == [
        row * 2 for row in rows
    ]


def test_functions_that_lose_a_row():
    with pytest.raises(ValueError, match="one result for each row: 1 for 2"):
        map_in_batches(lambda batch: batch[:1], ["a", "b"], [1, 1], 5)
    with pytest.raises(ValueError, match="got 2 rows and 1 lengths"):
        map_in_batches(list, ["a", "b"], [1], 5)


def random_sequences():
    generator = torch.Generator().manual_seed(5)
    lengths = (9, 3, 17, 1, 3, 12)
    return [torch.randint(FIRST_ID, SMALL["vocab_size"], (n,), generator=generator).tolist() for n in lengths]


@pytest.mark.parametrize(
    ("task", "field"),
    [
        (None, "pooler_output"),
        (None, "last_hidden_state"),
        ("sequence-classification", "logits"),
        ("token-classification", "logits"),
        ("question-answering", "end_logits"),
    ],
)
@pytest.mark.parametrize("name", NANO)
def test_as_one_by_one(name, task, field):
    model = make_model(name, task).train()
    sequences = random_sequences()
    together = encode_in_batches(model, sequences, 24, field=field)
    assert model.training
    model.eval()
    alone = [model(input_ids=torch.tensor([ids]))[field][0].detach() for ids in sequences]
    assert [values.shape for values in together] == [values.shape for values in alone]
    assert_close(torch.cat(together), torch.cat(alone))


def test_an_output_that_is_not_there():
    model = make_model(NANO[0], None)
    with pytest.raises(ValueError, match=r"returns no 'last_hidden_states'\. Did you mean 'last_hidden_state'\?"):
        encode_in_batches(model, [[FIRST_ID]], 8, field="last_hidden_states")
    assert encode_in_batches(model, [], 8) == []
