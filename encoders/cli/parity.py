"""`encoders parity A B`: do two models compute the same, and if not, from which layer on?"""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from encoders.cli.errors import one_line_errors
from encoders.experiments.errors import MissingExtraError

DEPARTED = 1
_SIDE = "A name from `encoders list`, a checkpoint folder or hub id, or transformers:FOLDER."
_REVISION = "Branch, tag or commit on the hub."
_TYPES = "float64, float32, bfloat16 or float16."
_BACKEND = "Attention backend: auto (sdpa is its other name), eager, tiled or flex; for transformers: eager or sdpa."


def parity(
    a: Annotated[str, typer.Argument(help=f"The model to trust. {_SIDE}")],
    b: Annotated[str, typer.Argument(help="The model to check, likewise.")],
    inputs: Annotated[
        Path | None, typer.Option(help="Texts, one on each line.", show_default="random ids, with padding")
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="The task of the models, or bare.", show_default="that of the head that both have"),
    ] = None,
    tolerance: Annotated[float, typer.Option(help="Largest relative difference that counts as agreement.")] = 1e-5,
    seed: Annotated[int, typer.Option(help="For the weights of names, and for random ids.")] = 0,
    revision_a: Annotated[str | None, typer.Option(help=_REVISION)] = None,
    revision_b: Annotated[str | None, typer.Option(help=_REVISION)] = None,
    dtype_a: Annotated[str | None, typer.Option(help=_TYPES, show_default="as stored")] = None,
    dtype_b: Annotated[str | None, typer.Option(help=_TYPES, show_default="as stored")] = None,
    backend_a: Annotated[str | None, typer.Option(help=_BACKEND, show_default="auto")] = None,
    backend_b: Annotated[str | None, typer.Option(help=_BACKEND, show_default="auto")] = None,
    device_a: Annotated[str, typer.Option(help="cpu, cuda, ...")] = "cpu",
    device_b: Annotated[str, typer.Option(help="cpu, cuda, ...")] = "cpu",
    plot: Annotated[Path | None, typer.Option(help="Draw the differences by depth, a .png, .svg or .pdf file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare two models layer by layer on the same batch.

    A name stands for random weights, the same on both sides. `transformers:FOLDER` loads a folder with transformers'
    own class, where there is one; code in a folder is never run. Exit code: 0 the models agree, 1 they depart, 2 they
    can't be compared.
    """
    with one_line_errors(ValueError, TypeError, RuntimeError, OSError, MissingExtraError):
        if plot is not None and find_spec("matplotlib") is None:
            raise MissingExtraError("a plot needs matplotlib: install with pip install 'encoder-zoo[plot]'")

        from encoders.agreement import difference_figure
        from encoders.agreement import parity as compare
        from encoders.cli.models import describe, load_side, make_inputs, open_named

        first, second = open_named(a, revision_a), open_named(b, revision_b)
        if task is None and first.head == second.head:
            task = first.head
        elif task == "bare":
            task = None
        batch, origin = make_inputs((first, second), inputs, task, seed)
        models = [
            load_side(a, first, task, seed, dtype_a, backend_a, device_a),
            load_side(b, second, task, seed, dtype_b, backend_b, device_b),
        ]
        report = compare(models[0], models[1], batch, tolerance=tolerance)
        sides = [describe(*facts) for facts in zip((a, b), (first, second), models, strict=True)]
        if plot is not None:
            difference_figure(report, title=f"{a} and {b}").savefig(plot)
    if as_json:
        facts = {"a": sides[0], "b": sides[1], "task": task, "inputs": origin, **report.to_dict()}
        typer.echo(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        for label, side in zip("AB", sides, strict=True):
            typer.echo(f"{label}: {', '.join(side.values())}")
        typer.echo(f"{task or 'bare'}; {origin}\n{report}")
    if not report.agree:
        raise typer.Exit(DEPARTED)
