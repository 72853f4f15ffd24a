"""What changes for me if I replace one encoder by another?"""

from __future__ import annotations

import os
from collections.abc import Iterable

from encoders.sides import open_side
from encoders.swap.facts import input_lines, output_lines, weight_lines
from encoders.swap.report import SwapLine, SwapReport
from encoders.swap.speed import speed_lines
from encoders.swap.texts import TokenizerSource, open_reader, text_lines

__all__ = ["SwapLine", "SwapReport", "swap_report"]


def swap_report(
    a: str | os.PathLike[str],
    b: str | os.PathLike[str],
    *,
    texts: Iterable[str] = (),
    length: int | None = None,
    revision_a: str | None = None,
    revision_b: str | None = None,
    tokenizer_a: TokenizerSource | None = None,
    tokenizer_b: TokenizerSource | None = None,
    measure: bool = False,
) -> SwapReport:
    """Say what changes if encoder `a` is replaced by `b`, and what has to be done about it.

    Args:
        a: the encoder in use: a name from `encoders.list_encoders`, a folder or a hub id.
        b: the one to take its place.
        texts: some of your texts, to measure tokens per word, unknown tokens and truncation; empty ones are left out.
        length: your maximum length in tokens; by default each encoder's own.
        revision_a: branch, tag or commit of the first one on the hub.
        revision_b: likewise, for the second.
        tokenizer_a: the first one's tokenizer, or the folder it is in; by default that of the folder `a`. The tokenizer
            of a name comes with its weights, so it has to be given.
        tokenizer_b: likewise, for the second.
        measure: time a forward pass of both; a full-sized model takes some seconds.

    Returns:
        The points in which they differ or agree, each with what to do.

    Raises:
        TypeError: the texts are one string.
        ValueError: there is no encoder of this name, it is a preset and has a revision, or the length is not positive.
        CheckpointError: a folder can't be read.
    """
    if isinstance(texts, str):
        raise TypeError("texts is one string; a list of strings is needed, such as [text].")
    if length is not None and length < 1:
        raise ValueError(f"length is {length}; at least 1 token is needed.")
    first, second = open_side(a, revision_a), open_side(b, revision_b)
    texts = [text for text in texts if text.strip()]
    readers = open_reader(first, tokenizer_a, texts), open_reader(second, tokenizer_b, texts)
    lines = (
        *text_lines(*readers, (first, second), length),
        *input_lines(first, second, length),
        *output_lines(first, second),
        *weight_lines(first, second),
        *speed_lines(first, second, length, measure),
    )
    return SwapReport(first.title, second.title, lines)
