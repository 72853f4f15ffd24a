"""FlexAttention on a CPU, unfused and without gradients, against the double loop in numpy (conftest.py)."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from encoders_shared.attention import AttentionSettings, attention, flex
from tests.simulated_gpu import simulated_gpu

pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


def assert_equal(got, expected, tolerance=1e-5):
    np.testing.assert_allclose(got.double().numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("head_mask", [False, True], ids=["all heads", "head mask"])
def test_equals_the_double_loop(problem, any_mask, any_positions, head_mask):
    case = problem(any_mask, any_positions, head_mask, dtype=torch.float32)
    assert_equal(case.run("flex")[0], case.double_loop()[0])


def test_weights_come_from_eager(problem, any_positions):
    case = problem("padding", any_positions)
    assert_equal(case.run("flex", need_weights=True)[1], case.double_loop()[1], 1e-10)


def test_sequences_in_one_packed_row(problem, any_positions):
    lengths = [3, 5, 1]
    whole = problem(positions=any_positions, head_mask=True, batch=1, dtype=torch.float32)
    sequences = [whole.shortened(length) for length in lengths]
    names = ("query", "key", "value")
    packed = replace(whole, **{n: torch.cat([getattr(part, n) for part in sequences], dim=2) for n in names})
    expected = np.concatenate([sequence.double_loop()[0] for sequence in sequences], axis=1)
    assert_equal(packed.run("flex", lengths=lengths)[0], expected)


def test_what_it_lacks(problem):
    case = problem()
    with pytest.raises(ValueError, match=r"flex attention backend has no dropout, got 0\.1: set .* to 0, or choose"):
        case.run("flex", dropout=0.1)
    case.query.requires_grad_()
    with pytest.raises(ValueError, match=r"no gradients on a CPU: run it under torch.no_grad\(\), or choose"):
        case.run("flex")
    with torch.no_grad():
        case.run("flex")


def test_an_empty_batch(problem):
    case = problem(batch=0, dtype=torch.float32)
    case.allowed = torch.ones(0, 1, 1, 5, dtype=torch.bool)
    assert case.run("flex")[0].shape == (0, 5, 12)


@pytest.mark.parametrize("lengths", [None, [3, 2]], ids=["padded", "packed"])
def test_layers_share_a_mask(problem, lengths, monkeypatch):
    mask, batch = ("padding", 2) if lengths is None else ("no mask", 1)
    case, made = problem(mask, batch=batch, dtype=torch.float32), []
    settings = AttentionSettings("flex", case.allowed, None, False, lengths)
    make = flex._block_mask
    monkeypatch.setattr(flex, "_block_mask", lambda *given: made.append(make(*given)) or made[-1])
    for layer in (settings, replace(settings, head_mask=torch.ones(3))):  # layers differ in their head mask alone
        attention(case.query, case.key, case.value, layer, scale=case.scale)
    assert len(made) == 1


def test_the_mask_is_where_the_queries_are():
    settings = AttentionSettings("flex", None, None, False, [3, 2])
    with simulated_gpu() as gpu:
        visible = flex._visible(settings, gpu)
        first, last = torch.tensor(0, device=gpu), torch.tensor(4, device=gpu)
        assert not visible(None, None, first, last)
        assert visible(None, None, last, last).device == gpu


def test_a_kernel_for_each_case(monkeypatch):
    """After 8 kernels torch would go on unfused."""
    compiled = []

    def note(module, _):
        compiled.append(module)
        return module.forward

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=note))
    kernel = flex._kernel.__wrapped__(compiled=True)
    for masked in (True, False):
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            for batch in (1, 2):
                states = torch.randn(batch, 3, 5, 4, dtype=dtype)
                allowed = torch.ones(batch, 1, 1, 5, dtype=torch.bool) if masked else None
                mask = flex._block_mask(AttentionSettings("flex", allowed, None, False), states)
                for _ in range(2):
                    kernel(states, states, states, block_mask=mask)
    assert len(compiled) == 12
