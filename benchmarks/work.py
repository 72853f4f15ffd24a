"""How much the encoders do, counted rather than timed, so that any machine can check it.

    python -m benchmarks.work [--update]

Counted over one forward pass, or a training step, of each small model, written out, as it chooses itself, and in tiles:
matrix products and their floating-point operations, bytes of all tensors made on the way, and among these the tensors
of length x length. The numbers are compared with those in benchmarks/expected_work.json; more work than there is an
error. After a change that is meant to do more or less, `--update` writes them anew.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import product
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

import encoders
from benchmarks.cases import Shape
from benchmarks.counter import Work, WorkCounter

EXPECTED = Path(__file__).with_name("expected_work.json")
ENCODERS = ("helmbert-nano", "norbert3-nano", "distilbert-nano")
MAY_MAKE_SQUARES = {"eager": True, "auto": False, "tiled": False}
LONG = Shape(1, 700)  # longer than any layer is wide: a tensor with two sides of 700 has one for queries, one for keys
RAGGED = Shape(6, 64, 0.4)
STEPS = {
    "inference 1 x 700": (False, LONG),
    "inference ragged": (False, RAGGED),
    "training 1 x 700": (True, LONG),
    "training ragged": (True, RAGGED),
}
TOLERANCES = {"bytes": 0.02}  # torch's kernels differ in what they set aside; all else must hold exactly


def count(name: str, backend: str, step: str) -> Work:
    """Count the work of one step of a small model."""
    training, shape = STEPS[step]
    overrides: dict[str, Any] = {"max_position_embeddings": 1_024} if name.startswith("distilbert") else {}
    model = encoders.create(name, attn_implementation=backend, **overrides).train(training)
    batch = shape.batch(vocab_size=78)
    counter = WorkCounter(LONG.length)
    with counter, torch.set_grad_enabled(training):  # inference mode would hide the products
        output = model(**batch)
        if training:
            output[0].sum().backward()
    return counter.work


def count_all() -> dict[str, Work]:
    """Count every model, registered backend and step."""
    wanted = list(product(ENCODERS, MAY_MAKE_SQUARES, STEPS))
    return {", ".join(one): count(*one) for one in tqdm(wanted, delay=2, disable=None)}


def faults(counted: dict[str, Work], expected: dict[str, Work]) -> list[str]:
    """Say where there is more work than expected, a line each."""
    lines = []
    for case, work in counted.items():
        if work["squares"] and not MAY_MAKE_SQUARES[case.split(", ")[1]]:
            lines.append(f"{case}: {work['squares']} tensors of length x length; this backend must make none.")
        if case not in expected:
            lines.append(f"{case}: no expected numbers; write them with `python -m benchmarks.work --update`.")
            continue
        for what, number in work.items():
            if number > expected[case][what] * (1 + TOLERANCES.get(what, 0)):
                growth = f"{number:,}, expected at most {expected[case][what]:,}"
                lines.append(f"{case}: more work: {what} {growth}.")
    return lines


def main(words: list[str] | None = None) -> None:
    """Count, and compare with the expected numbers or write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write what was counted as the expected numbers")
    update = parser.parse_args(words).update
    torch.set_num_threads(1)
    counted = count_all()
    if update:
        EXPECTED.write_text(json.dumps(counted, indent=1) + "\n", encoding="utf-8")
        print(f"{len(counted)} cases written to {EXPECTED}.")
    expected = json.loads(EXPECTED.read_text(encoding="utf-8"))
    found = faults(counted, expected)
    less = [case for case, work in counted.items() if case in expected and work != expected[case]]
    print(*found, sep="\n", end="\n" if found else "")
    if not found:
        print(f"{len(counted)} cases do no more work than expected; {len(less)} differ: --update keeps an improvement.")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
