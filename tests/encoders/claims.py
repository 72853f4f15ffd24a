"""What cards claim in words, and how each claim shows in a model.

Every sentence that a card may hold stands here with a check, which gets the name of a small preset. A card that says
anything else fails `test_every_claim_has_a_check`: add the sentence and its check here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
import torch
from torch import Tensor

from encoders.family import TASKS
from encoders.norbert import layer_differences
from tests.support import ALL_TASKS, FIRST_ID, SMALL, assert_close, inputs_of, make_batch, make_model, predictions

LENGTH = 16
Check = Callable[[str], None]


small = cache(make_model)
"""For checks that leave the model as it is."""


def run(name: str, task: str | None, given: dict | None = None, **overrides):
    with torch.no_grad():
        return small(name, task, **overrides)(
            **{**inputs_of(make_batch(task)), **(given or {})}, output_hidden_states=True
        )


plainly = cache(run)


def ids_of_length(length: int, task: str | None = None) -> Tensor:
    ids = torch.randint(FIRST_ID, SMALL["vocab_size"], (2, length), generator=torch.Generator().manual_seed(0))
    return ids[None] if task == "multiple-choice" else ids


def backwards(task: str | None) -> Tensor:
    """Position ids from the end to the start."""
    return torch.arange(12).flip(0).expand(make_batch(task)["input_ids"].shape)


def changed_by(name: str, task: str | None, given: dict) -> tuple[bool, bool]:
    """Whether keywords change the states, and the predictions."""
    plain, other = plainly(name, task), run(name, task, given)
    states = all(torch.equal(a, b) for a, b in zip(plain.hidden_states, other.hidden_states, strict=True))
    return not states, not torch.equal(predictions(plain), predictions(other))


def positions_ignored(name: str) -> None:
    for task in ALL_TASKS:
        assert changed_by(name, task, {"position_ids": backwards(task)}) == (False, False), task


def positions_used(name: str) -> None:
    for task in ALL_TASKS:
        assert changed_by(name, task, {"position_ids": backwards(task)}) == (True, True), task
        default = torch.arange(12).expand(make_batch(task)["input_ids"].shape)
        assert changed_by(name, task, {"position_ids": default}) == (False, False), task


def positions_used_by_the_decoder(name: str) -> None:
    for task in ALL_TASKS:
        given = {"position_ids": backwards(task)}
        assert changed_by(name, task, given) == (False, task == "masked-lm"), task


def token_types_ignored(name: str) -> None:
    for task in ALL_TASKS:
        given = {"token_type_ids": torch.randint(0, 9, make_batch(task)["input_ids"].shape)}
        assert changed_by(name, task, given) == (False, False), task


def tables(name: str) -> list[str]:
    """Names of the tables of relative positions."""
    return [key for key, _ in small(name, None).named_parameters() if "rel" in key and "norm" not in key]


def same_word(name: str) -> Tensor:
    """How one word is embedded at each of its places. [length, hidden]."""
    ids = torch.full((1, 9), FIRST_ID)
    given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return run(name, None, given).hidden_states[0][0]


def absolute_positions(name: str) -> None:
    assert same_word(name).unique(dim=0).shape[0] == 9
    assert not tables(name)
    assert small(name, None).get_position_embeddings().weight.requires_grad
    fixed = small(name, None, sinusoidal_pos_embds=True).get_position_embeddings()
    assert not fixed.weight.requires_grad


def one_relative_table(name: str) -> None:
    assert_close(same_word(name), same_word(name)[:1].expand(9, -1))
    assert len(tables(name)) == 1
    with pytest.raises(NotImplementedError, match="no absolute positions"):
        small(name, None).get_position_embeddings()


def relative_tables_by_layer(name: str) -> None:
    assert_close(same_word(name), same_word(name)[:1].expand(9, -1))
    assert len(tables(name)) == small(name, None).config.num_hidden_layers
    positions_used_by_the_decoder(name)


def padded(name: str, left: int, right: int, with_positions: bool = False) -> Tensor:
    """States of the same seven tokens with padding around them."""
    ids = ids_of_length(7)
    mask = torch.ones_like(ids)
    given = {"input_ids": torch.nn.functional.pad(ids, (left, right), value=FIRST_ID + 5)}
    given["attention_mask"] = torch.nn.functional.pad(mask, (left, right))
    if with_positions:
        given["position_ids"] = (torch.arange(left + 7 + right) - left).clamp(min=0)[None]
    return run(name, None, given).last_hidden_state[:, left : left + 7]


def either_padding(name: str) -> None:
    for left, right in ((4, 0), (0, 4), (2, 3)):
        assert_close(padded(name, left, right), padded(name, 0, 0))


def right_padding(name: str) -> None:
    assert_close(padded(name, 0, 4), padded(name, 0, 0))
    assert_close(padded(name, 4, 0, with_positions=True), padded(name, 0, 0))
    assert (padded(name, 4, 0) - padded(name, 0, 0)).abs().max() > 0.01


def too_long_everywhere(name: str) -> None:
    for task in ALL_TASKS:
        refuse_one_more_until_resized(name, task)


def too_long_for_masked_lm(name: str) -> None:
    refuse_one_more_until_resized(name, "masked-lm")
    for task in (None, *(task for task in TASKS if task != "masked-lm")):
        model = make_model(name, task, max_position_embeddings=LENGTH)
        model(input_ids=ids_of_length(4 * LENGTH, task))


def refuse_one_more_until_resized(name: str, task: str | None) -> None:
    model = make_model(name, task, max_position_embeddings=LENGTH)
    model(input_ids=ids_of_length(LENGTH, task))
    with pytest.raises(ValueError, match=f"{LENGTH + 1} tokens, but max_position_embeddings is {LENGTH}"):
        model(input_ids=ids_of_length(LENGTH + 1, task))
    model.resize_position_embeddings(LENGTH + 1)
    model(input_ids=ids_of_length(LENGTH + 1, task))


def any_length(name: str) -> None:
    """Far tokens may change places without a change for the first one, near ones may not."""
    for task in TASKS:
        make_model(name, task, max_position_embeddings=LENGTH)(input_ids=ids_of_length(4 * LENGTH, task))
    first, sizes = [], {"max_position_embeddings": LENGTH, "position_bucket_size": LENGTH // 2}
    for one, other in ((0, 0), (LENGTH, LENGTH + 9), (2, 5)):
        ids = ids_of_length(4 * LENGTH)
        ids[:, [one, other]] = ids[:, [other, one]]
        given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        first.append(run(name, None, given, **sizes).hidden_states[1][:, 0])
    assert_close(first[1], first[0])
    assert (first[2] - first[0]).abs().max() > 1e-3


def gradients(name: str, task: str) -> dict[str, Tensor | None]:
    model = make_model(name, task)
    batch = make_batch(task, lengths=(40, 9))
    model(**batch).loss.backward()
    return {key.removeprefix(f"{model.base_model_prefix}."): p.grad for key, p in model.named_parameters()}


def decoder_can_be_skipped(name: str) -> None:
    assert changed_by(name, "masked-lm", {"use_emd": False}) == (False, True)


def last_table_is_left_random(name: str) -> None:
    for task in ("masked-lm", "token-classification"):
        found = [grad is not None and bool(grad.any()) for key, grad in gradients(name, task).items() if "rel" in key]
        assert found == [True, True, task != "masked-lm"]


def idle_absolute_positions(name: str) -> None:
    for task in TASKS:
        grad = gradients(name, task)["embeddings.position_embeddings.weight"]
        assert (grad is not None and bool(grad.any())) == (task == "masked-lm")


def half_of_each_table_is_idle(name: str) -> None:
    found = [grad for key, grad in gradients(name, "token-classification").items() if "rel" in key]
    assert found
    for grad in found:
        assert grad is not None
        lower, upper = grad.chunk(2)
        assert not lower.any()
        assert upper.any()


def states_and_their_differences(name: str) -> None:
    output = run(name, None)
    assert torch.equal(output.hidden_states[-1], output.last_hidden_state)
    assert_close(sum(layer_differences(output.hidden_states)), output.last_hidden_state)


def projections_look_alike(name: str) -> None:
    one, other = (make_model(name, None, position_projection=kind) for kind in ("interleaved", "contiguous"))
    other.load_state_dict(one.state_dict(), strict=True)
    ids = ids_of_length(9)
    assert (one(input_ids=ids).last_hidden_state - other(input_ids=ids).last_hidden_state).abs().max() > 0.01


def reserved_ids(name: str) -> None:
    model = make_model(name, "masked-lm")
    batch, reserved = make_batch("masked-lm"), model.config.num_reserved_ids
    assert (model(**batch).logits.isinf().all(dim=(0, 1)).nonzero().flatten() == torch.arange(reserved)).all()
    batch["labels"][0, 0] = reserved - 1
    with pytest.raises(ValueError, match=str(reserved - 1)):
        model(**batch)


def first_token_of_each_choice(name: str) -> None:
    model = make_model(name, "multiple-choice")
    batch = inputs_of(make_batch("multiple-choice"))
    output = model(**batch, output_hidden_states=True)
    first = output.hidden_states[-1].unflatten(0, batch["input_ids"].shape[:2])[:, :, 0]
    assert_close(output.logits, model.apply_head(first).squeeze(-1))
    assert model.apply_head(first).shape[-1] == 1


def heads_can_be_cut_out(name: str) -> None:
    """A head that was cut out counts for as much as one that is masked."""
    model = make_model(name, None)
    ids = ids_of_length(9)
    mask = torch.ones(model.config.num_hidden_layers, model.config.num_attention_heads)
    mask[1, 2] = 0
    masked = model(input_ids=ids, head_mask=mask).last_hidden_state
    model.prune_heads({1: [2]})
    assert_close(model(input_ids=ids).last_hidden_state, masked)


CLAIMS: dict[str, dict[str, Check]] = {
    "positions": {
        "absolute, learned (or sinusoidal, with sinusoidal_pos_embds)": absolute_positions,
        "relative, one table for all layers": one_relative_table,
        "relative, a table in each layer; absolute ones in the masked-LM head alone": relative_tables_by_layer,
    },
    "position_ids": {
        "ignored": positions_ignored,
        "used; default 0, 1, 2, ...": positions_used,
        "used by the masked-LM head's decoder, ignored elsewhere": positions_used_by_the_decoder,
    },
    "token_types": {"ignored": token_types_ignored},
    "padding": {"left or right": either_padding, "right; left with position_ids": right_padding},
    "beyond_maximum": {
        "an error; resize_position_embeddings adds positions": too_long_everywhere,
        "an error in the masked-LM head (resize_position_embeddings helps); the others take any length": (
            too_long_for_masked_lm
        ),
        "any length; distances beyond max_position_embeddings share the last bucket": any_length,
    },
    "notes": {
        "use_emd=False (masked LM) skips the enhanced mask decoder": decoder_can_be_skipped,
        "under the decoder the last layer's own position table gets no gradient, as published: masked-LM training "
        "leaves it random": last_table_is_left_random,
        "models without a masked-LM head hold the table of absolute positions, which gets no gradient there": (
            idle_absolute_positions
        ),
        "half of each relative-position table is never read, as published": half_of_each_table_is_idle,
        "hidden_states are states; upstream's differences between layers: encoders.norbert.layer_differences": (
            states_and_their_differences
        ),
        "position_projection can't be read from a checkpoint, and the wrong one loads without a word": (
            projections_look_alike
        ),
        "ids below num_reserved_ids are never predicted, and are refused as masked-LM labels": reserved_ids,
        "multiple choice scores the first token of each choice with one output; upstream's code for it can't train": (
            first_token_of_each_choice
        ),
        "attention heads can be cut out with prune_heads({layer: [heads]})": heads_can_be_cut_out,
    },
}
