"""What an encoder does not take, and what it says then."""

from __future__ import annotations

import pytest
import torch

import encoders
from tests.support import ALL_TASKS, NANO, inputs_of, make_batch, make_model

every_encoder = pytest.mark.parametrize("name", NANO)
every_model = pytest.mark.parametrize("task", ALL_TASKS)


@every_encoder
@every_model
def test_unknown_keyword(name, task):
    model = make_model(name, task)
    with pytest.raises(TypeError, match=r"unknown keyword 'atention_mask'. Did you mean 'attention_mask'"):
        model(**inputs_of(make_batch(task)), atention_mask=torch.ones(3, 12))


@every_encoder
def test_labels_for_a_bare_model(name):
    with pytest.raises(TypeError, match="unknown keyword 'labels'"):
        make_model(name, None)(**inputs_of(make_batch(None)), labels=torch.tensor([0, 1, 2]))


@every_encoder
@every_model
def test_ids_and_embeddings(name, task):
    model = make_model(name, task)
    inputs = inputs_of(make_batch(task))
    embeds = model.get_input_embeddings()(inputs["input_ids"])
    with pytest.raises(ValueError, match="exactly one of input_ids and inputs_embeds; got both"):
        model(**inputs, inputs_embeds=embeds)
    with pytest.raises(ValueError, match="exactly one of input_ids and inputs_embeds; got neither"):
        model(attention_mask=inputs["attention_mask"])


@every_encoder
@pytest.mark.parametrize("wrong", [140, -1, 10**6])
def test_ids_out_of_range(name, wrong):
    inputs = inputs_of(make_batch(None))
    inputs["input_ids"][1, 3] = wrong
    with pytest.raises(ValueError, match=rf"input_ids\[1, 3\] is {wrong}; allowed: 0 .. 139 \(the vocabulary"):
        make_model(name, None)(**inputs)


@every_encoder
@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (torch.ones(3, 12), TypeError, "input_ids must be integers, got torch.float32"),
        (torch.ones(12, dtype=torch.long), ValueError, r"input_ids have shape \[12\]; expected \[batch, length\]"),
        (torch.ones(3, 0, dtype=torch.long), ValueError, "length 0; at least one token"),
    ],
)
def test_wrong_ids(name, ids, error, message):
    with pytest.raises(error, match=message):
        make_model(name, None)(input_ids=ids)


@every_encoder
def test_wrong_embeddings(name):
    model = make_model(name, None)
    with pytest.raises(ValueError, match=r"inputs_embeds have shape \[3, 12, 5\]; expected \[batch, length, 128\]"):
        model(inputs_embeds=torch.ones(3, 12, 5))
    with pytest.raises(TypeError, match=r"inputs_embeds must be floating-point numbers, got torch.int64"):
        model(inputs_embeds=torch.ones(3, 12, 128, dtype=torch.long))


@every_encoder
@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.tensor([[0.0, float("-inf")]] * 3).repeat(1, 6), "attention_mask holds -inf; allowed are 0"),
        (torch.ones(3, 11), r"attention_mask has shape \[3, 11\], which does not fit batch 3 and length 12"),
        (torch.ones(12), "attention_mask has 1 dimensions"),
        (torch.ones(3, 4, 12, 12), r"attention_mask has shape \[3, 4, 12, 12\]"),
    ],
)
def test_wrong_masks(name, mask, message):
    inputs = inputs_of(make_batch(None))
    with pytest.raises(ValueError, match=message):
        make_model(name, None)(input_ids=inputs["input_ids"], attention_mask=mask)


@every_encoder
def test_wrong_position_ids(name):
    with pytest.raises(ValueError, match=r"position_ids have shape \[3, 5\]; expected \[3, 12\]"):
        make_model(name, None)(**inputs_of(make_batch(None)), position_ids=torch.zeros(3, 5, dtype=torch.long))


@every_encoder
def test_multiple_choice_needs_choices(name):
    with pytest.raises(ValueError, match=r"\[batch, choices, length\], got shape \[3, 12\]"):
        make_model(name, "multiple-choice")(**inputs_of(make_batch(None)))


@every_encoder
def test_length_beyond_the_limit(name):
    """A clear error where the card says so, an answer everywhere else."""
    card = encoders.card(name)
    ids = torch.full((1, 520), 120)
    masked_lm = make_model(name, "masked-lm")
    if card.maximum_length is None:
        assert masked_lm(input_ids=ids).logits.isfinite().any()
    else:
        with pytest.raises(ValueError, match="520 tokens, but max_position_embeddings is 512: truncate"):
            masked_lm(input_ids=ids)
    if "any length" in card.beyond_maximum:
        assert make_model(name, None)(input_ids=ids).last_hidden_state.isfinite().all()


@every_encoder
def test_unknown_backend(name):
    model = make_model(name, None)
    model.config._attn_implementation = "flash"
    with pytest.raises(ValueError, match=r"attention backend 'flash' is not supported .* allowed: eager, sdpa"):
        model(**inputs_of(make_batch(None)))


@every_encoder
def test_flags(name):
    with pytest.raises(TypeError, match=r"output_hidden_states must be True or False, got \[0, 2\]"):
        make_model(name, None)(**inputs_of(make_batch(None)), output_hidden_states=[0, 2])


@every_encoder
@every_model
def test_switching_the_backend(name, task):
    """At run time, on bare models too; an unknown name changes nothing."""
    model = make_model(name, task)
    for backend in ("eager", "sdpa"):
        model.set_attn_implementation(backend)
        assert model.config._attn_implementation == backend
    with pytest.raises(ValueError, match="foo"):
        model.set_attn_implementation("foo")


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
