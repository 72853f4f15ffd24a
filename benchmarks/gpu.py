"""For a GPU: do all attention backends give there what the CPU gives, and how fast are they?

    python -m benchmarks.gpu [--device cuda] [--families ...] [--backends ...] [--minutes 4]

First the states and the gradients of each family, on each backend, padded and packed, in float32 and bfloat16, are
compared with those of the written-out backend on the CPU in float32. Then all of them are timed, in turn, next to their
peers; the ratio is their time divided by that of our model as it comes: above 1, ours is faster. Once the minutes are
over, no further check or timing begins. Exit code 1 means that not all was checked, a backend failed, or it departs by
more than the tolerance. `--device cpu` does the same at tiny sizes, to try the script.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TypeVar

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

Item = TypeVar("Item")
STEPS = {"inference": infer, "training": train}


@dataclass(frozen=True)
class Size:
    """How much to do on a kind of device."""

    layers: int
    rounds: int
    checked: Shape
    timed: tuple[str, ...]


SIZES = {
    "cuda": Size(2, 5, Shape(4, 300, 0.5), ("8 x 128", "32 x 128 ragged", "4 x 512")),
    "cpu": Size(1, 1, Shape(3, 24, 0.5), ("1 x 32",)),
}


def main(words: list[str] | None = None) -> None:
    """Check, time, print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=list(SIZES))
    parser.add_argument("--families", nargs="+", default=list(PRESETS), choices=list(PRESETS), metavar="FAMILY")
    parser.add_argument("--backends", nargs="+", default=list(BACKENDS), choices=list(BACKENDS), metavar="BACKEND")
    parser.add_argument("--minutes", type=float, default=4.0)
    given = parser.parse_args(words)
    if given.device == "cuda" and not torch.cuda.is_available():
        sys.exit("There is no GPU here that torch can use; `--device cpu` tries the script at tiny sizes.")
    start = time.monotonic()
    end = start + 60 * given.minutes
    transformers.logging.set_verbosity_error()
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(0)
    device, size = torch.device(given.device), SIZES[given.device]
    console = Console(width=None if sys.stdout.isatty() else 140)
    print(torch.cuda.get_device_name() if given.device == "cuda" else "CPU", f"torch {torch.__version__}", sep=", ")

    parity = Table("family", "backend", "batch", "format", "states", "gradients", "", box=None)
    wanted, agreeing = 4 * len(given.families) * len(given.backends), 0  # padded and packed, in two formats
    all_checks = checks(given.families, given.backends, size, device)
    for row, agrees in tqdm(in_time(all_checks, end), desc="checks", total=wanted, disable=None):
        parity.add_row(*row)
        agreeing += agrees
    console.print(parity)

    speed = Table("family", "format", "batch x length", "mode", "model", "ratio", "ms", box=None)
    cells, timed = in_order(given.families, given.backends, size), 0
    for backends, family, *cell in tqdm(in_time(iter(cells), end), desc="timings", total=len(cells), disable=None):
        for row in timings(models(family, backends, size, device), *cell, size.rounds, device):
            speed.add_row(family, *row)
        timed += 1
    console.print(speed)
    print(f"{agreeing} of {wanted} combinations agree with the CPU, {wanted - parity.row_count} were not reached.")
    print(f"{timed} of {len(cells)} timings were reached, in {time.monotonic() - start:.0f} seconds altogether.")
    sys.exit(0 if agreeing == wanted else 1)


def in_time(work: Iterator[Item], end: float) -> Iterator[Item]:
    """Yield what is worked out on demand, and ask for no more once the time is over."""
    while time.monotonic() < end:
        try:
            yield next(work)
        except StopIteration:
            return


def case_of(family: str, size: Size) -> Case:
    """Return a case of these sizes; the last shape is the longest, which sets the size of the position table."""
    return Case(family, size.timed[-1], "inference", ["ours"], size.layers, size.rounds, threads=1, folder="")


def groups(backends: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Part the backends from flex, whose turn comes last, as nearly every case of it is compiled anew."""
    return tuple(name for name in backends if name != "flex"), tuple(name for name in backends if name == "flex")


def checks(
    families: Sequence[str], backends: Sequence[str], size: Size, device: torch.device
) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Check all combinations; yield a row for each, and whether it agrees with the CPU."""
    for group, family in product(filter(None, groups(backends)), families):
        for row, agrees in check(case_of(family, size), size.checked, group, device):
            yield (family, *row), agrees


def in_order(families: Sequence[str], backends: Sequence[str], size: Size) -> list[tuple]:
    """Return what is timed: backends, family, format, shape and mode. Flex has no dropout, so it is not trained."""
    others, flex = groups(backends)
    order = list(product([others], families, TOLERANCES, size.timed, STEPS))
    return order + list(product(filter(None, [flex]), families, TOLERANCES, size.timed, ["inference"]))


@dataclass(frozen=True)
class Entry:
    """A model to time; if it is ours, with its backend and packing."""

    model: nn.Module
    backend: str = "auto"
    packing: bool | None = None

    def set(self, dtype: torch.dtype) -> nn.Module:
        """Return the model as it is to be timed; entries share one."""
        if isinstance(self.model, Trunk):
            self.model.set_attn_implementation(self.backend)
            self.model.packing = self.packing
        return self.model.to(dtype)


@lru_cache(maxsize=1)
def models(family: str, backends: tuple[str, ...], size: Size, device: torch.device) -> dict[str, Entry]:
    """Build what is timed, by name: ours as it comes, then on each backend, padded and packed, and the peers."""
    case = case_of(family, size)
    model = ours(case).to(device)
    found = {"ours": Entry(model)}
    for backend in backends:
        if backend != "sdpa":  # which ours takes on a GPU
            found[backend] = Entry(model, backend, packing=False)
        found[f"{backend}, packed"] = Entry(model, backend, packing=True)
    for peer in STANDARD_PEERS if "flex" not in backends else ():
        if peer != "onnxruntime" and not missing(peer) and fits(peer, family, "training"):
            found[peer] = Entry(build_module(peer, case).to(device))
    return found


def timings(
    entries: dict[str, Entry], dtype: torch.dtype, shape: str, mode: str, rounds: int, device: torch.device
) -> Iterator[tuple[str, ...]]:
    """Time models in turn, after two runs of each to warm up; yield a row for each."""
    batch = {name: values.to(device) for name, values in SHAPES[shape].batch(vocab_size=78).items()}
    names = str(dtype).removeprefix("torch."), shape, mode
    finish = torch.cuda.synchronize if device.type == "cuda" else lambda: None  # a GPU runs behind the program
    times: dict[str, list[float]] = {}
    for name, entry in entries.items():
        if name.endswith("packed") and SHAPES[shape].fill == 1:
            continue
        try:
            for _ in range(2):
                STEPS[mode](entry.set(dtype), batch)
            times[name] = []
        except Exception as error:
            yield *names, name, reason(error), ""
    for _, name in product(range(rounds), times):
        model = entries[name].set(dtype)
        finish()
        start = time.perf_counter()
        STEPS[mode](model, batch)
        finish()
        times[name].append(time.perf_counter() - start)
    for name in times:
        ratios = [theirs / ours for theirs, ours in zip(times[name], times.get("ours", ()), strict=False)]
        ratio = f"{statistics.median(ratios):.2f}" if ratios else ""
        yield *names, name, ratio, f"{1e3 * statistics.median(times[name]):.2f}"


if __name__ == "__main__":
    main()
