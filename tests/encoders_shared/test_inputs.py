"""What a caller may pass to an encoder, and how it is told what is wrong."""

import re
from dataclasses import replace

import pytest
import torch

from encoders_shared.inputs import (
    EncoderInputs,
    absolute_positions,
    check_tokens,
    read_flag,
    read_head_mask,
    read_integers,
    read_position_ids,
    read_states,
)
from encoders_shared.masks import first_token, read_attention_mask
from encoders_shared.packing import plan_packing

IDS = torch.tensor([[5, 6, 7, 0], [0, 8, 9, 0]])
MASK = torch.tensor([[1, 1, 1, 0], [0, 1, 1, 0]])
CPU = torch.device("cpu")


def inputs(mask=MASK, **changes):
    batch, length = mask.shape
    read = read_attention_mask(mask, batch, length, CPU)
    made = EncoderInputs(
        ids=IDS,
        embeds=None,
        mask=read,
        position_ids=None,
        head_mask=None,
        width=length,
        columns=torch.arange(length)[None],
        first_columns=first_token(read.tokens)[:, None],
        lengths=None,
        backend="sdpa",
        keep_states=(),
        keep_attentions=False,
        options={},
    )
    return replace(made, **changes)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8], ids=str)
def test_ids_of_every_integer_type(dtype):
    read = read_integers("input_ids", IDS.to(dtype))
    assert read.dtype == torch.int64
    assert torch.equal(read, IDS)
    assert read_integers("input_ids", None) is None


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (IDS.float(), r"input_ids must be integers, got torch\.float32"),
        (IDS.bool(), r"input_ids must be integers, got torch\.bool"),
        (IDS.tolist(), r"input_ids must be a torch\.Tensor, got list"),
    ],
)
def test_ids_that_are_not_integers(ids, message):
    with pytest.raises(TypeError, match=message):
        read_integers("input_ids", ids)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_embeddings_of_every_precision(dtype):
    assert check_tokens(None, torch.zeros(2, 4, 8, dtype=dtype), 10, 8) == (2, 4)


@pytest.mark.parametrize("batch", [0, 1])
def test_ids_at_the_ends_of_the_vocabulary(batch):
    assert check_tokens(torch.tensor([[0, 9]])[:batch], None, 10, 8) == (batch, 2)


@pytest.mark.parametrize(
    ("ids", "embeds", "error", "message"),
    [
        (None, None, ValueError, "exactly one of input_ids and inputs_embeds; got neither"),
        (IDS, torch.zeros(2, 4, 8), ValueError, "exactly one of input_ids and inputs_embeds; got both"),
        (IDS[0], None, ValueError, r"input_ids have shape \[4\]; expected \[batch, length\]"),
        (IDS[None], None, ValueError, r"input_ids have shape \[1, 2, 4\]; expected \[batch, length\]"),
        (torch.tensor([[1, 2], [3, 10]]), None, ValueError, r"input_ids\[1, 1\] is 10; allowed: 0 \.\. 9 .*is 10\)"),
        (torch.tensor([[1, -1]]), None, ValueError, r"input_ids\[0, 1\] is -1; allowed: 0 \.\. 9 \(the vocabulary"),
        (IDS[:, :0], None, ValueError, "sequences have length 0; at least one token is needed"),
        (None, torch.zeros(2, 0, 8), ValueError, "sequences have length 0; at least one token is needed"),
        (None, torch.zeros(2, 4, 7), ValueError, r"shape \[2, 4, 7\]; expected \[batch, length, 8\]"),
        (None, torch.zeros(4, 8), ValueError, r"shape \[4, 8\]; expected \[batch, length, 8\]"),
        (None, torch.zeros(2, 4, 8).long(), TypeError, r"floating-point numbers, got torch\.int64"),
    ],
)
def test_tokens_that_are_refused(ids, embeds, error, message):
    with pytest.raises(error, match=message):
        check_tokens(ids, embeds, 10, 8)


def test_ids_are_not_read_where_there_is_nothing_to_read():
    assert check_tokens(torch.full((2, 4), 99, device="meta"), None, 10, 8) == (2, 4)
    compiled = torch.compile(lambda ids: check_tokens(ids, None, 10, 8), fullgraph=True, backend="eager")
    assert compiled(torch.full((2, 4), 99)) == (2, 4)


@pytest.mark.parametrize("configured", [None, False, True])
def test_a_flag_of_the_call_wins_over_the_configured_one(configured):
    assert read_flag("output_attentions", True, configured) is True
    assert read_flag("output_attentions", False, configured) is False
    assert read_flag("output_attentions", None, configured) is bool(configured)


@pytest.mark.parametrize(
    ("given", "message"), [([0, 2], r"\[0, 2\]: choose layers from"), (1, "1: pass one"), ("yes", "'yes': pass one")]
)
def test_a_flag_that_is_none(given, message):
    with pytest.raises(TypeError, match=rf"output_attentions must be True, False or None, got {message}"):
        read_flag("output_attentions", given, None)


@pytest.mark.parametrize(
    ("chosen", "configured", "numbers"),
    [
        (None, None, ()),
        (None, True, (0, 1, 2, 3)),
        (True, False, (0, 1, 2, 3)),
        (False, True, ()),
        ([], True, ()),
        ([0], None, (0,)),
        ([-1], None, (3,)),
        (range(1, 3), None, (1, 2)),
        (range(0), True, ()),
        ((2, -4, 0, 2), None, (0, 2)),
    ],
)
def test_states_that_are_wanted(chosen, configured, numbers):
    assert read_states(chosen, configured, 4) == numbers


@pytest.mark.parametrize("chosen", [0, 1, -1, 9, "all", 1.0, {0, 1}, [True], [0, None], [0.0]])
def test_states_that_are_no_numbers(chosen):
    message = "output_hidden_states must be True, False, None, or a list of numbers such as [0, -1], got "
    with pytest.raises(TypeError, match=re.escape(f"{message}{chosen!r}.")):
        read_states(chosen, None, 4)


@pytest.mark.parametrize("chosen", [[4], (-5,), [0, 9], range(5)])
def test_states_that_there_are_not(chosen):
    with pytest.raises(ValueError, match=r"output_hidden_states names -?\d; the states are 0 \.\. 3, or -1 \.\. -4\."):
        read_states(chosen, None, 4)


@pytest.mark.parametrize("shape", [(4,), (1, 4), (2, 4)])
def test_position_ids(shape):
    given = torch.arange(4).expand(shape)
    read = read_position_ids(given, 2, 4)
    assert read.shape in ((1, 4), (2, 4))
    assert torch.equal(read.expand(2, 4), torch.arange(4).expand(2, 4))
    assert read_position_ids(None, 2, 4) is None


@pytest.mark.parametrize("shape", [(5,), (1, 5), (3, 4), (2, 4, 1), (2, 1), ()])
def test_position_ids_of_a_wrong_shape(shape):
    found = str(list(shape if len(shape) != 1 else (1, *shape))).replace("[", r"\[")
    with pytest.raises(ValueError, match=rf"position_ids have shape {found}; expected \[2, 4\]"):
        read_position_ids(torch.zeros(shape, dtype=torch.int64), 2, 4)


@pytest.mark.parametrize("given", [torch.tensor([0, 1, 1]), torch.tensor([[0.0, 1, 1], [0, 1, 1]]), [[0, 1, 1]] * 2])
def test_head_mask(given):
    given = torch.as_tensor(given)
    read = read_head_mask(given, 2, 3, torch.float16)
    assert read.dtype == torch.float16
    assert read.tolist() == [[0, 1, 1], [0, 1, 1]]
    assert read_head_mask(None, 2, 3, torch.float16) is None


@pytest.mark.parametrize("shape", [(2,), (1, 3), (3, 2), (2, 3, 1), (), (2, 1, 3, 1, 1)])
def test_head_mask_of_a_wrong_shape(shape):
    with pytest.raises(ValueError, match=r"head_mask has shape \[.*\]; expected \[3\] or \[2, 3\]"):
        read_head_mask(torch.ones(shape), 2, 3, torch.float32)


def test_positions_from_the_start():
    assert absolute_positions(inputs(), 4).tolist() == [[0, 1, 2, 3]]


def test_positions_from_the_first_real_token():
    mask = torch.tensor([[1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    positions = absolute_positions(inputs(mask), 4, from_first_token=True)
    assert positions.tolist() == [[0, 1, 2, 3], [0, 0, 1, 2], [0, 0, 0, 0], [0, 1, 2, 3]]


@pytest.mark.parametrize("from_first_token", [False, True])
def test_given_positions_win(from_first_token):
    given = torch.tensor([[3, 2, 1, 0]])
    positions = absolute_positions(inputs(position_ids=given), 4, from_first_token=from_first_token)
    assert torch.equal(positions, given)


def test_given_positions_at_padding_are_never_out_of_range():
    """Those that fit are kept; the caller's own tensor is not changed."""
    given = torch.tensor([[0, 1, 2, -1], [99, 1, 2, 3]])
    before = given.clone()
    expected = [[0, 1, 2, 0], [3, 1, 2, 3]]
    assert absolute_positions(inputs(position_ids=given), 4).tolist() == expected
    assert torch.equal(given, before)
    batch = inputs(position_ids=given)
    compiled = torch.compile(lambda: absolute_positions(batch, 4), fullgraph=True, backend="eager")
    assert compiled().tolist() == expected


def test_one_row_of_given_positions_is_read_where_any_sequence_has_a_token():
    assert absolute_positions(inputs(position_ids=torch.tensor([[3, 1, 2, -1]])), 4).tolist() == [[3, 1, 2, 0]]
    with pytest.raises(ValueError, match=r"position_ids\[0, 0\] is -1; allowed: 0 \.\. 3"):
        absolute_positions(inputs(position_ids=torch.tensor([[-1, 1, 2, 3]])), 4)


@pytest.mark.parametrize("value", [4, -1])
def test_given_positions_out_of_range(value):
    batch = inputs(position_ids=torch.tensor([[0, 1, 2, 3], [0, 1, value, 3]]))
    message = rf"position_ids\[1, 2\] is {value}; allowed: 0 \.\. 3 \(max_position_embeddings is 4\)"
    with pytest.raises(ValueError, match=message):
        absolute_positions(batch, 4)


def test_more_tokens_than_positions():
    with pytest.raises(ValueError, match="4 tokens, but max_position_embeddings is 3: truncate them to 3 tokens"):
        absolute_positions(inputs(), 3)


def test_what_a_layer_is_told():
    batch = inputs(head_mask=torch.tensor([[0.0, 1.0], [1.0, 0.5]]), keep_attentions=True)
    assert (batch.length, batch.device) == (4, CPU)
    settings = batch.attention(1)
    assert (settings.backend, settings.need_weights) == ("sdpa", True)
    assert settings.head_mask.tolist() == [1.0, 0.5]
    assert settings.allowed.tolist() == MASK.bool()[:, None, None].tolist()
    assert inputs().attention(0).head_mask is None


def test_packed():
    positions = torch.tensor([[4, 5, 6, 7]])
    padded = inputs(position_ids=positions)
    packed = padded.packed(plan_packing(padded.mask, True))
    assert packed.ids.tolist() == [[5, 6, 7, 8, 9]]
    assert packed.position_ids.tolist() == [[4, 5, 6, 5, 6]]
    assert packed.mask.tokens.tolist() == [[True] * 5]
    assert packed.attention(0).lengths == packed.lengths == [3, 2]
    assert packed.attention(0).allowed is None
    assert (padded.length, packed.length) == (4, 3)
    without = replace(packed, position_ids=None)
    assert absolute_positions(without, 4).tolist() == [[0, 1, 2, 1, 2]]
    assert absolute_positions(without, 4, from_first_token=True).tolist() == [[0, 1, 2, 0, 1]]


@pytest.mark.parametrize("states", [(), (1,)])
@pytest.mark.parametrize("attentions", [False, True])
def test_trace_keeps_what_the_caller_wants(states, attentions):
    trace = inputs(keep_states=states, keep_attentions=attentions).trace()
    assert (trace.keep_states, trace.keep_attentions) == (states, attentions)
