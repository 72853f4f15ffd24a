"""`encoders inspect SOURCE`: what is in a checkpoint."""

import json
from typing import Annotated

import typer

from encoders.cli.errors import one_line_errors


def inspect(
    source: Annotated[str, typer.Argument(help="A checkpoint folder or hub id.")],
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit on the hub.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Tell what a checkpoint is: family, layout, size, types, and what would be missing for each task.

    Only headers are read, so it takes no time for large files either.
    """
    with one_line_errors(ValueError):
        from encoders.checkpoints.inspection import inspect_checkpoint

        found = inspect_checkpoint(source, revision=revision)
    typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False) if as_json else str(found))
