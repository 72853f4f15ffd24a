"""Attention and losses on random sizes, against short versions in numpy, float64, written from the equations."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from encoders_shared.attention import AttentionSettings, RelativePositions, attention, tiling
from encoders_shared.losses import class_loss, sequence_loss, span_loss
from encoders_shared.pooling import cls_pool
from encoders_shared.relative_position import (
    ClampedOffsets,
    SymmetricLogBuckets,
    TwoSidedLogBuckets,
    reachable_rows,
    relative_offsets,
)
from tests.support import BACKENDS

some_examples = settings(max_examples=40, deadline=None, derandomize=True)
every_backend = pytest.mark.parametrize("backend", BACKENDS)
ROWS = 16
BUCKETINGS = {  # the function, and what to add for a row that is not negative
    "clamped": (ClampedOffsets(3), 0),
    "symmetric": (SymmetricLogBuckets(4, 8), 3),
    "two-sided": (TwoSidedLogBuckets(8, 6), 0),
}


@pytest.fixture(scope="module", autouse=True)
def small_tiles():
    """Tiles so small that short sequences are cut, by heads and by queries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiling, "TILE", 12)
        patch.setattr(tiling, "FEWEST_QUERIES", 2)
        yield


def softmax(scores, allowed):
    """Over the last axis where it is allowed; zero where nothing is."""
    shift = np.max(scores, -1, keepdims=True, where=allowed, initial=-1e300)
    powers = np.where(allowed, np.exp(np.where(allowed, scores - shift, 0)), 0)
    total = powers.sum(-1, keepdims=True)
    return powers / np.where(total > 0, total, 1)


def disentangled_attention(query, key, value, keys, queries, row, allowed, factors, scale):
    """He et al. 2021, eq. 4: A = Q K' + Q P' + K R', softmax(scale A) V, with P and R by the bucket of q - k.

    Query, key, value are [batch, heads, length, size]; P, `keys`, and R, `queries`, [heads, rows, size] or None; `row`
    that of each pair [query, key]; `allowed` is [batch, heads, query, key]; `factors` are those of the heads [heads].
    """
    scores = np.einsum("bhqd,bhkd->bhqk", query, key)
    if keys is not None:
        scores += np.einsum("bhqd,hqkd->bhqk", query, keys[:, row])
    if queries is not None:
        scores += np.einsum("bhkd,hqkd->bhqk", key, queries[:, row])
    weights = softmax(scale * scores, allowed) * factors[:, None, None]
    context = np.einsum("bhqk,bhkd->bqhd", weights, value)
    return context.reshape(*context.shape[:2], context.shape[2] * context.shape[3])


@st.composite
def problems(draw, spread=1.0, packed=False):
    """Random sizes, values, tables and masks; packed: sequences behind one another that do not see each other."""
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5)) if packed else [draw(st.integers(1, 9))]
    batch, heads, size = 1 if packed else draw(st.integers(0, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 5))
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    keys, queries = (random.normal(0, spread, (heads, ROWS, size)) if draw(st.booleans()) else None for _ in "PR")
    if packed:
        sequence = np.repeat(np.arange(len(lengths)), lengths)
        allowed = (sequence[:, None] == sequence)[None, None]
    else:
        shape = (batch, draw(st.sampled_from([1, heads])), draw(st.sampled_from([1, lengths[0]])), lengths[0])
        allowed = random.random(shape) < draw(st.sampled_from([0.0, 0.6, 1.0]))
    return Problem(
        states=random.normal(0, spread, (3, batch, heads, sum(lengths), size)),
        keys=keys,
        queries=queries,
        bucketing=draw(st.sampled_from(sorted(BUCKETINGS))),
        allowed=allowed,
        factors=np.where(random.random(heads) < 0.5, random.random(heads), 1.0),
        scale=draw(st.sampled_from([1.0, 0.3])),
        lengths=lengths if packed else None,
    )


@dataclass
class Problem:
    """Everything that attention takes, as numpy arrays."""

    states: np.ndarray
    keys: np.ndarray | None
    queries: np.ndarray | None
    bucketing: str
    allowed: np.ndarray
    factors: np.ndarray
    scale: float
    lengths: list[int] | None

    def row_of(self, offsets):
        bucketing, shift = BUCKETINGS[self.bucketing]
        return bucketing(offsets) + shift

    def expected(self):
        """What the equations give."""
        query, key, value = self.states
        position = torch.arange(query.shape[2])
        row = self.row_of(position[:, None] - position).numpy()
        allowed = np.broadcast_to(self.allowed, (*query.shape[:3], query.shape[2]))
        return disentangled_attention(
            query, key, value, self.keys, self.queries, row, allowed, self.factors, self.scale
        )

    def context(self, backend, dtype=torch.float64):
        """What the library gives; of the tables it gets the rows that the offsets reach, as families pass them."""
        query, key, value = torch.from_numpy(self.states).to(dtype)
        longest = max(self.lengths or [query.shape[2]])
        rows = reachable_rows(self.row_of(relative_offsets(longest, query.device)), ROWS)
        keys, queries = (
            None if table is None else torch.from_numpy(table).to(dtype)[:, rows.used]
            for table in (self.keys, self.queries)
        )
        positions = None if keys is None and queries is None else RelativePositions(keys, queries, rows.of_offset)
        allowed = None if self.lengths else torch.from_numpy(self.allowed)
        factors = torch.from_numpy(self.factors).to(dtype)
        chosen = AttentionSettings(backend, allowed, factors, need_weights=False, lengths=self.lengths)
        return attention(query, key, value, chosen, scale=self.scale, positions=positions)[0]


@every_backend
@pytest.mark.parametrize("packed", [False, True])
@some_examples
@given(data=st.data())
def test_disentangled_attention(backend, packed, data):
    problem = data.draw(problems(packed=packed))
    np.testing.assert_allclose(problem.context(backend).numpy(), problem.expected(), rtol=1e-10, atol=1e-12)


@every_backend
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@some_examples
@given(problem=problems())
def test_error_of_half_precision(backend, dtype, problem):
    """A score is wrong by units in its last place, a weight by that factor, a context by that of the largest value."""
    tables = [table for table in (problem.keys, problem.queries) if table is not None]
    lengths = [np.linalg.norm(vectors, axis=-1).max(initial=0) for vectors in (*problem.states[:2], *tables)]
    largest_score = problem.scale * (1 + len(tables)) * max(lengths) ** 2
    bound = torch.finfo(dtype).eps * (2 + 2 * largest_score) * np.abs(problem.states[2]).max(initial=0)
    error = np.abs(problem.context(backend, dtype).double().numpy() - problem.expected())
    assert error.max(initial=0) <= bound


@every_backend
@some_examples
@given(problem=problems(spread=60.0))
def test_scores_of_thousands_in_half_precision(backend, problem):
    """Nothing overflows: a context is a mean of values."""
    problem.scale = 0.1
    found = problem.context(backend, torch.float16)
    assert not found.numel() or found.abs().max().item() <= 1.01 * np.abs(problem.states[2]).max()


def class_terms(logits, labels):
    """Minus the logarithm of softmax at the label of each row, and its derivative, softmax - one-hot."""
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    softmax_of = powers / powers.sum(-1, keepdims=True)
    hot = np.eye(logits.shape[-1])[np.where(labels == -100, 0, labels)]
    return -np.log((softmax_of * hot).sum(-1)), softmax_of - hot


def binary_terms(logits, labels):
    """-y log s - (1 - y) log(1 - s) with s = 1 / (1 + exp(-x)), and its derivative, s - y."""
    chance = 1 / (1 + np.exp(-logits))
    return -labels * np.log(chance) - (1 - labels) * np.log(1 - chance), chance - labels


def square_terms(logits, labels):
    """(x - y)^2, and its derivative."""
    return (logits - labels) ** 2, 2 * (logits - labels)


def mean_of_active(terms, active):
    """Loss and gradient: the mean over what is labelled; zero if nothing is."""
    losses, derivatives = terms
    count = max(active.sum(), 1)
    wide = active[..., None] if derivatives.ndim > active.ndim else active
    return np.where(active, losses, 0).sum() / count, np.where(wide, derivatives, 0) / count


def assert_loss(loss, logits, expected):
    """Compare a loss and its gradient with numpy's."""
    np.testing.assert_allclose(loss.item(), expected[0], rtol=1e-9, atol=1e-12)
    (gradient,) = torch.autograd.grad(loss, logits)
    np.testing.assert_allclose(gradient.numpy(), expected[1], rtol=1e-9, atol=1e-12)


@st.composite
def scores_and(draw, labels, dimensions=1):
    """Logits [..., classes] and labels, some of them ignored, of shape [...] or as the logits."""
    shape = (*draw(arrays.array_shapes(min_dims=dimensions, max_dims=dimensions, max_side=5)), draw(st.integers(2, 5)))
    logits = draw(arrays.arrays(np.float64, shape, elements=st.floats(-8, 8)))
    kinds = {
        "classes": (np.int64, shape[:-1], st.integers(0, shape[-1] - 1)),
        "chances": (np.float64, shape, st.floats(0, 1)),
        "numbers": (np.float64, shape, st.floats(-9, 9)),
    }
    kind, label_shape, elements = kinds[labels]
    return logits, draw(arrays.arrays(kind, label_shape, elements=st.just(-100) | elements))


@some_examples
@given(data=st.data(), dimensions=st.integers(1, 2))
def test_classes(data, dimensions):
    logits, labels = data.draw(scores_and("classes", dimensions))
    leaf = torch.from_numpy(logits).requires_grad_()
    expected = mean_of_active(class_terms(logits, labels), labels != -100)
    assert_loss(class_loss(leaf, torch.from_numpy(labels)), leaf, expected)
    if dimensions == 1:
        assert_loss(sequence_loss(leaf, torch.from_numpy(labels), None), leaf, expected)


@pytest.mark.parametrize(
    ("kind", "labels", "terms"),
    [("multi_label_classification", "chances", binary_terms), ("regression", "numbers", square_terms)],
)
@some_examples
@given(data=st.data())
def test_several_outputs(kind, labels, terms, data):
    logits, targets = data.draw(scores_and(labels))
    leaf = torch.from_numpy(logits).requires_grad_()
    expected = mean_of_active(terms(logits, targets), targets != -100)
    assert_loss(sequence_loss(leaf, torch.from_numpy(targets), kind), leaf, expected)


@some_examples
@given(data=st.data())
def test_answers(data):
    """Two losses over positions; an answer outside the sequence counts for nothing."""
    logits, _ = data.draw(scores_and("classes", 2))
    batch, length, _ = logits.shape
    leaf = torch.from_numpy(logits).requires_grad_()
    positions = data.draw(arrays.arrays(np.int64, (2, batch), elements=st.integers(-3, length + 2)))
    expected, gradient = 0.0, np.zeros_like(logits)
    for end, at in enumerate(positions):
        inside = (at >= 0) & (at < length)
        loss, derivative = mean_of_active(class_terms(logits[..., end], np.where(inside, at, -100)), inside)
        expected, gradient[..., end] = expected + loss / 2, derivative / 2
    found = span_loss(leaf[..., 0], leaf[..., 1], *torch.from_numpy(positions))
    assert_loss(found, leaf, (expected, gradient))


@some_examples
@given(data=st.data())
def test_state_of_the_first_real_token(data):
    tokens = data.draw(arrays.arrays(np.bool_, arrays.array_shapes(min_dims=2, max_dims=2, max_side=6)))
    states = np.random.default_rng(0).normal(size=(*tokens.shape, 3))
    pooled = cls_pool(torch.from_numpy(states), torch.from_numpy(tokens)).numpy()
    for row, flags, found in zip(states, tokens, pooled, strict=True):
        if flags.any():
            np.testing.assert_array_equal(found, row[np.flatnonzero(flags)[0]])
