"""`encoders compare`: the same task, several backbones, several seeds, one table."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from encoders.cli.errors import one_line_errors
from encoders.experiments.errors import ExperimentError, MissingExtraError
from encoders.experiments.settings import BACKBONES, Settings

INTERRUPTED = 130
FILE_WIDTH = 150
"""How wide the table may be where no terminal says so."""


def compare(
    backbones: Annotated[
        str,
        typer.Option(help="Names from `encoders list` (fresh weights), checkpoint folders or hub ids, with commas."),
    ] = ",".join(BACKBONES),
    data: Annotated[
        Path | None,
        typer.Option(help="A .csv or .jsonl file.", show_default="docstrings of installed packages"),
    ] = None,
    text_column: Annotated[str, typer.Option(help="The column of the texts.")] = "text",
    label_column: Annotated[str, typer.Option(help="The column of the classes or numbers to predict.")] = "label",
    split_column: Annotated[
        str | None,
        typer.Option(
            help="The column that says train, dev or test.", show_default="split if there is one, else by hash"
        ),
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="classification or regression.", show_default="told from the labels")
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many runs each backbone gets.")] = Settings.seeds,
    epochs: Annotated[int, typer.Option(help="Passes over the training split.")] = Settings.epochs,
    batch_size: Annotated[int, typer.Option(help="Rows in a training step.")] = Settings.batch_size,
    learning_rate: Annotated[
        float | None,
        typer.Option(help="The peak learning rate.", show_default="one for fresh, another for trained weights"),
    ] = Settings.learning_rate,
    max_length: Annotated[
        int | None,
        typer.Option(help="Truncate texts to so many tokens.", show_default="refuse over-long texts"),
    ] = Settings.max_length,
    pooling: Annotated[
        str | None, typer.Option(help="mean or cls, for all backbones.", show_default="as each was published")
    ] = Settings.pooling,
    output: Annotated[
        Path | None, typer.Option(help="The folder for the results.", show_default="runs/NAME OF THE DATA")
    ] = None,
) -> None:
    """Fine-tune the same task on several backbones with several seeds, and compare them.

    An interrupted comparison goes on from its finished runs when the same command is given again.
    """
    folder = output or Path("runs") / (data.stem if data else "docstrings")
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console.width = FILE_WIDTH
    with one_line_errors(ExperimentError, MissingExtraError):
        from encoders.experiments import compare as run_comparison
        from encoders.experiments.report import score_table

        try:
            comparison = run_comparison(
                [name.strip() for name in backbones.split(",") if name.strip()],
                data=data,
                text_column=text_column,
                label_column=label_column,
                split_column=split_column,
                task=task,
                seeds=seeds,
                epochs=epochs,
                batch_size=batch_size,
                learning_rate=learning_rate,
                max_length=max_length,
                pooling=pooling,
                output=folder,
                console=console,
            )
        except KeyboardInterrupt:
            typer.echo(f"interrupted: finished runs are in {folder}; the same command goes on from there", err=True)
            raise typer.Exit(INTERRUPTED) from None
    console.print(score_table(comparison))
    console.print(f"{folder}: results.csv, results.json, scores.png")
