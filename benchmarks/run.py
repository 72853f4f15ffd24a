"""How fast the encoders are, next to others on the same batches.

    python -m benchmarks.run [--families ...] [--shapes ...] [--peers ...] [--modes ...] [--processes 5] [--rounds 5]

Every figure is a ratio: processor time of the other model divided by ours, both run in turn in one process. Above 1,
ours is faster. Each repetition is a fresh process; the median over them and the extremes are shown. Models have the
published widths and few layers, since all layers are alike. The published implementations take part where the folder
named by ENCODERS_REFERENCE holds them.

Shapes are batches, rows x length, or sets of them: standard, fill, length, long. What the result file holds already,
with the same settings and the same code, is not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from benchmarks.cases import MODES, PRESETS, SETS, SHAPES, Case, shape_names
from benchmarks.peers import PEERS, STANDARD_PEERS, fits, missing
from benchmarks.results import ROOT, Results, summarise


def arguments() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choices: dict[str, tuple[list[str], list[str]]] = {  # allowed, default
        "families": (list(PRESETS), list(PRESETS)),
        "shapes": ([*SHAPES, *SETS], ["standard"]),
        "peers": (list(PEERS), STANDARD_PEERS),
        "modes": (list(MODES), list(MODES)),
    }
    for name, (allowed, default) in choices.items():
        parser.add_argument(f"--{name}", nargs="+", default=default, choices=allowed, metavar=name[:-1].upper())
    for name, default in {"processes": 5, "rounds": 5, "layers": 2, "threads": 1}.items():
        parser.add_argument(f"--{name}", type=positive, default=default)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results", help="folder of the results")
    parser.add_argument("--name", default="standard", help="name of the result file in it")
    return parser


def positive(word: str) -> int:
    """Read a whole number of at least 1."""
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def main(words: list[str] | None = None) -> None:
    """Measure every case that is not in the result file yet, and print the table."""
    given = arguments().parse_args(words)
    excuses = [excuse for peer in given.peers if (excuse := missing(peer))]
    print(*excuses, sep="\n", end="\n" if excuses else "")
    peers = [peer for peer in given.peers if not missing(peer)]
    results = Results(given.output / f"{given.name}.json")
    with TemporaryDirectory() as folder:
        wanted = list(cases(given, peers, folder))
        for case in tqdm(wanted, desc="cases", disable=None):
            if not results.find(case, given.processes):
                results.add(measure(case, given.processes))
    show([record for case in wanted if (record := results.find(case, given.processes))])
    print(f"Results: {results.file}. Figures: python -m benchmarks.plot {results.file.parent}")


def cases(given: argparse.Namespace, peers: list[str], folder: str) -> Iterator[Case]:
    """Yield what is to be measured; a case without a peer still says how fast ours is."""
    for family in given.families:
        for shape in shape_names(given.shapes):
            for mode in given.modes:
                models = ["ours", *(peer for peer in peers if fits(peer, family, mode))]
                yield Case(family, shape, mode, models, given.layers, given.rounds, given.threads, folder)


def measure(case: Case, processes: int) -> dict[str, Any]:
    """Run a case in fresh processes, one after the other; for memory, one for each model."""
    parts = [replace(case, models=[name]) for name in case.models] if case.mode.endswith("memory") else [case]
    repeated = tqdm([part for _ in range(processes) for part in parts], leave=False, disable=None)
    repeated.set_description(f"{case.family}, {case.shape}, {case.mode}")
    return summarise(case, processes, [child(part) for part in repeated])


def child(case: Case) -> dict[str, Any]:
    """Run one measuring process.

    Raises:
        RuntimeError: it failed; with the end of what it said.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": str(case.threads)}
    if case.mode.endswith(
        "memory"
    ):  # freed tensors go back to the system, so that the peak is of what is needed at once
        environment["MALLOC_MMAP_THRESHOLD_"] = "65536"
    command = [sys.executable, "-m", "benchmarks.measure", json.dumps(asdict(case))]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"measuring {case} failed with exit code {done.returncode}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def show(records: list[dict[str, Any]]) -> None:
    """Print the records as a table."""
    table = Table("family", "batch x length", "mode", "model", "ratio", "tokens/s", "of peak", "MB", box=None)
    for record in records:
        for name in record["models"]:
            spread, speed = record.get("ratios", {}).get(name), record.get("speed", {}).get(name)
            memory = record.get("memory_megabytes", {}).get(name)
            table.add_row(
                *(record[field] for field in ("family", "shape", "mode")),
                name,
                record["unable"].get(name) or (spread and "{median:.2f} ({lowest:.2f}-{highest:.2f})".format(**spread)),
                speed and f"{speed['tokens_per_second']:.0f}",
                speed and f"{speed['share_of_peak']:.2f}",
                memory and f"{memory:.0f}",
            )
    Console(width=None if sys.stdout.isatty() else 140).print(table)


if __name__ == "__main__":
    main()
