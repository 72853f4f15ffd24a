"""Packed rows in one call, which is for GPUs: that its numbers are right can be seen on a CPU."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from encoders_shared.attention import AttentionInputs, AttentionSettings, RelativePositions, backends, sdpa
from encoders_shared.attention.sdpa import jagged_sdpa
from tests.simulated_gpu import OnGPU, simulated_gpu

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")
LENGTHS = [3, 5, 1]
NAMES = ("query", "key", "value")


@pytest.fixture
def packed(problem):
    whole = problem(head_mask=True, batch=1)
    parts = [whole.shortened(length) for length in LENGTHS]
    return parts, replace(whole, **{name: torch.cat([getattr(one, name) for one in parts], dim=2) for name in NAMES})


def context_of(case):
    settings = AttentionSettings("sdpa", None, case.head_mask, False, LENGTHS)
    return jagged_sdpa(AttentionInputs(case.query, case.key, case.value, settings, case.scale, 0.0, None))[0]


def test_equals_the_double_loop(packed):
    parts, case = packed
    expected = np.concatenate([part.double_loop()[0] for part in parts], axis=1)
    context = context_of(case).transpose(1, 2).flatten(2)
    np.testing.assert_allclose(context.numpy(), expected, rtol=1e-9, atol=1e-9)


def test_gradients_are_those_of_the_sequences_one_by_one(packed):
    _, case = packed
    leaves = [tensor.requires_grad_() for tensor in (case.query, case.key, case.value, case.head_mask)]
    got = torch.autograd.grad(context_of(case).square().sum(), leaves)
    one_by_one = case.run("sdpa", lengths=LENGTHS)[0]
    torch.testing.assert_close(got, torch.autograd.grad(one_by_one.square().sum(), leaves))


def test_layers_share_the_borders(packed, monkeypatch):
    _, case = packed
    settings, make, made = AttentionSettings("sdpa", None, None, False, LENGTHS), sdpa._borders, []
    monkeypatch.setattr(sdpa, "_borders", lambda *given: made.append(make(*given)) or made[-1])
    for layer in (settings, replace(settings, head_mask=torch.ones(3))):  # layers differ in their head mask alone
        jagged_sdpa(AttentionInputs(case.query, case.key, case.value, layer, 1.0, 0.0, None))
    assert len(made) == 1


def test_borders_are_where_the_queries_are(packed):
    settings = AttentionSettings("sdpa", None, None, False, LENGTHS)
    here = packed[1].query
    with simulated_gpu() as gpu:
        queries = (here, here.to(gpu), here)
        assert [settings.once(sdpa._borders, query).device.type for query in queries] == ["cpu", "cuda", "cpu"]


def test_a_sequence_alone_shares_nothing_with_its_row(packed):
    _, case = packed
    settings = AttentionSettings("sdpa", None, None, False, LENGTHS)
    settings.once(sdpa._borders, case.query)
    row = AttentionInputs(case.query, case.key, case.value, settings, 1.0, 0.0, None)
    assert [one.settings.made for one in row.of_sequences()] == [{}, {}, {}]


def test_it_is_taken_on_a_gpu_and_for_packed_rows_without_positions_alone(packed, monkeypatch):
    calls = []
    monkeypatch.setattr(backends, "jagged_sdpa", lambda *_: calls.append("at once"))
    chosen = backends.at_once_on_gpu(lambda *_: calls.append("one by one"))
    _, case = packed
    there = OnGPU(case.query)
    settings = AttentionSettings("sdpa", None, None, False, LENGTHS)
    tables = torch.zeros(3, 9, 4)
    positions = RelativePositions(tables, tables, torch.arange(9))
    for query, given, own_positions in (
        (there, settings, None),
        (case.query, settings, None),
        (there, replace(settings, lengths=None), None),
        (there, settings, positions),
    ):
        chosen(AttentionInputs(query, case.key, case.value, given, 1.0, 0.0, own_positions))
    assert calls == ["at once", "one by one", "one by one", "one by one"]
