"""transformers' Trainer on every family: the losses of a loop by hand, and training that goes on where it stopped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel, Trainer, TrainingArguments

import encoders
from encoders.family import TASKS
from tests.ecosystem.folders import FAMILIES
from tests.support import make_batch, make_model, predictions

every_family = pytest.mark.parametrize("family", FAMILIES)
RATE, CLIP = 1e-4, 1.0


def nano(family: str, task: str, dropout: float | None = None) -> PreTrainedModel:
    """A small model, always with the same weights."""
    (name,) = encoders.list_encoders("*-nano", family=family)
    fields = encoders.create(name).config.to_dict()
    quiet = {} if dropout is None else {key: dropout for key in fields if "dropout" in key}
    return make_model(name, task, **quiet)


def rows_of(task: str, number: int = 12, seed: int = 1) -> list[dict[str, torch.Tensor]]:
    """Rows of different lengths, padded to the same one, with labels."""
    lengths = (12, *np.random.default_rng(seed).integers(4, 13, number - 1).tolist())
    batch = make_batch(task, lengths, seed)
    return [{name: values[row] for name, values in batch.items()} for row in range(number)]


def trainer_of(model: PreTrainedModel, folder, task: str, **options: Any) -> Trainer:
    """A Trainer that takes three rows at a time, or `rows`, at a constant rate."""
    compute_metrics = options.pop("compute_metrics", None)
    arguments = TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=options.pop("rows", 3),
        per_device_eval_batch_size=5,
        learning_rate=RATE,
        lr_scheduler_type="constant",
        max_grad_norm=CLIP,
        use_cpu=True,
        seed=3,
        logging_steps=1,
        report_to="none",
        disable_tqdm=True,
        **options,
    )
    return Trainer(
        model, arguments, train_dataset=rows_of(task), eval_dataset=rows_of(task, 8, 2), compute_metrics=compute_metrics
    )


def logged(trainer: Trainer, name: str) -> list[float]:
    return [entry[name] for entry in trainer.state.log_history if name in entry]


@every_family
@pytest.mark.parametrize("task", TASKS)
def test_losses_are_those_of_a_loop_by_hand(family, task, tmp_path):
    """Over all rows at once, so that the order in which the Trainer takes them is no matter."""
    trainer = trainer_of(nano(family, task, dropout=0.0), tmp_path, task, max_steps=3, rows=12, save_strategy="no")
    trainer.train()

    model = nano(family, task, dropout=0.0).train()
    rows = rows_of(task)
    batch = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0)
    losses = []
    for _ in range(3):
        loss = model(**batch).loss
        losses.append(loss.item())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad()
    np.testing.assert_allclose(logged(trainer, "loss"), losses, rtol=1e-5)
    assert losses[-1] < losses[0]


@every_family
def test_accumulated_gradients(family, tmp_path):
    """Four times three rows are twelve: the loss isn't divided twice."""
    task, losses = "sequence-classification", []
    for rows, accumulated in ((12, 1), (3, 4)):
        options = {"rows": rows, "gradient_accumulation_steps": accumulated, "max_steps": 3, "save_strategy": "no"}
        trainer = trainer_of(nano(family, task, dropout=0.0), tmp_path, task, **options)
        trainer.train()
        losses.append(logged(trainer, "loss"))
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)


@every_family
@pytest.mark.parametrize("task", TASKS)
def test_evaluation(family, task, tmp_path):
    """Outputs of all rows, in their order, and the mean loss of the batches, weighted by their rows."""
    model = nano(family, task)
    trainer = trainer_of(model, tmp_path, task)
    outputs = trainer.predict(trainer.eval_dataset)
    rows = trainer.eval_dataset
    parts, losses = [], []
    with torch.no_grad():
        for part in (rows[:5], rows[5:]):
            output = model(**{name: torch.stack([row[name] for row in part]) for name in part[0]})
            parts.append(predictions(output))
            losses.append(output.loss.item())
    found = outputs.predictions
    found = np.stack(found, axis=-1) if isinstance(found, tuple) else found
    np.testing.assert_allclose(found, torch.cat(parts), rtol=1e-5, atol=1e-5)
    expected = (5 * losses[0] + 3 * losses[1]) / 8
    assert outputs.metrics["test_loss"] == pytest.approx(expected, rel=1e-5)
    assert trainer.evaluate()["eval_loss"] == pytest.approx(expected, rel=1e-5)


@every_family
def test_it_goes_on_where_it_stopped(family, tmp_path):
    """From a checkpoint in the middle of an epoch, with dropout: bit for bit as without the stop."""
    task = "sequence-classification"
    options = {"max_steps": 6, "save_steps": 3, "save_strategy": "steps"}
    through = trainer_of(nano(family, task), tmp_path, task, **options)
    through.train()
    again = trainer_of(nano(family, task), tmp_path, task, **options)
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    assert logged(again, "loss") == logged(through, "loss")
    expected, weights = through.model.state_dict(), again.model.state_dict()
    before = nano(family, task).state_dict()
    assert any(not torch.equal(before[name], value) for name, value in expected.items())
    for name, value in expected.items():
        assert torch.equal(weights[name], value), name


@every_family
def test_the_best_model_is_loaded_at_the_end(family, tmp_path):
    """The second of three, by a metric of our own; saved, it loads as any other."""
    task, scores = "token-classification", iter([0.1, 0.9, 0.2])
    trainer = trainer_of(
        nano(family, task),
        tmp_path,
        task,
        max_steps=3,
        eval_strategy="steps",
        eval_steps=1,
        save_strategy="steps",
        save_steps=1,
        load_best_model_at_end=True,
        metric_for_best_model="quality",
        compute_metrics=lambda predicted: {"quality": next(scores)},
    )
    trainer.train()
    assert logged(trainer, "eval_quality") == [0.1, 0.9, 0.2]
    trainer.save_model(str(tmp_path / "best"))
    best, second, third = (
        encoders.load(tmp_path / folder, task=task).state_dict() for folder in ("best", "checkpoint-2", "checkpoint-3")
    )
    assert any(not torch.equal(second[name], third[name]) for name in best)
    for name, value in best.items():
        assert torch.equal(second[name], value), name
