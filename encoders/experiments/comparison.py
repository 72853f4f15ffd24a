"""The main job: one task, several backbones, several seeds."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from encoders.experiments.backbones import Backbone, prepare_backbones
from encoders.experiments.baselines import baseline_runs
from encoders.experiments.data import LabelledTexts
from encoders.experiments.docstrings import docstrings
from encoders.experiments.errors import ExperimentError
from encoders.experiments.labelling import labelled_texts
from encoders.experiments.metrics import quality, score
from encoders.experiments.progress import ProgressDisplay
from encoders.experiments.provenance import circumstances, facts, notes
from encoders.experiments.report import outcome
from encoders.experiments.results import Comparison
from encoders.experiments.runs import Run, RunFolder
from encoders.experiments.saving import save
from encoders.experiments.settings import BACKBONES, Settings
from encoders.experiments.tables import read_table
from encoders.experiments.training import fine_tune, quiet_transformers


def compare(
    backbones: Sequence[str] = BACKBONES,
    *,
    data: str | Path | LabelledTexts | None = None,
    text_column: str = "text",
    label_column: str = "label",
    split_column: str | None = None,
    task: str | None = None,
    seeds: int = Settings.seeds,
    epochs: int = Settings.epochs,
    batch_size: int = Settings.batch_size,
    learning_rate: float | None = Settings.learning_rate,
    max_length: int | None = Settings.max_length,
    pooling: str | None = Settings.pooling,
    output: str | Path | None = None,
    console: Console | None = None,
) -> Comparison:
    """Fine-tune several backbones on the same task with several seeds, and compare them.

    Args:
        backbones: names from `encoders.list_encoders`, which start from fresh weights with one tokenizer for all, and
            checkpoint folders or hub ids, which bring their weights and tokenizers.
        data: a .csv or .jsonl file, data that is already read, or None for the built-in docstrings.
        text_column: holds the texts.
        label_column: holds the classes, or the numbers to regress on.
        split_column: says train, dev (or validation, valid, val) or test; None for the column "split" if there is one,
            and for a split by hash otherwise.
        task: "classification" or "regression"; None to tell from the labels.
        seeds: how many runs each backbone gets; their seeds are 0, 1, ...
        epochs: passes over the training split.
        batch_size: rows in a training step.
        learning_rate: the peak; None for the usual one of fresh or of trained weights.
        max_length: tokens at which texts are truncated; None to refuse texts longer than a backbone was made for.
        pooling: "mean" or "cls" for all backbones; None for what each was published with.
        output: folder for the results and the finished runs, from which an interrupted comparison goes on; None to
            write nothing.
        console: where to report what happens; None to be silent.

    Raises:
        ExperimentError: the comparison cannot be run as asked; nothing has been written.
    """
    settings = Settings(seeds, epochs, batch_size, learning_rate, max_length, pooling)
    console = Console(quiet=True) if console is None else console
    folder = None if output is None else Path(output)
    texts = _read(data, text_column, label_column, split_column, task)
    with quiet_transformers():
        prepared = prepare_backbones(list(backbones), texts, settings)
        finished = RunFolder(folder and folder / "runs", circumstances(texts, settings))
        finished.check()
        remarks = notes(texts, settings, prepared)
        for remark in remarks:
            console.print(remark, soft_wrap=True)
        baselines = baseline_runs(texts)
        for run in baselines:
            console.print(outcome(texts.task, run), soft_wrap=True)
        runs = tuple(_runs(prepared, texts, settings, finished, console))
    everything_else = {**facts(texts, settings, prepared), "notes": remarks}
    comparison = Comparison(texts.name, texts.task, runs, baselines, everything_else)
    if folder is not None:
        save(comparison, folder)
    return comparison


def _read(
    data: str | Path | LabelledTexts | None,
    text_column: str,
    label_column: str,
    split_column: str | None,
    task: str | None,
) -> LabelledTexts:
    given = (text_column, label_column, split_column, task) != ("text", "label", None, None)
    if data is None or isinstance(data, LabelledTexts):
        if given:
            raise ExperimentError("columns and a task can be chosen for a data file only: give --data FILE")
        return docstrings() if data is None else data
    path = Path(data)
    return labelled_texts(
        read_table(path),
        name=path.name,
        text_column=text_column,
        label_column=label_column,
        split_column=split_column,
        task=task,
    )


def _runs(
    backbones: Sequence[Backbone],
    data: LabelledTexts,
    settings: Settings,
    finished: RunFolder,
    console: Console,
) -> Iterator[Run]:
    plan = [(backbone, seed) for backbone in backbones for seed in range(settings.seeds)]
    kept = [finished.find(backbone.name, seed, backbone.sha256) for backbone, seed in plan]
    with ProgressDisplay(console, runs=len(plan)) as progress:
        for (backbone, seed), found in zip(plan, kept, strict=True):
            if found is None:
                run = _train(backbone, seed, data, settings, progress)
                finished.keep(run)
                progress.finish_run(outcome(data.task, run))
            else:
                run = found
                progress.finish_run(f"{outcome(data.task, run)}, finished earlier")
            yield run


def _train(backbone: Backbone, seed: int, data: LabelledTexts, settings: Settings, progress: ProgressDisplay) -> Run:
    def scores(outputs: np.ndarray, labels: np.ndarray) -> dict[str, float]:
        if not np.isfinite(outputs).all():
            raise ExperimentError(
                f"{backbone.name}, seed {seed} diverged: its outputs are not finite; lower --learning-rate"
            )
        return score(data.task, data.read_labels(labels), data.read_outputs(outputs))

    start = time.perf_counter()
    predicted = fine_tune(
        backbone.new_model,
        backbone.texts.examples,
        backbone.tokenizer,
        quality=lambda outputs, labels: quality(data.task, scores(outputs, labels)),
        seed=seed,
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        learning_rate=settings.peak_learning_rate(pretrained=backbone.pretrained),
        callbacks=[progress.steps_of(f"{backbone.name}, seed {seed}")],
    )
    by_split = {split: scores(outputs, labels) for split, (outputs, labels) in predicted.items()}
    return Run(backbone.name, seed, by_split, seconds=time.perf_counter() - start, sha256=backbone.sha256)
