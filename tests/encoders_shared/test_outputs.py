"""What encoders return."""

import pytest
import torch
from torch import nn

from encoders_shared.config import EncoderConfig, typed_fields
from encoders_shared.model import BareModel
from encoders_shared.outputs import EncoderOutput, LayerTrace

EMBEDDED, FIRST, LAST = torch.zeros(1), torch.ones(1), torch.full((1,), 2.0)
WEIGHTS = torch.zeros(2), torch.ones(2)


def collected(states, attentions, **more):
    trace = LayerTrace((0, 1, 2) if states is True else states or (), attentions)
    trace.add(EMBEDDED)
    trace.add(FIRST, WEIGHTS[0])
    trace.add(LAST, WEIGHTS[1])
    return trace.output(LAST, **more)


def same(got, expected):
    return len(got) == len(expected) and all(a is b for a, b in zip(got, expected, strict=True))


@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize("attentions", [False, True])
def test_trace_keeps_what_is_wanted(states, attentions):
    output = collected(states, attentions)
    assert output.last_hidden_state is LAST
    assert output.pooler_output is None
    assert output.prediction_state is None
    assert same(output.hidden_states, (EMBEDDED, FIRST, LAST)) if states else output.hidden_states is None
    assert same(output.attentions, WEIGHTS) if attentions else output.attentions is None


def test_a_trace_holds_nothing_that_is_not_wanted():
    trace = LayerTrace(keep_states=(), keep_attentions=False)
    trace.add(FIRST, WEIGHTS[0])
    assert (trace.states, trace.attentions) == ([], [])


def test_two_traces_share_nothing():
    collected(True, True)
    assert len(collected(True, True).hidden_states) == 3


def test_prediction_state():
    assert collected(False, False, prediction_state=FIRST).prediction_state is FIRST


def test_names_and_order():
    names = ["last_hidden_state", "pooler_output", "hidden_states", "attentions", "prediction_state"]
    assert list(EncoderOutput(*(torch.zeros(1) for _ in names))) == names
    output = EncoderOutput(last_hidden_state=LAST, attentions=WEIGHTS)
    assert list(output) == ["last_hidden_state", "attentions"]  # what is None is left out
    assert output["last_hidden_state"] is output[0] is LAST


@pytest.mark.parametrize("states", [False, True])
def test_a_change_of_every_state(states):
    output = collected(states, False, prediction_state=FIRST).map_states(lambda state: state + 10)
    assert output.last_hidden_state == 12
    assert output.prediction_state == 11
    if states:
        assert output.hidden_states == (10, 11, 12)
        assert output.hidden_states[-1] is output.last_hidden_state
    else:
        assert output.hidden_states is None


def test_chosen_states():
    """None stands for the others; the last state is there whether it was chosen or not."""
    output = collected((1,), False)
    assert same(output.hidden_states, (None, FIRST, None))
    changed = output.map_states(lambda state: state + 10)
    assert changed.hidden_states == (None, 11, None)
    assert changed.last_hidden_state == 12


@typed_fields
class ToyConfig(EncoderConfig):
    model_type = "toy-outputs"

    vocab_size: int = 10
    hidden_size: int = 4
    num_hidden_layers: int = 2
    num_attention_heads: int = 1
    pooling: str = "mean"


class ToyModel(BareModel):
    """Two layers that add one."""

    config_class = ToyConfig
    word_embeddings = "words"

    def __init__(self, config):
        super().__init__(config)
        self.words = nn.Embedding(config.vocab_size, config.hidden_size)
        self.post_init()

    def encode_batch(self, inputs):
        trace, states = inputs.trace(), self.words(inputs.ids)
        trace.add(states)
        for _ in range(2):
            states = states + 1
            trace.add(states, states[:, None])
        return trace.output(states)


@pytest.mark.parametrize("asked", [{}, {"output_hidden_states": True}, {"output_attentions": True}])
def test_a_model_returns_the_fields_in_their_order(asked):
    """As everywhere in transformers: the pooled vector is the second, whatever else is asked for."""
    model, ids = ToyModel(ToyConfig()), torch.tensor([[1, 2, 3]])
    output = model(ids, **asked)
    assert list(output) == ["last_hidden_state", "pooler_output", *(name.removeprefix("output_") for name in asked)]
    as_tuple = model(ids, return_dict=False, **asked)
    assert torch.equal(as_tuple[0], output.last_hidden_state)
    assert torch.equal(as_tuple[1], output.last_hidden_state.mean(1))
