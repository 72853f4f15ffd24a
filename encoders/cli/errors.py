"""How a command ends when it cannot do what was asked: one line, and exit code 2."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

USAGE_ERROR = 2


@contextmanager
def one_line_errors(*kinds: type[Exception]) -> Iterator[None]:
    """Print errors of these kinds as one line on standard error and exit with code 2."""
    try:
        yield
    except kinds as error:
        typer.echo(f"error: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(USAGE_ERROR) from error
