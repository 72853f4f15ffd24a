"""For a GPU: do all attention backends give there what the CPU gives, and how fast are they?

    python -m benchmarks.gpu [--device cuda] [--families ...] [--backends ...]

First the states and the gradients of each family, on each backend, padded and packed, in float32 and bfloat16, are
compared with those of the written-out backend on the CPU in float32. Then all of them are timed, in turn, next to their
peers; the ratio is their time divided by that of our model as it comes: above 1, ours is faster. It takes a few
minutes. Exit code 1 means that a backend failed or departs by more than the tolerance. `--device cpu` does the same at
tiny sizes, to try the script.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import torch
import transformers
from rich.console import Console
from rich.table import Table
from torch import nn
from tqdm import tqdm

from benchmarks.cases import PRESETS, SHAPES, Case, Shape
from benchmarks.measure import infer, reason, train
from benchmarks.parity import TOLERANCES, check
from benchmarks.peers import STANDARD_PEERS, build_module, fits, missing, ours
from encoders_shared.attention import BACKENDS
from encoders_shared.model import Trunk


@dataclass(frozen=True)
class Size:
    """How much to do on a kind of device."""

    layers: int
    rounds: int
    checked: Shape
    timed: tuple[str, ...]


SIZES = {
    "cuda": Size(2, 10, Shape(4, 300, 0.5), ("8 x 128", "32 x 128 ragged", "4 x 512")),
    "cpu": Size(1, 1, Shape(3, 24, 0.5), ("1 x 32",)),
}


def main(words: list[str] | None = None) -> None:
    """Check, time, print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=list(SIZES))
    parser.add_argument("--families", nargs="+", default=list(PRESETS), choices=list(PRESETS), metavar="FAMILY")
    parser.add_argument("--backends", nargs="+", default=list(BACKENDS), choices=list(BACKENDS), metavar="BACKEND")
    given = parser.parse_args(words)
    if given.device == "cuda" and not torch.cuda.is_available():
        sys.exit("There is no GPU here that torch can use; `--device cpu` tries the script at tiny sizes.")
    transformers.logging.set_verbosity_error()
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(0)
    device, size = torch.device(given.device), SIZES[given.device]
    console = Console(width=None if sys.stdout.isatty() else 140)
    print(torch.cuda.get_device_name() if given.device == "cuda" else "CPU", f"torch {torch.__version__}", sep=", ")

    parity = Table("family", "backend", "batch", "format", "states", "gradients", "", box=None)
    failures = 0
    for family in tqdm(given.families, desc="checks", disable=None):
        for row, agrees in check(
            case_of(family, size, size.timed[0], "inference"), size.checked, given.backends, device
        ):
            parity.add_row(family, *row)
            failures += not agrees
    console.print(parity)

    speed = Table("family", "batch x length", "mode", "format", "model", "ratio", "ms", box=None)
    cases = [case_of(*one) for one in product(given.families, (size,), size.timed, ("inference", "training"))]
    for case, dtype in tqdm(list(product(cases, TOLERANCES)), desc="timings", disable=None):
        for row in timings(case, dtype, given.backends, device):
            speed.add_row(case.family, case.shape, case.mode, str(dtype).removeprefix("torch."), *row)
    console.print(speed)
    print(f"{failures} of {parity.row_count} combinations fail or depart from the CPU.")
    sys.exit(1 if failures else 0)


def case_of(family: str, size: Size, shape: str, mode: str) -> Case:
    """Return a case of these sizes."""
    return Case(family, shape, mode, ["ours"], size.layers, size.rounds, threads=1, folder="")


def timings(
    case: Case, dtype: torch.dtype, backends: Sequence[str], device: torch.device
) -> Iterator[tuple[str, str, str]]:
    """Time the models of a case in turn, after two runs of each to warm up; yield name, ratio and milliseconds."""
    step = train if case.mode == "training" else infer
    batch = {name: values.to(device) for name, values in SHAPES[case.shape].batch(vocab_size=78).items()}
    steps: dict[str, Callable[[], None]] = {}
    for name, make in models(case, backends).items():
        steps[name] = partial(step, make().to(device, dtype), batch)
        try:
            steps[name]()
            steps[name]()
        except Exception as error:
            del steps[name]
            yield name, reason(error), ""
    times: dict[str, list[float]] = {name: [] for name in steps}
    finish = torch.cuda.synchronize if device.type == "cuda" else lambda: None  # a GPU runs behind the program
    for _ in range(case.rounds):
        for name in steps:
            finish()
            start = time.perf_counter()
            steps[name]()
            finish()
            times[name].append(time.perf_counter() - start)
    for name in steps:
        ratios = [theirs / ours for theirs, ours in zip(times[name], times.get("ours", ()), strict=False)]
        ratio = f"{statistics.median(ratios):.2f}" if ratios else ""
        yield name, ratio, f"{1e3 * statistics.median(times[name]):.2f}"


def models(case: Case, backends: Sequence[str]) -> dict[str, Callable[[], nn.Module]]:
    """Return how to build what is timed, by name: ours as it comes, on each backend, packed, and the peers."""
    found: dict[str, Callable[[], nn.Module]] = {"ours": partial(ours, case)}
    for backend in backends:
        found[backend] = partial(ours, case, attn_implementation=backend)
        if SHAPES[case.shape].fill < 1:
            found[f"{backend}, packed"] = partial(packed, case, backend)
    for peer in STANDARD_PEERS:
        if peer != "onnxruntime" and not missing(peer) and fits(peer, case.family, case.mode):
            found[peer] = partial(build_module, peer, case)
    return found


def packed(case: Case, backend: str) -> nn.Module:
    """Build our model so that it always packs."""
    model = ours(case, attn_implementation=backend)
    assert isinstance(model, Trunk)
    model.packing = True
    return model


if __name__ == "__main__":
    main()
