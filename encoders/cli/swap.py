"""`encoders swap A B`: what changes for me if I replace encoder A by B?"""

import json
from pathlib import Path
from typing import Annotated

import typer

from encoders.cli.errors import one_line_errors

_SIDE = "a name from `encoders list`, a checkpoint folder or hub id."
_REVISION = "Branch, tag or commit on the hub."
_TOKENIZER = "The folder with its tokenizer, where it is not that of the model."


def swap(
    a: Annotated[str, typer.Argument(help=f"The encoder in use: {_SIDE}")],
    b: Annotated[str, typer.Argument(help=f"The one to take its place: {_SIDE}")],
    text: Annotated[Path | None, typer.Option(help="Some of your texts, one on each line.")] = None,
    length: Annotated[
        int | None, typer.Option(min=1, help="Your maximum length in tokens.", show_default="each encoder's own")
    ] = None,
    revision_a: Annotated[str | None, typer.Option(help=_REVISION)] = None,
    revision_b: Annotated[str | None, typer.Option(help=_REVISION)] = None,
    tokenizer_a: Annotated[str | None, typer.Option(help=_TOKENIZER)] = None,
    tokenizer_b: Annotated[str | None, typer.Option(help=_TOKENIZER)] = None,
    measure: Annotated[bool, typer.Option("--measure", help="Time both; takes seconds for full models.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what changes if one encoder is replaced by another, and what has to be done about it."""
    with one_line_errors(ValueError, OSError):
        from encoders.swap import swap_report

        texts = [] if text is None else text.read_text(encoding="utf-8").splitlines()
        report = swap_report(
            a,
            b,
            texts=texts,
            length=length,
            revision_a=revision_a,
            revision_b=revision_b,
            tokenizer_a=tokenizer_a,
            tokenizer_b=tokenizer_b,
            measure=measure,
        )
    typer.echo(json.dumps(report.to_dict(), indent=2, ensure_ascii=False) if as_json else str(report))
