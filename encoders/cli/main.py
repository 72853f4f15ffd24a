"""The command-line application `encoders`: one file for each command."""

import typer

from encoders.cli.card import show_card
from encoders.cli.compare import compare
from encoders.cli.convert import convert
from encoders.cli.diagnose import diagnose
from encoders.cli.inspect import inspect
from encoders.cli.list import list_encoders
from encoders.cli.parity import parity
from encoders.cli.swap import swap

app = typer.Typer(
    name="encoders",
    help="Transformer encoders by name: look them up, compare them on a task, read published checkpoints.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("list")(list_encoders)
app.command("card")(show_card)
app.command("compare")(compare)
app.command("inspect")(inspect)
app.command("convert")(convert)
app.command("diagnose")(diagnose)
app.command("parity")(parity)
app.command("swap")(swap)
