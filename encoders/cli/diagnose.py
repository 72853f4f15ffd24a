"""`encoders diagnose SOURCE --text FILE`: which position projection was a NorBERT or LTG-BERT trained with?"""

from pathlib import Path
from typing import Annotated

import typer

from encoders.cli.errors import one_line_errors


def diagnose(
    source: Annotated[str, typer.Argument(help="A checkpoint folder or hub id, with its tokenizer.")],
    text: Annotated[Path, typer.Option(help="Sentences in the model's language, one on each line.")],
    lines: Annotated[int, typer.Option(min=1, help="How many lines to use.")] = 200,
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit on the hub.")] = None,
) -> None:
    """Compare the two position projections of NorBERT and LTG-BERT checkpoints on masked words.

    Their tensors look the same, and the wrong projection loads without a word and gives wrong numbers.
    """
    with one_line_errors(ValueError, OSError, TypeError):
        from encoders.checkpoints.checkpoint import load_model, open_checkpoint
        from encoders.loading import load_tokenizer
        from encoders.norbert import diagnose_projection

        texts = text.read_text(encoding="utf-8").splitlines()[:lines]
        model, report, _ = load_model(open_checkpoint(source, revision), "masked-lm", {})
        if report.missing:
            raise ValueError(f"{source} has no masked-LM head, so there is nothing to measure.")
        typer.echo(str(diagnose_projection(model, load_tokenizer(source, revision=revision), texts)))
