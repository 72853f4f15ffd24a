"""How exact the encoders are in each number format: errors against float64.

    python -m benchmarks.precision [--families ...] [--layers 2]

States and gradients of a ragged batch, on every backend that has gradients on a CPU: the length of the difference to
those of the same weights in float64, as a share of their length. Softmax, norms and losses are computed in at least
float32 whatever the format.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product

import torch
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from benchmarks.cases import PRESETS, Case, Shape
from benchmarks.parity import difference, spread, states_and_gradients
from benchmarks.peers import ours
from benchmarks.run import positive

FORMATS = (torch.float32, torch.float16, torch.bfloat16)
BACKENDS = ("eager", "auto", "tiled")
SHAPE = Shape(4, 48, 0.6)


def errors(family: str, layers: int) -> Iterator[tuple[str, str, float, float]]:
    """Yield format, backend, and the errors of states and of gradients."""
    case = Case(family, "8 x 128", "training", ["ours"], layers, 1, 1, "")
    torch.manual_seed(0)
    weights = spread(ours(case)).state_dict()
    batch = SHAPE.batch(vocab_size=78)

    def run(dtype: torch.dtype, backend: str) -> tuple[torch.Tensor, torch.Tensor]:
        model = ours(case, attn_implementation=backend)
        model.load_state_dict(weights)
        return states_and_gradients(model.to(dtype), batch, packed=False)

    exact = run(torch.float64, "eager")
    for dtype, backend in product(FORMATS, BACKENDS):
        states, gradients = (difference(*pair) for pair in zip(run(dtype, backend), exact, strict=True))
        yield str(dtype).removeprefix("torch."), backend, states, gradients


def main(words: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", default=list(PRESETS), choices=list(PRESETS), metavar="FAMILY")
    parser.add_argument("--layers", type=positive, default=2)
    given = parser.parse_args(words)
    table = Table("family", "format", "backend", "states", "gradients", box=None)
    for family in tqdm(given.families, disable=None):
        for dtype, backend, states, gradients in errors(family, given.layers):
            table.add_row(family, dtype, backend, f"{states:.1e}", f"{gradients:.1e}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
