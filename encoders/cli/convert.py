"""`encoders convert SOURCE TARGET`: write a checkpoint in another form."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from encoders.cli.errors import one_line_errors


class Form(StrEnum):
    """What can be written."""

    transformers = "transformers"
    upstream = "upstream"


def convert(
    source: Annotated[str, typer.Argument(help="A checkpoint folder or hub id.")],
    target: Annotated[Path, typer.Argument(help="A new folder.")],
    to: Annotated[
        Form, typer.Option(help="As save_pretrained writes, or as the family's own published code reads.")
    ] = Form.transformers,
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit on the hub.")] = None,
) -> None:
    """Write a checkpoint, with its head and its tokenizer, in another form.

    What its config.json leaves open is settled in the new one.
    """
    with one_line_errors(ValueError):
        from encoders.checkpoints.conversion import convert_checkpoint

        report, warnings = convert_checkpoint(source, target, to.value, revision=revision)
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)
    typer.echo(str(report))
    typer.echo(f"written to {target}")
