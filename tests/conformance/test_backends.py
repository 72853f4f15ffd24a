"""Every attention backend gives the same predictions, asked for as transformers asks for one."""

from __future__ import annotations

import pytest
import torch

from encoders_shared.attention import BACKENDS, flex
from tests.support import ALL_TASKS, NANO, assert_close, make_batch, make_model, predictions, real

pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


@pytest.mark.parametrize("name", NANO)
@pytest.mark.parametrize("task", ALL_TASKS)
@pytest.mark.parametrize("packing", [True, False])
def test_same_predictions(name, task, packing):
    model, batch = make_model(name, task), make_batch(task)
    model.trunk.packing = packing
    found = {}
    for backend in BACKENDS:
        model.set_attn_implementation(backend)
        with torch.no_grad():
            found[backend] = real(predictions(model(**batch)), batch["attention_mask"])
    for backend, values in found.items():
        assert_close(values, found["eager"], 1e-5, backend)


@pytest.mark.parametrize("name", NANO)
@pytest.mark.parametrize("packing", [True, False])
def test_flex_makes_one_mask_for_all_layers(name, packing, monkeypatch):
    model, make, made = make_model(name, None, "flex"), flex._block_mask, []
    monkeypatch.setattr(flex, "_block_mask", lambda *given: made.append(make(*given)) or made[-1])
    model.packing = packing
    with torch.no_grad():
        model(**make_batch(None))
    assert model.config.num_hidden_layers > 1
    assert len(made) == 1


@pytest.mark.parametrize("name", NANO)
def test_the_default_has_transformers_name(name):
    model = make_model(name, None, backend="tiled")
    model.set_attn_implementation("auto")
    assert model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("name", NANO)
def test_training_in_tiles_keeps_nothing_of_length_by_length(name):
    length = 300  # more than any layer is wide
    model, kept = make_model(name, None, backend="tiled").train(), []

    def note(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tuple(tensor.shape))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        model(input_ids=torch.full((1, length), 120))
    assert kept
    assert [shape for shape in kept if shape.count(length) > 1] == []


@pytest.mark.parametrize("name", NANO)
def test_gradients_of_gradients(name):
    """A penalty on the gradient of the embeddings, through the default backend and the written-out one."""
    found = []
    for backend in ("eager", "tiled"):
        model = make_model(name, None, backend)
        embeds = model.get_input_embeddings()(make_batch(None)["input_ids"]).detach().requires_grad_()
        states = model(inputs_embeds=embeds).last_hidden_state
        (first,) = torch.autograd.grad(states.square().sum(), embeds, create_graph=True)
        found.append(torch.autograd.grad(first.square().sum(), embeds)[0])
    assert_close(found[1], found[0], 1e-4)
