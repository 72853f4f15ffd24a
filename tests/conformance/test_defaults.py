"""Places where a default of ours must not change what a caller sees."""

import pytest
import torch

import encoders
from tests.support import NANO, assert_close, inputs_of, make_batch, make_model, real

every_encoder = pytest.mark.parametrize("name", NANO)


@every_encoder
@pytest.mark.parametrize("backend", ["sdpa", "tiled"])
def test_attentions_as_configured(name, backend, tmp_path):
    model = make_model(name, None, backend, output_attentions=True)
    assert len(model(**inputs_of(make_batch(None))).attentions) == model.config.num_hidden_layers
    model.save_pretrained(tmp_path)
    loaded = encoders.load(tmp_path)
    assert loaded.config.output_attentions
    loaded.config.output_attentions = False
    loaded.config.output_attentions = True
    assert loaded(**inputs_of(make_batch(None))).attentions


@every_encoder
@pytest.mark.parametrize("task", ["token-classification", "masked-lm"])
def test_labels_at_padding_count_packed_or_not(name, task):
    batch = make_batch(task, (12, 3, 4))
    batch["labels"] = batch["labels"].masked_fill(batch["labels"] == -100, batch["labels"].max())
    losses = []
    for packing in (None, True, False):
        model = make_model(name, task)
        model.trunk.packing = packing
        losses.append(model(**batch).loss)
    assert torch.equal(losses[0], losses[2])
    assert torch.equal(losses[1], losses[2])


@every_encoder
def test_gradients_of_hidden_states(name):
    output = make_model(name, None)(**inputs_of(make_batch(None)), output_hidden_states=True)
    for gradient in torch.autograd.grad(output.last_hidden_state.square().sum(), output.hidden_states):
        assert gradient.any()


@every_encoder
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
def test_traced(name):
    """A traced graph holds no lengths of the batch it was traced with."""
    model = make_model(name, None, return_dict=False)
    first = inputs_of(make_batch(None))
    with torch.no_grad():
        traced = torch.jit.trace(model, (first["input_ids"], first["attention_mask"]), check_trace=False)
        for lengths in [(12, 9, 5), (7, 3), (4, 17, 20)]:
            other = inputs_of(make_batch(None, lengths))
            mask = other["attention_mask"]
            actual, expected = traced(other["input_ids"], mask)[0], model(**other)[0]
            assert_close(real(actual, mask), real(expected, mask), 1e-5)
