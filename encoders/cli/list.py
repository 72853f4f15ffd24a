"""`encoders list`: the names of the encoders."""

from typing import Annotated

import typer

from encoders.cli.errors import one_line_errors


def list_encoders(
    pattern: Annotated[str | None, typer.Argument(help="Only names that match, with * and ?.")] = None,
    family: Annotated[str | None, typer.Option(help="Only this family: helmbert, norbert or distilbert.")] = None,
) -> None:
    """List the encoders that can be made by name."""
    import encoders

    with one_line_errors(ValueError):
        for name in encoders.list_encoders(pattern, family=family):
            typer.echo(name)
