"""Bucketings against golden integers of the reference, against the published formulas, and by their properties."""

import importlib
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from encoders_shared.relative_position import (
    ClampedOffsets,
    SymmetricLogBuckets,
    TwoSidedLogBuckets,
    pair_index,
    reachable_rows,
    relative_offsets,
)

ROOT = Path(__file__).parents[2]
REFERENCE = Path(os.environ.get("ENCODERS_REFERENCE", ROOT.parent / "shared" / "reference"))
GOLDEN = load_file(ROOT / "tests" / "golden" / "relative_positions.safetensors")
CPU = torch.device("cpu")
LENGTHS = (1, 2, 3, 16, 31, 32, 33, 511, 512, 513, 1000)
CASES = [("helmbert", *sizes) for sizes in ((256, 512), (16, 64), (32, 512), (64, 512), (10, 40), (8, 64))]
CASES += [("norbert", *sizes) for sizes in ((32, 512), (8, 64), (16, 64), (64, 512), (32, 1024))]
CASES += [("clamped", 0, 512), ("clamped", 0, 24)]
DISTANCES = torch.cat([torch.arange(1200), torch.tensor([5_000, 100_000, 10**9])])


def make(family, size, max_position):
    if family == "clamped":
        return ClampedOffsets(max_position)
    return {"helmbert": TwoSidedLogBuckets, "norbert": SymmetricLogBuckets}[family](size, max_position)


@pytest.fixture(params=[torch.float16, torch.bfloat16, torch.float64], ids=str)
def default_dtype(request):
    before = torch.get_default_dtype()
    torch.set_default_dtype(request.param)
    yield
    torch.set_default_dtype(before)


@pytest.fixture(scope="module")
def reference():
    """The reference's function of (length, size, max_position) for each family."""
    if not (REFERENCE / "norbert_reference.py").is_file():
        pytest.skip(f"no reference implementation in {REFERENCE}; set ENCODERS_REFERENCE to its folder")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the reference leaves files open
        patch.syspath_prepend(REFERENCE)
        helmbert = importlib.import_module("helmbert_reference").build_relative_position
        log_bucket = importlib.import_module("norbert_reference").Attention.make_log_bucket_position

    def norbert(length, size, max_position):
        position = torch.arange(length)
        return log_bucket(None, position[:, None] - position[None, :], size, max_position)

    return {
        "helmbert": lambda length, size, limit: helmbert(length, length, size, limit),
        "clamped": lambda length, size, limit: helmbert(length, length, -1, limit),
        "norbert": norbert,
    }


def test_offsets_and_pairs():
    offsets = relative_offsets(4, CPU)
    assert offsets.tolist() == [-3, -2, -1, 0, 1, 2, 3]
    by_pair = [[query - key for key in range(4)] for query in range(4)]
    assert offsets[pair_index(4, CPU)].tolist() == by_pair
    assert pair_index(4, CPU).dtype == torch.int64


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_golden(case, length):
    golden = GOLDEN["{}.{}.{}".format(*case)]
    assert golden.shape == (1999,)
    expected = golden[1000 - length : 999 + length]
    assert make(*case)(relative_offsets(length, CPU)).tolist() == expected.tolist()


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_the_reference(case, length, reference):
    family, *sizes = case
    got = make(*case)(relative_offsets(length, CPU))[pair_index(length, CPU)]
    assert torch.equal(got, reference[family](length, *sizes))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_default_dtype_does_not_matter(case, default_dtype):
    golden = GOLDEN["{}.{}.{}".format(*case)]
    assert make(*case)(relative_offsets(1000, CPU)).tolist() == golden.tolist()


def test_tables_made_while_the_model_is_on_the_meta_device():
    with torch.device("meta"):
        bucketing = TwoSidedLogBuckets(256, 512)
    assert bucketing(relative_offsets(1000, CPU)).tolist() == GOLDEN["helmbert.256.512"].tolist()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_shape_and_integer_type_of_the_offsets(case):
    offsets = torch.arange(-12, 12).reshape(2, 3, 4)
    expected = GOLDEN["{}.{}.{}".format(*case)][999 - 12 : 999 + 12].reshape(2, 3, 4).tolist()
    assert make(*case)(offsets).tolist() == expected
    assert make(*case)(offsets.int()).tolist() == expected


@pytest.mark.parametrize("sizes", [(32, 512), (8, 64), (32, 16), (32, 17), (32, 18), (2, 64), (4, 2), (7, 50)])
def test_symmetric_buckets(sizes):
    bucketing = SymmetricLogBuckets(*sizes)
    right, left = bucketing(DISTANCES), bucketing(-DISTANCES)
    assert torch.equal(left, -right)
    assert right[0] == 0
    assert (right.diff() >= 0).all()
    assert (right.diff()[: sizes[0] // 2] == 1).all()  # exact up to half the size
    assert right.max() <= sizes[0] - 1


@pytest.mark.parametrize("sizes", [(32, 512), (8, 64), (64, 512), (32, 1024)])
def test_symmetric_scale_ends_at_the_last_position(sizes):
    size, max_position = sizes
    ends = SymmetricLogBuckets(size, max_position)(torch.tensor([max_position - 1, max_position, 10 * max_position]))
    assert ends.tolist() == [size - 1] * 3


def test_symmetric_buckets_with_fewer_positions_than_buckets():
    rows = SymmetricLogBuckets(32, 16)(relative_offsets(16, CPU)) + 31
    assert rows.tolist() == list(range(16, 47))
    assert rows.tolist() == (GOLDEN["norbert.32.16"].long() + 31).tolist()


@pytest.mark.parametrize("max_position", [2, 16, 17])
def test_symmetric_buckets_without_room_for_a_scale(max_position):
    offsets = relative_offsets(1000, CPU)  # far beyond max_position: each offset its own bucket, while there are any
    assert torch.equal(SymmetricLogBuckets(32, max_position)(offsets), offsets.clamp(-31, 31))


@pytest.mark.parametrize("sizes", [(256, 512), (16, 64), (8, 64), (10, 40), (4, 1), (4, 64), (16, 4), (7, 50)])
def test_two_sided_buckets(sizes):
    bucketing, half = TwoSidedLogBuckets(*sizes), sizes[0] // 2
    right, left = bucketing(-DISTANCES), bucketing(DISTANCES)  # keys to the right have negative offsets
    assert right[0] == 0
    assert (right.diff() >= 0).all()
    assert right.max() <= half - 1
    assert torch.equal(left[1:], right[1:] + half)
    assert right[: sizes[0] // 4].tolist() == list(range(sizes[0] // 4))


def test_two_sided_buckets_that_end_where_the_exact_ones_do():
    buckets = TwoSidedLogBuckets(16, 4)(torch.tensor([0, -1, -2, -3, -4, -5, -4000, 1, 3, 4, 5]))
    assert buckets.tolist() == [0, 1, 2, 3, 7, 7, 7, 9, 11, 15, 15]


def test_reachable_rows():
    of_offset = torch.tensor([7, 7, 2, 9, 2])
    rows = reachable_rows(of_offset, 12)
    assert rows.used.tolist() == [2, 7, 9, 9, 9, 9, 9, 9]  # a round number
    assert rows.used[rows.of_offset].tolist() == of_offset.tolist()
    assert reachable_rows(torch.arange(16), 20).used.tolist() == list(range(16))
    captured = torch.compile(reachable_rows, fullgraph=True, backend="eager")(of_offset, 12)
    assert captured.used.tolist() == list(range(12))
    assert captured.of_offset.tolist() == of_offset.tolist()


@pytest.mark.parametrize("limit", [1, 24, 512])
def test_clamped_offsets(limit):
    values = ClampedOffsets(limit)(relative_offsets(1000, CPU))
    assert values.tolist() == [min(max(d, -limit), limit) + limit for d in range(-999, 1000)]


def published_formula(family, size, max_position, distances):
    """Bucket of positive distances in float64, before rounding, and how it is rounded."""
    if family == "norbert":
        exact, ratio = size // 2, (max_position - 1) / (size // 2)
        logarithmic = np.log(np.minimum(distances, max_position - 1) / exact) / np.log(ratio) * (exact - 1) + exact
        return np.where(distances <= exact, distances, logarithmic), np.ceil
    exact = size // 4
    logarithmic = exact + np.log(distances / exact) / np.log(max_position / exact) * (exact - 1)
    return np.where(distances < exact, distances, np.minimum(logarithmic, size // 2 - 1)), np.floor


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["norbert", "helmbert"]), st.integers(2, 40), st.integers(2, 40), st.integers(1, 100_000))
def test_buckets_follow_the_published_formula(family, quarter, stretch, start):
    size = 4 * quarter
    max_position = size * stretch
    distances = np.concatenate([np.arange(1, 300), np.arange(start, start + 300)])
    unrounded, rounding = published_formula(family, size, max_position, distances)
    got = make(family, size, max_position)(torch.from_numpy(-distances)).abs().numpy()
    between = np.abs(unrounded - np.round(unrounded)) > 1e-9  # at a step itself float64 may fall on either side
    assert (got[between] == rounding(unrounded[between])).all()
    assert (got[~between] == np.round(unrounded[~between])).all()
