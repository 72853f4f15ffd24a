"""Attention masks: what is accepted, what it means, and what is refused."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from encoders_shared.masks import first_token, read_attention_mask

CPU = torch.device("cpu")
DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64]
DTYPES += [torch.float16, torch.bfloat16, torch.float32, torch.float64]
ROWS = torch.tensor([[1, 1, 1, 0], [0, 1, 0, 1], [0, 0, 0, 0]])  # [batch, length]
BY_QUERY = torch.tensor(
    [
        [[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 0]],
        [[0, 0, 0, 1]] * 4,
        [[0, 0, 0, 0]] * 4,
    ]
)  # [batch, query, key]
SHARED_FORMS = {"[B, T]": ROWS, "[B, 1, 1, T]": ROWS[:, None, None]}
QUERY_FORMS = {"[B, T, T]": BY_QUERY, "[B, 1, T, T]": BY_QUERY[:, None]}


def read(mask, batch=3, length=4):
    return read_attention_mask(mask, batch, length, CPU)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("form", SHARED_FORMS)
def test_one_mask_for_all_queries(form, dtype):
    mask = read(SHARED_FORMS[form].to(dtype))
    assert torch.equal(mask.tokens, ROWS.bool())
    assert torch.equal(mask.allowed, ROWS.bool()[:, None, None])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("form", QUERY_FORMS)
def test_a_mask_for_each_query(form, dtype):
    mask = read(QUERY_FORMS[form].to(dtype))
    assert torch.equal(mask.allowed, BY_QUERY.bool()[:, None])
    # a token is real if any query attends to it
    assert mask.tokens.tolist() == [[True, True, True, False], [False, False, False, True], [False] * 4]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3), st.integers(1, 5), st.data())
def test_rows_repeated_for_each_query_mean_the_same(batch, length, data):
    flags = data.draw(st.lists(st.integers(0, 1), min_size=batch * length, max_size=batch * length))
    rows = torch.tensor(flags).reshape(batch, length)
    short, long = read(rows, batch, length), read(rows[:, None].expand(batch, length, length), batch, length)
    assert torch.equal(short.tokens, long.tokens)
    if 0 in flags:
        assert torch.equal(short.allowed.expand_as(long.allowed), long.allowed)
    else:
        assert short.allowed is None
        assert long.allowed is None


@pytest.mark.parametrize("mask", [None, torch.ones(3, 4), torch.ones(3, 1, 4, 4, dtype=torch.bool)])
def test_nothing_masked(mask):
    read_mask = read(mask)
    assert read_mask.allowed is None
    assert read_mask.tokens.tolist() == [[True] * 4] * 3


@pytest.mark.parametrize("shape", [(0, 4), (0, 1, 1, 4), (0, 4, 4), (0, 1, 4, 4)])
def test_an_empty_batch(shape):
    assert read(torch.ones(shape), batch=0).tokens.shape == (0, 4)


@pytest.mark.parametrize("mask", [*SHARED_FORMS.values(), *QUERY_FORMS.values()], ids=[*SHARED_FORMS, *QUERY_FORMS])
@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32], ids=str)
def test_the_callers_mask_is_left_alone(mask, dtype):
    mask = mask.to(dtype)
    before = mask.clone()
    read(mask)
    assert torch.equal(mask, before)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("-inf"), "-inf"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        (0.5, r"0\.5"),
        (-1.0, r"-1\.0"),
        (-10_000.0, r"-10000\.0"),
        (torch.finfo(torch.float32).min, r"-3\.4"),
    ],
)
@pytest.mark.parametrize("shape", [(3, 4), (3, 1, 1, 4), (3, 4, 4), (3, 1, 4, 4)])
def test_values_other_than_0_and_1(shape, value, shown):
    mask = torch.zeros(shape)
    mask[..., -1] = value
    with pytest.raises(ValueError, match=rf"attention_mask holds {shown}.*0 \(ignore\) and 1 \(attend\).*mask == 0"):
        read(mask)


@pytest.mark.parametrize("value", [2, -1, 255])
def test_integers_other_than_0_and_1(value):
    with pytest.raises(ValueError, match=f"attention_mask holds {value};"):
        read(torch.full((3, 4), value))


@pytest.mark.parametrize("shape", [(4,), (), (3, 1, 1, 1, 4)])
def test_wrong_rank(shape):
    with pytest.raises(ValueError, match=rf"has {len(shape)} dimensions.*allowed: \[batch, length\]"):
        read(torch.ones(shape))


@pytest.mark.parametrize(
    "shape",
    [
        (2, 4),
        (1, 4),
        (3, 5),
        (4, 3),
        (3, 1, 4),
        (3, 4, 5),
        (1, 4, 4),
        (3, 2, 4, 4),
        (3, 1, 4, 1),
        (3, 1, 3, 4),
        (1, 1, 4, 4),
        (1, 1, 1, 4),
        (3, 4, 1, 1),
    ],
)
def test_wrong_shape(shape):
    found = str(list(shape)).replace("[", r"\[")
    with pytest.raises(ValueError, match=rf"has shape {found}, which does not fit batch 3 and length 4; allowed:"):
        read(torch.ones(shape))


@pytest.mark.parametrize(("mask", "kind"), [([[1, 1, 1, 1]], "list"), (np.ones((3, 4)), "ndarray"), (1, "int")])
def test_not_a_tensor(mask, kind):
    with pytest.raises(TypeError, match=rf"attention_mask must be a torch\.Tensor, got {kind}"):
        read(mask)


@pytest.mark.parametrize("mask", [ROWS, ROWS.bool(), BY_QUERY.float()], ids=["int", "bool", "float"])
def test_compiled(mask):
    compiled = torch.compile(read, fullgraph=True, backend="eager")(mask)
    assert torch.equal(compiled.tokens, read(mask).tokens)
    assert torch.equal(compiled.allowed, read(mask).allowed)


def test_first_token():
    rows = torch.tensor([[1, 1, 0], [0, 1, 1], [0, 0, 1], [0, 1, 0], [0, 0, 0]])
    assert first_token(rows.bool()).tolist() == [0, 1, 2, 1, 0]
