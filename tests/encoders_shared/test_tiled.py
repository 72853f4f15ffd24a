"""What the tiled backend keeps for the way back, and that its gradients do not depend on it."""

from __future__ import annotations

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from encoders_shared.attention import AttentionSettings, RelativePositions, attention, tiling
from encoders_shared.attention.tiled import Plan
from encoders_shared.relative_position import ClampedOffsets, relative_offsets


class PackedRow:
    """Sequences in one row, some of which have their weights kept: those up to 3 * 4 tokens."""

    def __init__(self, lengths=(3, 13, 12, 40, 1), dtype=torch.float32):
        self.lengths, generator = lengths, torch.Generator().manual_seed(0)
        shapes = [(1, 3, sum(lengths), 4)] * 3 + [(3, 17, 4)] * 2
        self.given = [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]
        self.combination = torch.randn(1, sum(lengths), 12, generator=generator)
        self.rows = ClampedOffsets(8)(relative_offsets(max(lengths), torch.device("cpu")))

    def context(self, *tensors, backend="tiled", dropout=0.0):
        settings = AttentionSettings(backend, None, None, False, list(self.lengths))
        positions = RelativePositions(*tensors[3:], self.rows)
        return attention(*tensors[:3], settings, scale=0.3, dropout=dropout, positions=positions)[0]

    def gradients(self, backend="tiled", dropout=0.0, dtype=None, around=lambda run, *leaves: run(*leaves)):
        torch.manual_seed(0)
        leaves = [tensor.detach().to(dtype or tensor.dtype).requires_grad_() for tensor in self.given]
        context = around(lambda *tensors: self.context(*tensors, backend=backend, dropout=dropout), *leaves)
        (context * self.combination.to(context.dtype)).sum().backward()
        return [leaf.grad for leaf in leaves]


@pytest.mark.parametrize("lengths", [(3, 13, 12, 40, 1), (2048,)], ids=["mixed", "long"])
def test_weights_that_training_keeps(lengths):
    row, kept = PackedRow(lengths), []
    leaves = [tensor.requires_grad_() for tensor in row.given]
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(tuple(t.shape)) or t, lambda t: t):
        row.context(*leaves, dropout=0.1)
    tensors = [(3, sum(lengths), 4)] * 3 + [(3, 17, 4)] * 2
    assert kept == tensors + [(3, length, length) for length in lengths if length <= 12]


def test_no_weights_are_kept_without_training(monkeypatch):
    row, limits = PackedRow(), []
    monkeypatch.setattr(Plan, "keeps", lambda plan, part: limits.append(plan.longest_kept))
    with torch.no_grad():
        row.context(*row.given)
    assert set(limits) == {0}


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.02)], ids=str)
@pytest.mark.parametrize("tile", [tiling.TILE, 60])
def test_kept_weights_give_the_same_gradients(dropout, dtype, tolerance, tile, monkeypatch):
    monkeypatch.setattr(tiling, "TILE", tile)
    monkeypatch.setattr(tiling, "FEWEST_QUERIES", 5)
    row = PackedRow(dtype=dtype)
    found = row.gradients(dropout=dropout)
    monkeypatch.setattr(Plan, "keeps", lambda *_: False)
    other = row.gradients("tiled" if dropout else "eager", dropout, dtype if dropout else torch.float64)
    for one, right in zip(found, other, strict=True):
        assert (one - right).norm() <= (1e-6 if dropout else tolerance) * right.norm()


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("reentrant", [True, False])
def test_kept_weights_under_checkpointing(dropout, reentrant):
    row = PackedRow()
    found = row.gradients(dropout=dropout, around=lambda *run: checkpoint(*run, use_reentrant=reentrant))
    for one, right in zip(found, row.gradients(dropout=dropout), strict=True):
        torch.testing.assert_close(one, right)


def test_gradients_of_gradients_on_both_sides_of_the_limit():
    row, found = PackedRow(dtype=torch.float64), []
    leaves = [tensor.requires_grad_() for tensor in row.given]
    for backend in ("tiled", "eager"):
        first = torch.autograd.grad(row.context(*leaves, backend=backend).square().sum(), leaves, create_graph=True)
        found.append(torch.autograd.grad(sum(one.square().sum() for one in first), leaves))
    for one, right in zip(*found, strict=True):
        torch.testing.assert_close(one, right)
