"""Gradients: checkpointing, frozen parts, dropout, one step downhill."""

from __future__ import annotations

import pytest
import torch

import encoders
from tests.support import ALL_TASKS, NANO, loss_of, make_batch, make_model

every_encoder = pytest.mark.parametrize("name", NANO)
every_model = pytest.mark.parametrize("task", ALL_TASKS)

NO_DROPOUT = {
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "classifier_dropout": 0.0,
    "ngie_dropout": 0.0,
    "seq_classif_dropout": 0.0,
    "qa_dropout": 0.0,
}


def make_quiet_model(name, task):
    """A model in training mode without dropout."""
    config = make_model(name, None).config
    return make_model(name, task, **{field: 0.0 for field in NO_DROPOUT if hasattr(config, field)}).train()


def gradients_of(model, batch):
    model.zero_grad()
    loss_of(model(**batch), batch["attention_mask"]).backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}


@every_encoder
@every_model
@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("frozen", [True, False])
def test_gradient_checkpointing(name, task, reentrant, frozen):
    model, batch = make_quiet_model(name, task), make_batch(task)
    if frozen:
        model.get_input_embeddings().requires_grad_(False)
    expected = gradients_of(model, batch)
    model.activation_checkpointing_enable({"use_reentrant": reentrant})
    if reentrant:
        model.enable_input_require_grads()
    assert model.is_activation_checkpointing
    actual = gradients_of(model, batch)
    assert actual.keys() == expected.keys()
    largest = max(gradient.abs().max() for gradient in expected.values())
    for parameter, gradient in expected.items():
        assert (actual[parameter] - gradient).abs().max().item() <= 5e-6 * largest.item(), parameter


@every_encoder
@every_model
def test_every_parameter_has_a_gradient(name, task):
    """Except those that the card says have none: absolute positions without, the last table under, the EMD."""
    model = make_model(name, task)
    gradients = gradients_of(model, make_batch(task))
    without = {parameter for parameter, _ in model.named_parameters()} - gradients.keys()
    by_design = {"position_embeddings.weight"} if task != "masked-lm" else {"layers.2.self_attn.rel_embeddings.weight"}
    allowed = {one for one in without if name == "helmbert-nano" and any(one.endswith(end) for end in by_design)}
    assert without == allowed


@every_encoder
@every_model
def test_dropout_is_active_in_training_alone(name, task):
    model, batch = make_model(name, task), make_batch(task)
    with torch.no_grad():
        assert torch.equal(model(**batch)[0], model(**batch)[0])
        model.train()
        assert not torch.equal(model(**batch)[0], model(**batch)[0])


@every_encoder
@pytest.mark.parametrize("task", [task for task in ALL_TASKS if task])
def test_it_learns_one_batch(name, task):
    torch.manual_seed(0)
    model = encoders.create(name, task=task, vocab_size=140, num_labels=3)
    model.eval()  # without dropout the loss must go down
    batch = make_batch(task)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(12):
        optimiser.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
