"""Masked-LM training that scores labelled tokens alone: the same loss and gradients, less work."""

from __future__ import annotations

import pytest
import torch

from tests.support import NANO, assert_close, make_batch, make_model

every_encoder = pytest.mark.parametrize("name", NANO)


def sparse_batch() -> dict[str, torch.Tensor]:
    """Every third token has a label."""
    batch = make_batch("masked-lm")
    batch["labels"][:, torch.arange(12) % 3 != 0] = -100
    return batch


@every_encoder
@pytest.mark.parametrize("packing", [True, False])
def test_same_loss_and_gradients(name, packing):
    results = []
    for logits_for in ("all", "labelled"):
        model = make_model(name, "masked-lm")
        model.trunk.packing = packing
        output = model(**sparse_batch(), logits_for=logits_for)
        output.loss.backward()
        results.append((output, {n: p.grad for n, p in model.named_parameters() if p.grad is not None}))
    (full, expected), (labelled, actual) = results
    assert_close(labelled.loss, full.loss, 1e-6)
    assert_close(labelled.logits, full.logits[sparse_batch()["labels"] != -100], 1e-6)
    assert actual.keys() == expected.keys()
    largest = max(gradient.abs().max() for gradient in expected.values())
    for parameter, gradient in expected.items():
        assert (actual[parameter] - gradient).abs().max() <= 1e-6 * largest, parameter


@every_encoder
def test_the_decoder_sees_labelled_tokens_alone(name):
    seen, model, batch = [], make_model(name, "masked-lm"), sparse_batch()
    model.get_output_embeddings().register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].shape[:-1]))
    model(**batch, logits_for="labelled")
    assert seen == [((batch["labels"] != -100).sum().item(),)]


@every_encoder
def test_compiled(name):
    """In one graph, although the number of labelled tokens is not known in advance."""
    model, batch = make_model(name, "masked-lm"), sparse_batch()
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
        assert_close(compiled(**batch, logits_for="labelled").loss, model(**batch, logits_for="labelled").loss, 1e-6)


@every_encoder
def test_nothing_labelled(name):
    model, batch = make_model(name, "masked-lm"), sparse_batch()
    batch["labels"].fill_(-100)
    output = model(**batch, logits_for="labelled")
    assert output.logits.shape == (0, model.config.vocab_size)
    assert output.loss.item() == 0
    output.loss.backward()


@every_encoder
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"logits_for": "some"}, "logits_for is 'some'; allowed: 'all', 'labelled'"),
        ({"logits_for": "labelled", "labels": None}, "logits_for='labelled' needs labels"),
        (
            {"logits_for": "labelled", "labels": torch.zeros(3, 5).long()},
            r"labels have shape \[3, 5\]; expected \[3, 12\]",
        ),
    ],
)
def test_refusals(name, changes, message):
    with pytest.raises(ValueError, match=message):
        make_model(name, "masked-lm")(**{**sparse_batch(), **changes})
