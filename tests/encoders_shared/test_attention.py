"""Attention on every backend against a double loop in numpy, float64 (conftest.py)."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from encoders_shared.attention import (
    BACKENDS,
    AttentionSettings,
    RelativePositions,
    attention,
    read_backend,
    split_heads,
    tiling,
)
from encoders_shared.attention.backends import choose
from encoders_shared.attention.tiling import cut
from encoders_shared.relative_position import ClampedOffsets, relative_offsets

PRECISIONS = pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)


def assert_equal(got, expected, tolerance=1e-10):
    np.testing.assert_allclose(got.detach().double().numpy(), expected, rtol=tolerance, atol=tolerance)


def gradients(case, backend):
    """Gradients of a random combination of the context."""
    leaves = [leaf.requires_grad_() for leaf in case.leaves()]
    context, _ = case.run(backend)
    weight = torch.randn(context.shape, generator=torch.Generator().manual_seed(0)).to(context.dtype)
    return torch.autograd.grad((context * weight).sum(), leaves)


@pytest.mark.parametrize("head_mask", [False, True], ids=["all heads", "head mask"])
def test_equals_the_double_loop(problem, backend, any_mask, any_positions, head_mask):
    case = problem(any_mask, any_positions, head_mask)
    context, weights = case.double_loop()
    assert_equal(case.run(backend)[0], context)
    with_weights = case.run(backend, need_weights=True)
    assert_equal(with_weights[0], context)
    assert_equal(with_weights[1], weights)


def test_weights_only_when_asked_for(problem):
    assert problem().run("sdpa")[1] is None


@pytest.mark.parametrize("mask", ["no mask", "padding", "one empty row", "by query"])
def test_gradients_by_finite_differences(problem, backend, mask, any_positions):
    case = problem(mask, any_positions, head_mask=True)
    leaves = [leaf.requires_grad_() for leaf in case.leaves()]
    assert torch.autograd.gradcheck(lambda *_: case.run(backend)[0], leaves, fast_mode=True)


def test_backends_have_the_same_gradients(problem, backend, any_mask, any_positions):
    case = problem(any_mask, any_positions, head_mask=True)
    for eager, other in zip(gradients(case, "eager"), gradients(case, backend), strict=True):
        torch.testing.assert_close(other, eager, rtol=1e-9, atol=1e-11)


@PRECISIONS
@pytest.mark.parametrize("mask", ["one empty row", "by query"])
def test_a_query_without_keys(problem, backend, mask, any_positions, dtype):
    case = problem(mask, any_positions, dtype=dtype)
    context, _ = case.run(backend)
    assert context.dtype == dtype
    assert_equal(context, case.double_loop()[0], tolerance=0.05)
    empty = ~case.allowed.any(-1)[:, 0].expand(context.shape[:2])
    assert empty.any()
    assert (context[empty] == 0).all()
    for gradient in gradients(case, backend):
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("mask", ["no mask", "one empty row", "by query"])
def test_scores_of_ten_thousand_in_half_precision(problem, backend, mask, any_positions):
    case = problem(mask, any_positions, dtype=torch.float16)
    for tensor in case.leaves():  # a product is up to 80,000, too much for float16, before the scale makes it 10,000
        tensor.copy_(tensor.sign() * 80_000**0.5 / tensor.shape[-1] ** 0.5)
    case.value.sign_()
    case.scale = 1 / 8
    context, _ = case.run(backend)
    assert context.abs().max() <= 1.001  # a mean of values of +-1; false for nan
    for gradient in gradients(case, backend):
        assert torch.isfinite(gradient).all()


def test_what_padding_holds_does_not_matter(problem, backend):
    case, other = problem("padding", "both"), problem("padding", "both")
    hidden = ~case.allowed[:, 0, 0]  # [batch, key]
    for tensor in (other.key, other.value):
        tensor.transpose(1, 2)[hidden] = 1e6
    assert torch.equal(case.run(backend)[0], other.run(backend)[0])


def test_arguments_are_left_alone(problem, backend):
    case, untouched = problem("by query", "both", head_mask=True), problem("by query", "both", head_mask=True)
    case.run(backend)
    assert all(torch.equal(a, b) for a, b in zip(case.leaves(), untouched.leaves(), strict=True))
    assert torch.equal(case.allowed, untouched.allowed)


def test_rows_of_a_bucketing(problem, backend):
    case = problem(positions="both")
    rows = ClampedOffsets(3)(relative_offsets(case.query.shape[2], torch.device("cpu")))
    case.positions = replace(case.positions, rows=rows)
    assert_equal(case.run(backend)[0], case.double_loop()[0])


def test_sequences_in_one_packed_row(problem, backend, any_positions):
    lengths, whole = [3, 5, 1], problem(positions=any_positions, head_mask=True, batch=1)
    sequences = [whole.shortened(length) for length in lengths]
    names = ("query", "key", "value")
    packed = replace(whole, **{n: torch.cat([getattr(part, n) for part in sequences], dim=2) for n in names})
    expected = np.concatenate([sequence.double_loop()[0] for sequence in sequences], axis=1)
    assert_equal(packed.run(backend, lengths=lengths)[0], expected)


@pytest.mark.parametrize("masked", [False, True])
def test_an_empty_batch(problem, backend, any_positions, masked):
    case = problem(positions=any_positions, batch=0, dtype=torch.float32)
    case.allowed = torch.ones(0, 1, 1, 5, dtype=torch.bool) if masked else None
    assert case.run(backend)[0].shape == (0, 5, 12)


def test_dropout_of_everything(problem, backend, any_positions):
    case = problem("padding", any_positions, dtype=torch.float32)
    assert (case.run(backend, dropout=1.0)[0] == 0).all()


def test_dropout_drops_weights_and_scales_the_rest(problem, backend):
    torch.manual_seed(0)
    case = replace(
        problem(), query=torch.zeros(1, 500, 4, 8), key=torch.zeros(1, 500, 4, 8), value=torch.ones(1, 500, 4, 8)
    )
    context, _ = case.run(backend, dropout=0.5)
    assert sorted(set(context.flatten().tolist())) == [0, 0.5, 1, 1.5, 2]  # each of the four weights of 1/4: 0 or 1/2
    assert context.mean().item() == pytest.approx(1, abs=0.05)


def test_weights_are_those_before_dropout(problem, backend):
    case = problem("by query", "both", head_mask=True)
    assert_equal(case.run(backend, need_weights=True, dropout=0.5)[1], case.double_loop()[1])


@PRECISIONS
def test_autocast(problem, backend, any_positions, dtype):
    case = problem("one empty row", any_positions, dtype=dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        context, _ = case.run(backend)
    assert_equal(context, case.double_loop()[0], tolerance=0.05)
    assert (context[1] == 0).all()


def test_compiled(problem, backend, any_positions):
    case = problem("by query", any_positions, head_mask=True, dtype=torch.float32)
    torch._dynamo.reset()
    compiled = torch.compile(lambda: case.run(backend)[0], fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(), case.run(backend)[0])


def test_every_backend_is_tested(backend):
    assert backend in BACKENDS
    assert set(BACKENDS) == {"eager", "sdpa", "tiled", "flex"}  # flex, which has no gradients here: test_flex.py


@pytest.mark.parametrize("name", [None, "sdpa", "auto"])
def test_the_default_backend(name):
    assert read_backend(name) == "auto"


@pytest.mark.parametrize("name", ["flash_attention_2", "flex_attention", "", "SDPA"])
def test_unknown_backend(name):
    with pytest.raises(
        ValueError, match=f"`attn_implementation=\"{name}\"` is not supported .* allowed: 'auto', 'eager'"
    ):
        read_backend(name)


def test_positions_without_a_table():
    with pytest.raises(ValueError, match="RelativePositions needs keys, queries or both; got neither"):
        RelativePositions(keys=None, queries=None, rows=torch.zeros(9))


def test_settings_for_some_heads():
    settings = AttentionSettings("eager", None, torch.tensor([0.0, 0.5, 1.0]), False)
    assert settings.for_heads([2, 0]).head_mask.tolist() == [1.0, 0.0]
    assert settings.for_heads([0, 1, 2]).head_mask.tolist() == [0.0, 0.5, 1.0]
    assert replace(settings, head_mask=None).for_heads([1]).head_mask is None


def test_split_heads():
    states = torch.arange(2 * 3 * 8).reshape(2, 3, 8)
    heads = split_heads(states, 2)
    assert heads.shape == (2, 2, 3, 4)
    assert heads[1, 1, 2].tolist() == states[1, 2, 4:].tolist()


def test_tiles_cover_every_pair_once(backend):
    lengths, heads, seen = [5, 1, 7], 3, torch.zeros(3, 13, 13)
    for part in cut(heads, lengths, None, torch.empty(0)):
        for tile in part.tiles:
            seen[part.heads, tile.queries, part.tokens] += 1
    assert torch.equal(seen, torch.block_diag(*(torch.ones(n, n) for n in lengths)).expand(3, 13, 13))


@pytest.mark.parametrize(
    ("device", "plain", "weights", "expected"),
    [
        ("cpu", False, False, "tiled"),
        ("cpu", True, False, "sdpa"),
        ("meta", False, False, "sdpa"),
        ("cpu", False, True, "eager"),
    ],
)
def test_what_auto_takes(device, plain, weights, expected):
    assert choose(AttentionSettings("auto", None, None, weights), torch.device(device), plain=plain) == expected


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_gradients_of_gradients(problem, any_positions, dropout):
    """Through tiles, which leave them to autograd."""
    case = problem("one empty row", any_positions)
    leaves = [leaf.requires_grad_() for leaf in case.leaves()]

    def run(*_):
        torch.manual_seed(0)
        return case.run("tiled", dropout=dropout)[0]

    assert torch.autograd.gradgradcheck(run, leaves, fast_mode=True)


@pytest.mark.parametrize("mask", ["no mask", "one empty row", "by query"])
def test_gradients_under_dropout_by_finite_differences(problem, backend, mask, any_positions):
    """The way back drops the weights that the way there dropped."""
    case = problem(mask, any_positions, head_mask=True)
    leaves = [leaf.requires_grad_() for leaf in case.leaves()]

    def run(*_):
        torch.manual_seed(0)
        return case.run(backend, dropout=0.4)[0]

    assert torch.autograd.gradcheck(run, leaves, fast_mode=True)


def test_each_call_drops_other_weights(problem, backend):
    case = problem()
    torch.manual_seed(0)
    first, second = case.run(backend, dropout=0.5)[0], case.run(backend, dropout=0.5)[0]
    torch.manual_seed(0)
    assert torch.equal(case.run(backend, dropout=0.5)[0], first)
    assert not torch.equal(second, first)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_gradients_of_many_tiles_in_half_precision(dtype, monkeypatch):
    """As near to double precision as those of the eager path: sums over tiles and rows do not round on the way."""
    monkeypatch.setattr(tiling, "TILE", 2**11)
    monkeypatch.setattr(tiling, "FEWEST_QUERIES", 8)
    length, heads, size = 256, 2, 16
    generator = torch.Generator().manual_seed(0)
    shapes = [(1, heads, length, size)] * 3 + [(heads, 33, size)] * 2
    given = [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]
    rows = ClampedOffsets(16)(relative_offsets(length, torch.device("cpu")))
    combination = torch.randn(1, length, heads * size, generator=generator).to(dtype)

    def found(backend, working):
        leaves = [tensor.to(working).requires_grad_() for tensor in given]
        settings = AttentionSettings(backend, None, None, False)
        context, _ = attention(*leaves[:3], settings, scale=0.15, positions=RelativePositions(*leaves[3:], rows))
        gradients = torch.autograd.grad((context * combination.to(working)).sum(), leaves)
        return [gradient.double() for gradient in gradients]

    exact = found("eager", torch.float64)
    for right, eager, tiled in zip(exact, found("eager", dtype), found("tiled", dtype), strict=True):
        assert (tiled - right).norm() <= 1.5 * (eager - right).norm()
