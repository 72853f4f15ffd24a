"""`encoders card NAME`: the facts of one encoder."""

import json
from typing import Annotated

import typer

from encoders.cli.errors import one_line_errors


def show_card(
    name: Annotated[str, typer.Argument(help="A name from `encoders list`.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the facts of an encoder: sizes, lengths, positions, tasks, paper, published weights."""
    import encoders

    with one_line_errors(ValueError):
        card = encoders.card(name)
        typer.echo(json.dumps(card.to_dict(), indent=2, ensure_ascii=False) if as_json else str(card))
