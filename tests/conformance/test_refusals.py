"""What an encoder does not take, and what it says then: every family, every task."""

from __future__ import annotations

import inspect

import pytest
import torch

import encoders
from encoders_shared.attention import BACKENDS
from tests.support import ALL_TASKS, NANO, assert_close, inputs_of, make_batch, make_model, predictions, real

every_encoder = pytest.mark.parametrize("name", NANO)
every_model = pytest.mark.parametrize("task", ALL_TASKS)
LAYERS = {"num_hidden_layers": 2, "hidden_size": 12, "num_attention_heads": 3, "intermediate_size": 16}


def small(name, task, **overrides):
    return make_model(name, task, **LAYERS, **overrides)


def escaped(shape):
    return str(list(shape)).replace("[", r"\[")


@every_encoder
@every_model
def test_unknown_keyword(name, task):
    """The nearest known name is suggested, if one is near; a family's own keywords too."""
    model, inputs = small(name, task), inputs_of(make_batch(task))
    known = [one for one in inspect.signature(model.forward).parameters if one != "options"]
    for keyword in (*known, *model.forward_options):
        with pytest.raises(TypeError, match=rf"unknown keyword '{keyword[1:]}'. Did you mean '{keyword}'\?"):
            model(**inputs, **{keyword[1:]: 1})
    with pytest.raises(TypeError, match=r"unknown keyword 'cache'. Known: input_ids, attention_mask, .*return_dict"):
        model(**inputs, cache=1)


@every_encoder
def test_labels_for_a_bare_model(name):
    with pytest.raises(TypeError, match="unknown keyword 'labels'"):
        small(name, None)(**inputs_of(make_batch(None)), labels=torch.tensor([0, 1, 2]))


@every_encoder
@every_model
def test_ids_and_embeddings(name, task):
    model = small(name, task)
    inputs = inputs_of(make_batch(task))
    embeds = model.get_input_embeddings()(inputs["input_ids"])
    with pytest.raises(ValueError, match="exactly one of input_ids and inputs_embeds; got both"):
        model(**inputs, inputs_embeds=embeds)
    with pytest.raises(ValueError, match="exactly one of input_ids and inputs_embeds; got neither"):
        model(attention_mask=inputs["attention_mask"])


@every_encoder
@every_model
@pytest.mark.parametrize("wrong", [140, -1, 10**6])
def test_ids_out_of_range(name, task, wrong):
    """Row, position and id are named; the ends of the vocabulary are inside it."""
    model, inputs = small(name, task), inputs_of(make_batch(task))
    inputs["input_ids"][0, ..., 0], inputs["input_ids"][0, ..., 1] = 0, 139
    model(**inputs)
    rows = inputs["input_ids"].view(-1, 12)
    rows[1, 3] = wrong
    with pytest.raises(ValueError, match=rf"input_ids\[1, 3\] is {wrong}; allowed: 0 \.\. 139 \(the vocabulary size"):
        model(**inputs)


@every_encoder
@every_model
@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.complex64], ids=str)
@pytest.mark.parametrize("argument", ["input_ids", "position_ids"])
def test_ids_that_are_not_integers(name, task, argument, dtype):
    inputs = inputs_of(make_batch(task))
    inputs[argument] = torch.zeros(inputs["input_ids"].shape, dtype=dtype)
    with pytest.raises(TypeError, match=rf"{argument} must be integers, got {dtype}"):
        small(name, task)(**inputs)


@every_encoder
@every_model
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64], ids=str)
def test_embeddings_that_are_not_numbers(name, task, dtype):
    embeds = torch.ones(*make_batch(task)["input_ids"].shape, 12, dtype=dtype)
    with pytest.raises(TypeError, match=f"inputs_embeds must be floating-point numbers, got {dtype}"):
        small(name, task)(inputs_embeds=embeds)


@every_encoder
@every_model
def test_wrong_shapes_of_ids_and_embeddings(name, task):
    model, ids = small(name, task), make_batch(task)["input_ids"]
    with pytest.raises(ValueError, match="length 0; at least one token is needed"):
        model(input_ids=ids[..., :0])
    with pytest.raises(ValueError, match=r"input_ids have shape \[.*\]; expected \[batch, length\]"):
        model(input_ids=ids[None])
    with pytest.raises(ValueError, match=r"inputs_embeds have shape \[\d, 12, 5\]; expected \[batch, length, 12\]"):
        model(inputs_embeds=torch.ones(*ids.shape, 5))


@every_encoder
@pytest.mark.parametrize("task", [task for task in ALL_TASKS if task != "multiple-choice"])
def test_one_sequence_needs_a_batch(name, task):
    with pytest.raises(ValueError, match=r"input_ids have shape \[12\]; expected \[batch, length\]"):
        small(name, task)(input_ids=make_batch(task)["input_ids"][0])


@every_encoder
def test_multiple_choice_needs_choices(name):
    model = small(name, "multiple-choice")
    batch = make_batch("multiple-choice")
    for name in ("input_ids", "attention_mask"):
        for axes in (2, 1):
            wrong = batch[name].flatten(0, 3 - axes)
            message = rf"takes {name} of \[batch, choices, length\], got shape {escaped(wrong.shape)}"
            with pytest.raises(ValueError, match=message):
                model(**{**batch, name: wrong})
    with torch.no_grad():
        plain = model(**batch).logits
        for positions in (torch.arange(12), torch.arange(12)[None], torch.arange(12).expand(3, 3, 12)):
            assert torch.equal(model(**batch, position_ids=positions).logits, plain)


@every_encoder
@every_model
@pytest.mark.parametrize("argument", ["input_ids", "attention_mask", "position_ids", "head_mask"])
def test_what_is_not_a_tensor(name, task, argument):
    with pytest.raises(TypeError, match=rf"{argument} must be a torch\.Tensor, got list"):
        small(name, task)(**{**inputs_of(make_batch(task)), argument: [[1]]})


@every_encoder
@every_model
@pytest.mark.parametrize("value", [float("-inf"), -1.0, 0.5, 2.0, float("nan")])
def test_wrong_values_in_a_mask(name, task, value):
    inputs = inputs_of(make_batch(task))
    inputs["attention_mask"] = inputs["attention_mask"].float()
    inputs["attention_mask"][0, ..., 2] = value
    with pytest.raises(ValueError, match=rf"attention_mask holds {value}; allowed are 0 \(ignore\) and 1 \(attend\)"):
        small(name, task)(**inputs)


@every_encoder
@every_model
def test_wrong_shapes_of_masks(name, task):
    inputs = inputs_of(make_batch(task))
    shape = inputs["attention_mask"].shape
    rows = shape[0] if len(shape) == 2 else shape[0] * shape[1]
    model = small(name, task)
    for ending, said in ((11,), r"\d, 11"), ((2, 12), r"\d, 2, 12"), ((2, 12, 12), r"\d, 2, 12, 12"):
        with pytest.raises(
            ValueError, match=rf"shape \[{said}\], which does not fit batch {rows} and length 12; allowed"
        ):
            model(input_ids=inputs["input_ids"], attention_mask=torch.ones(*shape[:-1], *ending))
    with pytest.raises(ValueError, match=r"position_ids have shape \[\d, 5\]; expected \[\d, 12\]"):
        model(**inputs, position_ids=torch.zeros(*shape[:-1], 5, dtype=torch.long))
    for wrong in (4,), (1, 3), (3, 2):
        with pytest.raises(ValueError, match=rf"head_mask has shape {escaped(wrong)}; expected \[3\] or \[2, 3\]"):
            model(**inputs, head_mask=torch.ones(wrong))


@every_encoder
@every_model
def test_flags(name, task):
    with pytest.raises(TypeError, match=r"output_attentions must be True, False or None, got \[0, 2\]: choose layers"):
        small(name, task)(**inputs_of(make_batch(task)), output_attentions=[0, 2])
    with pytest.raises(ValueError, match=r"output_hidden_states names 3; the states are 0 \.\. 2, or -1 \.\. -3\."):
        small(name, task)(**inputs_of(make_batch(task)), output_hidden_states=[0, 3])
    for number in (0, 1):
        with pytest.raises(TypeError, match=rf"output_hidden_states must be .* such as \[0, -1\], got {number}\."):
            small(name, task)(**inputs_of(make_batch(task)), output_hidden_states=number)
    for flag in ("return_dict", *(["packed_output"] if task is None else [])):
        for wrong in ("yes", 1):
            with pytest.raises(TypeError, match=f"{flag} must be True, False or None, got {wrong!r}: pass one"):
                small(name, task)(**inputs_of(make_batch(task)), **{flag: wrong})


@every_encoder
@every_model
@pytest.mark.parametrize("embedded", [False, True])
def test_too_long_for_absolute_positions(name, task, embedded):
    """The length, the limit and what to do, where the card says that there is a limit; an answer everywhere else."""
    card = encoders.card(name)
    limited = card.maximum_length is not None and ("any length" not in card.beyond_maximum or task == "masked-lm")
    model = small(name, task, **({"max_position_embeddings": 20} if card.maximum_length else {}))
    for length in (20, 21):
        ids = make_batch(task, (length, 4))["input_ids"]
        inputs = {"inputs_embeds": model.get_input_embeddings()(ids)} if embedded else {"input_ids": ids}
        if limited and length == 21:
            message = "have 21 tokens, but max_position_embeddings is 20: truncate them to 20 tokens, or resize"
            with pytest.raises(ValueError, match=message):
                model(**inputs)
        else:
            assert not model(**inputs)[0].isnan().any()


@every_encoder
@pytest.mark.parametrize("wrong", [20, -1])
def test_positions_out_of_range(name, wrong):
    """Row, position and value, where they are read."""
    limited = encoders.card(name).maximum_length is not None
    model = small(name, "masked-lm", **({"max_position_embeddings": 20} if limited else {}))
    inputs = inputs_of(make_batch("masked-lm"))
    positions = torch.arange(12).repeat(3, 1)
    positions[2, 7] = wrong
    if not limited:
        assert model(**inputs, position_ids=positions).logits.isfinite().any()
        return
    for packing, place in (False, r"position_ids\[2, 7\]"), (True, "one of position_ids"):
        model.trunk.packing = packing
        message = rf"^{place} is {wrong}; allowed: 0 \.\. 19 \(max_position_embeddings is 20\)"
        with pytest.raises(ValueError, match=message):
            model(**inputs, position_ids=positions)


@every_encoder
@every_model
@pytest.mark.parametrize("packing", [True, False])
def test_positions_at_padding_mean_nothing(name, task, packing):
    """Whatever stands there, packed or not."""
    model, inputs = small(name, task), inputs_of(make_batch(task))
    model.packing = packing
    padding = inputs["attention_mask"] == 0
    results = []
    for filler in (0, -1, 10**6):
        positions = torch.arange(12).expand(padding.shape).masked_fill(padding, filler)
        with torch.no_grad():
            results.append(real(predictions(model(**inputs, position_ids=positions)), inputs["attention_mask"]))
    for result in results[1:]:
        assert_close(result, results[0])


@every_encoder
@every_model
def test_a_refused_call_changes_nothing(name, task):
    """The next call gives what it would have given without it."""
    model, batch = small(name, task), make_batch(task)
    with torch.no_grad():
        expected = model(**batch)[0]
        with pytest.raises(ValueError, match="attention_mask holds 7"):
            model(**{**batch, "attention_mask": batch["attention_mask"] * 7})
        assert torch.equal(model(**batch)[0], expected)


@every_encoder
def test_unknown_backend(name):
    model = small(name, None)
    model.config._attn_implementation = "flash"
    with pytest.raises(ValueError, match=r"flash.* is not supported by these encoders; allowed: ") as caught:
        model(**inputs_of(make_batch(None)))
    assert all(backend in str(caught.value) for backend in ("auto", *BACKENDS))


@every_encoder
@every_model
def test_switching_the_backend(name, task):
    """At run time, on bare models too; an unknown name changes nothing."""
    model = small(name, task)
    for backend in BACKENDS:
        model.set_attn_implementation(backend)
        assert model.config._attn_implementation == backend
    with pytest.raises(ValueError, match="foo"):
        model.set_attn_implementation("foo")
    assert model.config._attn_implementation in BACKENDS


@every_encoder
@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"hidden_size": "128"}, "expected int, got str"),
        ({"hidden_size": 130}, "hidden_size 130 is not a multiple of num_attention_heads 4"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0; it must be at least 1"),
        ({"vocab_size": True}, "expected int, got bool"),
        ({"pooling": "max"}, "pooling is 'max'; allowed: mean, cls"),
        ({"problem_type": "regresion"}, "problem_type 'regresion' is not known.*Did you mean 'regression'"),
        ({"hidden_dropout_prob": 1.5}, "is 1.5; a probability between 0 and 1"),
        ({"num_label": 2}, "has no field 'num_label'. Did you mean 'num_labels'"),
    ],
)
def test_wrong_configurations(name, overrides, message):
    with pytest.raises(encoders.ConfigurationError, match=message):
        encoders.create(name, **overrides)
