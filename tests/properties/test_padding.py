"""Where a row stands, what surrounds it, and how the mask is written change nothing."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import encoders
from tests.properties.strategies import (
    any_side,
    assert_same_gradients,
    at_tokens,
    backends,
    batches,
    fields,
    gradients,
    make_small,
    moved,
    packings,
    run,
    seeds,
)
from tests.support import ALL_TASKS, NANO, assert_close, inputs_of, loss_of, make_batch

every_encoder = pytest.mark.parametrize("name", NANO)
every_model = pytest.mark.parametrize("task", ALL_TASKS)
MASK_DTYPES = (torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.bfloat16)
OTHER_LABELS = [task for task in ALL_TASKS if task != "question-answering"]  # its loss counts padding, as published


def draw_moved(data, name, batch):
    """A batch elsewhere in wider rows; `position_ids` are left out where the card allows it, sometimes."""
    rows, length = batch["input_ids"].shape[0], batch["input_ids"].shape[-1]
    shifts = data.draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows), "shifts")
    result = moved(batch, shifts, length + max(shifts) + data.draw(st.integers(0, 2), "room on the right"))
    if any_side(name) and data.draw(st.booleans(), "without position_ids"):
        del result["position_ids"]
    return result


@every_encoder
@every_model
@given(data=st.data())
def test_a_row_is_the_same_alone_and_anywhere_in_a_batch(name, task, data):
    """Padding on both sides, any amount, garbage under the mask, other rows: as if they were not there.

    For relative positions this is their behaviour under translation: a row that is moved gives the same states.
    """
    model = make_small(name, task, data.draw(fields(name)), data.draw(backends), data.draw(packings))
    batch = data.draw(batches(task))
    there = draw_moved(data, name, batch)
    mask = batch["attention_mask"]
    lengths = mask.sum(-1).reshape(len(mask), -1)[:, 0].tolist()
    rows = [ids[None, ..., :length] for ids, length in zip(batch["input_ids"], lengths, strict=True)]
    alone = [at_tokens(task, run(model, {"input_ids": row}), torch.ones_like(row)) for row in rows]
    actual = at_tokens(task, run(model, there), there["attention_mask"])
    assert_close(actual, torch.cat(alone), 1e-9)


@every_encoder
@given(data=st.data())
def test_every_state_and_weight_moves_along(name, data):
    """Not the last state alone: those of each layer, the pooled vector and the attention weights."""
    model = make_small(name, None, data.draw(fields(name)), data.draw(backends))
    batch = inputs_of(data.draw(batches(None)))
    there = draw_moved(data, name, batch)
    with torch.no_grad():
        expected, actual = (model(**one, output_hidden_states=True, output_attentions=True) for one in (batch, there))
    old, new = (one["attention_mask"].bool() for one in (batch, there))
    assert_close(actual.pooler_output, expected.pooler_output, 1e-9)
    for ours, theirs in zip(actual.hidden_states, expected.hidden_states, strict=True):
        assert_close(ours[new], theirs[old], 1e-9)
    for ours, theirs in zip(actual.attentions, expected.attentions, strict=True):
        pairs = [
            (one[:, None, :, None] & one[:, None, None, :]).expand_as(w) for one, w in ((new, ours), (old, theirs))
        ]
        assert_close(ours[pairs[0]], theirs[pairs[1]], 1e-9)


@pytest.mark.parametrize("name", [name for name in NANO if not any_side(name)])
def test_padding_on_the_left_needs_position_ids_where_the_card_says_so(name):
    batch = inputs_of(make_batch(None, (4, 6)))
    model = make_small(name, None, {})
    there = moved(batch, [3, 1], 9)
    mask = there["attention_mask"].bool()
    expected = run(model, batch)[batch["attention_mask"].bool()]
    assert_close(run(model, there)[mask], expected, 1e-9)
    del there["position_ids"]
    assert (run(model, there)[mask] - expected).abs().max() > 1e-3


@every_encoder
@every_model
def test_position_ids_do_what_the_card_says(name, task):
    said = encoders.card(name).position_ids
    ignored = said == "ignored" or ("ignored elsewhere" in said and task != "masked-lm")
    model = make_small(name, task, {})
    batch = inputs_of(make_batch(task))
    scattered = torch.arange(12).flip(0).expand_as(batch["input_ids"]) * 3
    plain, other = run(model, batch), run(model, {**batch, "position_ids": scattered})
    assert torch.equal(plain, other) if ignored else (plain - other).abs().max() > 1e-3


@every_encoder
@every_model
@given(data=st.data())
def test_the_order_of_the_rows(name, task, data):
    """It carries over to the predictions; loss and gradients do not depend on it."""
    model = make_small(name, task, data.draw(fields(name)), data.draw(backends), data.draw(packings))
    batch = data.draw(batches(task))
    order = torch.tensor(data.draw(st.permutations(range(len(batch["input_ids"])))))
    other = {key: value[order] for key, value in batch.items()}
    mask = other["attention_mask"]
    assert_close(at_tokens(task, run(model, other), mask), at_tokens(task, run(model, batch)[order], mask), 1e-9)
    losses = [loss_of(model(**one), one["attention_mask"]) for one in (batch, other)]
    assert_close(losses[1].detach(), losses[0].detach(), 1e-9)
    assert_same_gradients(gradients(model, losses[1]), gradients(model, losses[0]))


@every_encoder
@pytest.mark.parametrize("task", OTHER_LABELS)
@given(data=st.data())
def test_loss_and_gradients_do_not_depend_on_padding(name, task, data):
    model = make_small(name, task, data.draw(fields(name)), data.draw(backends), data.draw(packings))
    batch = data.draw(batches(task))
    there = draw_moved(data, name, batch)
    expected = loss_of(model(**batch), batch["attention_mask"])
    model.trunk.packing = data.draw(packings)
    actual = loss_of(model(**there), there["attention_mask"])
    assert_close(actual.detach(), expected.detach(), 1e-9)
    assert_same_gradients(gradients(model, actual), gradients(model, expected))


@every_encoder
@every_model
@given(data=st.data())
def test_a_mask_means_the_same_in_every_form(name, task, data):
    """Any rank and number format, gaps and empty rows included."""
    model = make_small(name, task, data.draw(fields(name)), data.draw(backends), data.draw(packings))
    batch = inputs_of(data.draw(batches(task)))
    ids = batch["input_ids"]
    mask = torch.rand(ids.shape, generator=torch.Generator().manual_seed(data.draw(seeds))) < 0.6
    *rows, length = mask.shape
    forms = [mask, mask[..., None, None, :]]
    forms += [
        mask[..., None, :].expand(*rows, length, length),
        mask[..., None, None, :].expand(*rows, 1, length, length),
    ]
    expected = at_tokens(task, run(model, {"input_ids": ids, "attention_mask": mask}), mask)
    for form in forms:
        written = form.to(data.draw(st.sampled_from(MASK_DTYPES)))
        actual = run(model, {"input_ids": ids, "attention_mask": written})
        assert_close(at_tokens(task, actual, mask), expected, 1e-9, str(list(form.shape)))
