"""One signature, one kind of output, for every encoder and task."""

from __future__ import annotations

import inspect

import pytest
import torch

from tests.support import ALL_TASKS, NANO, SMALL, inputs_of, make_batch, make_model, predictions

COMMON = ["input_ids", "attention_mask", "token_type_ids", "position_ids", "head_mask", "inputs_embeds"]
ENDING = ["output_attentions", "output_hidden_states", "return_dict"]
OWN = {None: ["packed_output"], "masked-lm": ["logits_for"]}
LABELS = {None: [], "question-answering": ["start_positions", "end_positions"]}
SHAPES = {
    "masked-lm": (3, 12, SMALL["vocab_size"]),
    "sequence-classification": (3, SMALL["num_labels"]),
    "token-classification": (3, 12, SMALL["num_labels"]),
    "question-answering": (3, 12, 2),
    "multiple-choice": (3, 3),
}

every_model = pytest.mark.parametrize("task", ALL_TASKS)
every_encoder = pytest.mark.parametrize("name", NANO)


@every_encoder
@every_model
def test_signature(name, task):
    parameters = list(inspect.signature(make_model(name, task).forward).parameters)
    assert parameters == COMMON + LABELS.get(task, ["labels"]) + ENDING + OWN.get(task, []) + ["options"]


@every_encoder
@every_model
def test_shapes_and_loss(name, task):
    model = make_model(name, task)
    with torch.no_grad():
        output = model(**make_batch(task))
    expected = SHAPES.get(task, (3, 12, model.config.hidden_size))
    assert tuple(predictions(output).shape) == expected
    if task is None:
        assert tuple(output.pooler_output.shape) == (3, model.config.hidden_size)
    else:
        assert output.loss.dim() == 0
        assert output.loss.isfinite()
        assert output.loss > 0


@every_encoder
@every_model
def test_hidden_states_and_attentions(name, task):
    model = make_model(name, task)
    batch = make_batch(task)
    rows = batch["attention_mask"].flatten(0, -2).shape[0]
    heads, layers = model.config.num_attention_heads, model.config.num_hidden_layers
    with torch.no_grad():
        output = model(**inputs_of(batch), output_hidden_states=True, output_attentions=True)
        bare = model.base_model if task and model.base_model is not model else None
    assert len(output.hidden_states) == layers + 1
    assert all(tuple(state.shape) == (rows, 12, model.config.hidden_size) for state in output.hidden_states)
    assert len(output.attentions) == layers
    mask = batch["attention_mask"].flatten(0, -2).bool()
    for weights in output.attentions:
        assert tuple(weights.shape) == (rows, heads, 12, 12)
        assert torch.allclose(weights.sum(-1), torch.ones(()), atol=1e-5)
        assert not weights.masked_select(~mask[:, None, None, :]).any()
    if task is None:
        assert output.hidden_states[-1] is output.last_hidden_state
    if bare is not None:
        flat = {key: value.flatten(0, -2) for key, value in inputs_of(batch).items()}
        assert torch.allclose(output.hidden_states[-1][mask], bare(**flat).last_hidden_state[mask], atol=1e-5)


@every_encoder
@every_model
def test_states_and_attentions_only_when_asked_for(name, task):
    model = make_model(name, task)
    with torch.no_grad():
        output = model(**inputs_of(make_batch(task)))
        model.config.output_hidden_states = True
        configured = model(**inputs_of(make_batch(task)))
    assert output.hidden_states is None
    assert output.attentions is None
    assert configured.hidden_states is not None


@every_encoder
@every_model
@pytest.mark.parametrize("packing", [False, True])
def test_chosen_states(name, task, packing):
    """As all of them are, each in its place; what else is returned stays the same."""
    model = make_model(name, task)
    model.trunk.packing = packing
    batch = inputs_of(make_batch(task))
    with torch.no_grad():
        every, chosen = (model(**batch, output_hidden_states=wanted) for wanted in (True, [0, -2]))
    kept = (0, len(every.hidden_states) - 2)
    assert len(chosen.hidden_states) == len(every.hidden_states)
    for number, (state, expected) in enumerate(zip(chosen.hidden_states, every.hidden_states, strict=True)):
        assert torch.equal(state, expected) if number in kept else state is None
    assert torch.equal(predictions(chosen), predictions(every))


@every_encoder
@every_model
def test_tuples(name, task):
    model = make_model(name, task)
    batch = make_batch(task)
    with torch.no_grad():
        output = model(**batch, output_hidden_states=True)
        as_tuple = model(**batch, output_hidden_states=True, return_dict=False)
    assert isinstance(as_tuple, tuple)
    names = list(output)
    assert names[-1] == "hidden_states"
    first = {None: ["last_hidden_state", "pooler_output"], "question-answering": ["loss", "start_logits", "end_logits"]}
    assert names[:-1] == first.get(task, ["loss", "logits"])
    for value, name in zip(as_tuple[:-1], names, strict=False):
        assert torch.equal(value, output[name])
    assert len(as_tuple[-1]) == 4


@every_encoder
@every_model
def test_embeddings_in_place_of_ids(name, task):
    model = make_model(name, task)
    inputs = inputs_of(make_batch(task))
    with torch.no_grad():
        expected = predictions(model(**inputs))
        embeds = model.get_input_embeddings()(inputs.pop("input_ids"))
        assert torch.equal(predictions(model(inputs_embeds=embeds, **inputs)), expected)


@every_encoder
@every_model
def test_token_types_are_ignored(name, task):
    model = make_model(name, task)
    inputs = inputs_of(make_batch(task))
    with torch.no_grad():
        with_types = model(**inputs, token_type_ids=torch.ones_like(inputs["input_ids"]))
        assert torch.equal(predictions(with_types), predictions(model(**inputs)))


@every_encoder
def test_pooling_is_a_choice(name):
    inputs = inputs_of(make_batch(None, lengths=(6, 3)))
    for pooling in ("mean", "cls"):
        model = make_model(name, None, pooling=pooling)
        with torch.no_grad():
            output = model(**inputs)
        states, mask = output.last_hidden_state, inputs["attention_mask"][:, :, None]
        expected = states[:, 0] if pooling == "cls" else (states * mask).sum(1) / mask.sum(1)
        assert torch.allclose(output.pooler_output, expected, atol=1e-6)


@every_encoder
@pytest.mark.parametrize("task", ["sequence-classification", "multiple-choice"])
def test_pooling_reaches_the_heads(name, task):
    inputs = inputs_of(make_batch(task))
    with torch.no_grad():
        mean, cls = (predictions(make_model(name, task, pooling=pooling)(**inputs)) for pooling in ("mean", "cls"))
    assert not torch.allclose(mean, cls, atol=1e-3)
