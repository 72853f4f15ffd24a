"""Fine-tuning one backbone with one seed, by transformers' Trainer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (
    DataCollatorWithPadding,
    EvalPrediction,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)
from transformers.utils import logging

from encoders.experiments.settings import WARMUP, WEIGHT_DECAY
from encoders.experiments.splits import HELD_OUT


def fine_tune(
    build: Callable[[], PreTrainedModel],
    examples: Mapping[str, list[dict[str, Any]]],
    tokenizer: PreTrainedTokenizerBase,
    *,
    quality: Callable[[np.ndarray, np.ndarray], float],
    seed: int,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    callbacks: Sequence[TrainerCallback] = (),
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Train a model and return its outputs and the labels, in the same order, for dev and test.

    AdamW; the learning rate rises for a tenth of the steps and then falls to zero, both linearly. Batches are of texts
    of like length, padded to the longest. Dev is scored after every epoch, and the weights of the best one are kept, in
    a temporary folder that is gone afterwards.

    Args:
        build: makes the model; called after the seed is set, so that fresh weights follow from it.
        examples: input ids, attention mask and label of each row, by split.
        tokenizer: pads the batches.
        quality: from outputs and labels to a number that is highest for the best epoch.
        seed: of the weights, the order of the rows and the dropout.
        epochs: passes over the training split.
        batch_size: rows in a step; twice as many in evaluation.
        learning_rate: the peak.
        callbacks: told about every step.
    """

    def compute_metrics(predicted: EvalPrediction) -> dict[str, float]:
        return {"quality": quality(np.asarray(predicted.predictions), np.asarray(predicted.label_ids))}

    set_seed(seed)
    model = build()
    with TemporaryDirectory() as folder:
        trainer = Trainer(
            model=model,
            args=TrainingArguments(
                output_dir=folder,
                seed=seed,
                num_train_epochs=epochs,
                per_device_train_batch_size=batch_size,
                per_device_eval_batch_size=2 * batch_size,
                learning_rate=learning_rate,
                lr_scheduler_type="linear",
                warmup_steps=WARMUP,
                weight_decay=WEIGHT_DECAY,
                train_sampling_strategy="group_by_length",
                dataloader_pin_memory=torch.cuda.is_available(),
                eval_strategy="epoch",
                save_strategy="best",
                save_only_model=True,
                save_total_limit=1,
                load_best_model_at_end=True,
                metric_for_best_model="quality",
                greater_is_better=True,
                logging_strategy="no",
                report_to="none",
                disable_tqdm=True,
                remove_unused_columns=False,
            ),
            train_dataset=cast(Dataset, examples["train"]),
            eval_dataset=cast(Dataset, examples["dev"]),
            data_collator=DataCollatorWithPadding(tokenizer),
            compute_metrics=compute_metrics,
            callbacks=list(callbacks),
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        outputs = {split: trainer.predict(cast(Dataset, examples[split])) for split in HELD_OUT}
    return {split: (np.asarray(output.predictions), np.asarray(output.label_ids)) for split, output in outputs.items()}


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence transformers' own bars and reports, one for each model made, while a comparison shows its progress."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
