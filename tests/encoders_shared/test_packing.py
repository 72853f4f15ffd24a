"""Ragged batches in one row, and back."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from encoders_shared.masks import read_attention_mask
from encoders_shared.packing import plan_packing, spread_out


def plan(rows, wanted=True):
    mask = torch.tensor(rows)
    return plan_packing(read_attention_mask(mask, mask.shape[0], mask.shape[-1], torch.device("cpu")), wanted)


@st.composite
def ragged(draw):
    """Rows of flags, each with at most one run of ones, not all of them full and not all of them empty."""
    length = draw(st.integers(2, 6))
    ends = st.tuples(st.integers(0, length), st.integers(0, length)).map(sorted)
    runs = draw(st.lists(ends, min_size=1, max_size=4))
    rows = [[int(start <= column < end) for column in range(length)] for start, end in runs]
    total = sum(map(sum, rows))
    return rows if 0 < total < length * len(rows) else [[1] + [0] * (length - 1), *rows]


@settings(max_examples=60, deadline=None)
@given(ragged())
def test_packed_and_unpacked(rows):
    packing = plan(rows)
    values = torch.arange(1, 1 + 3 * len(rows) * len(rows[0])).reshape(len(rows), len(rows[0]), 3)
    expected = [
        values[i, j].tolist() for i in range(len(rows)) for j in range(len(rows[0])) if rows[i][j]
    ]  # row by row
    packed = packing.pack(values)
    assert packed.tolist() == [expected]
    assert packing.lengths == [sum(row) for row in rows if any(row)]
    assert torch.equal(packing.unpack(packed), values * torch.tensor(rows)[:, :, None])


@pytest.mark.parametrize(("filling", "kept"), [(0, 0), (1, 1), (2, 2), (3, 0)])
def test_a_row_that_is_filled(filling, kept):
    """By a copy of its first tokens, which do not come back; not by more than the longest sequence has."""
    packing = plan([[1, 0, 0], [1, 1, 0]]).filled(filling)
    assert (packing.lengths, packing.filling) == ([1, 2, kept][: 2 + bool(kept)], kept)
    values = torch.arange(1.0, 7).reshape(2, 3)
    packed = packing.pack(values)
    assert packed.tolist() == [[1, 4, 5, 1, 4][: 3 + kept]]
    assert packing.unpack(packed).tolist() == [[1, 0, 0], [4, 5, 0]]


@pytest.mark.parametrize("wanted", [None, True, False])
@pytest.mark.parametrize(
    "rows",
    [
        [[1, 1, 1], [1, 1, 1]],  # nothing is masked
        [[1, 0, 1], [1, 1, 1]],  # a gap
        [[0, 0, 0], [0, 0, 0]],  # nothing is left
        [[[1, 0, 0], [1, 1, 0], [1, 1, 1]]],  # the mask differs by query
    ],
    ids=["full", "gap", "empty", "by query"],
)
def test_batches_that_are_not_packed(rows, wanted):
    assert plan(rows, wanted) is None


def test_packing_is_a_choice():
    nearly_full = [[1] * 29 + [0]]
    half_full = [[1, 0], [1, 0]]
    assert [plan(rows, False) for rows in (nearly_full, half_full)] == [None, None]
    assert plan(nearly_full, True).lengths == [29]
    assert plan(nearly_full, None) is None  # does not pay
    assert plan(half_full, None).lengths == [1, 1]


def test_no_packing_while_compiling():
    compiled = torch.compile(lambda: plan([[1, 0], [1, 1]]) is None, fullgraph=True, backend="eager")
    assert compiled()


@pytest.mark.parametrize("lengths", [[2, 1, 3], [6], [2, 4], [1] * 6], ids=str)
@pytest.mark.parametrize(("margin", "multiple"), [(0, 1), (1, 1), (2, 1), (1, 4), (2, 3)])
def test_spread_out(lengths, margin, multiple):
    packed = torch.arange(1.0, 13).reshape(1, 6, 2)
    spread, place = spread_out(packed, lengths, margin, multiple)
    expected: list[list[float]] = []
    for part in packed[0].split(lengths):
        expected += [[0.0, 0.0]] * margin + part.tolist() + [[0.0, 0.0]] * margin
        while len(expected) % multiple:
            expected.append([0.0, 0.0])
    assert spread.tolist() == [expected]
    assert torch.equal(spread[:, place], packed)
