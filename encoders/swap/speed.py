"""How fast two encoders are, measured in turn on the machine at hand."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import torch

from encoders.sides import Side
from encoders.swap.facts import more
from encoders.swap.report import SwapLine

ROWS, LENGTH, ROUNDS = 4, 128, 3


def speed_lines(a: Side, b: Side, length: int | None, measure: bool) -> Iterator[SwapLine]:
    """Yield the processor time of a forward pass on equally many tokens; with random weights, which cost the same."""
    columns = min(filter(None, (length or LENGTH, a.maximum_length, b.maximum_length)))
    topic = f"CPU seconds for {ROWS} x {columns} tokens"
    if not measure:
        yield SwapLine(topic, None, None, "pass measure=True (--measure) to measure it")
        return
    with torch.random.fork_rng():
        torch.manual_seed(0)
        models = [side.family.tasks[None](side.config).eval() for side in (a, b)]
        batches = [torch.randint(0, side.config.vocab_size, (ROWS, columns)) for side in (a, b)]
    seconds: list[list[float]] = [[], []]
    with torch.inference_mode():
        for _ in range(ROUNDS + 1):
            for model, ids, times in zip(models, batches, seconds, strict=True):
                start = time.process_time()
                model(input_ids=ids)
                times.append(time.process_time() - start)
    first, second = (statistics.median(times[1:]) for times in seconds)  # the first round warms up
    yield SwapLine(topic, first, second, more("time", first, second))
