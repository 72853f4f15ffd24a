"""Results: what a measurement gave, on which machine, in one readable file for each run."""

from __future__ import annotations

import hashlib
import json
import statistics
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.cases import PRESETS, SHAPES, Case
from benchmarks.flops import necessary_operations
from benchmarks.machine import machine
from encoders.registry import family_of, override

ROOT = Path(__file__).parents[1]


class Results:
    """The records of one file, written anew after each measurement, so that a run that was stopped goes on.

    Args:
        file: where the records are.

    Raises:
        ValueError: the file was written on another machine or with other versions.
    """

    def __init__(self, file: Path):
        self.file = file
        self.machine = machine()
        self.records: list[dict[str, Any]] = []
        if file.exists():
            written = json.loads(file.read_text(encoding="utf-8"))
            differing = [name for name in self.machine if written["machine"].get(name) != self.machine[name]]
            if differing:
                raise ValueError(
                    f"{file} was measured on another machine or with other versions ({', '.join(differing)}): "
                    "delete it, or choose another --output or --name."
                )
            self.records = written["records"]

    def find(self, case: Case, processes: int) -> dict[str, Any] | None:
        """Return the record of a case that was measured with just these settings, or None."""
        settings = settings_of(case, processes)
        return next((one for one in self.records if all(one[name] == settings[name] for name in settings)), None)

    def add(self, record: dict[str, Any]) -> None:
        """Keep a record, in place of an earlier one of the same family, shape and mode."""
        place = ("family", "shape", "mode", "layers", "threads")
        self.records = [old for old in self.records if any(old[name] != record[name] for name in place)]
        self.records.append(record)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        partial = self.file.with_suffix(".partial")
        content = {"machine": self.machine, "records": self.records}
        partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        partial.replace(self.file)


def settings_of(case: Case, processes: int) -> dict[str, Any]:
    """Return what tells one record from another: the case, how often it was measured, and with which code."""
    fields = {name: value for name, value in asdict(case).items() if name != "folder"}
    return {**fields, "processes": processes, "code": code_digest()}


@cache
def code_digest() -> str:
    """Return a digest of the library's source files, so that no old figure passes for one of the present code."""
    files = sorted(file for folder in ("encoders", "shared") for file in (ROOT / folder).rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def summarise(case: Case, processes: int, outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    """Turn what the processes of a case measured into one record."""
    shape = SHAPES[case.shape]
    record: dict[str, Any] = {
        **settings_of(case, processes),
        "tokens": sum(shape.lengths),
        "padded_tokens": shape.rows * shape.length,
        "unable": {name: why for outcome in outcomes for name, why in outcome["unable"].items()},
    }
    if case.mode.endswith("memory"):
        peaks = [outcome["memory"] for outcome in outcomes if "memory" in outcome]
        names = dict.fromkeys(name for peak in peaks for name in peak)
        return {
            **record,
            "memory_megabytes": {
                name: round(statistics.median(peak[name] for peak in peaks if name in peak), 1) for name in names
            },
        }
    names = [name for name in case.models if name not in record["unable"]]
    record["ratios"] = {name: ratio(name, outcomes) for name in names[1:]}
    record["speed"] = {name: speed(case, name, outcomes) for name in names}
    return record


def ratio(peer: str, outcomes: list[dict[str, Any]]) -> dict[str, float]:
    """Return a peer's processor time divided by ours: the median over processes and the extremes."""
    values = [
        statistics.median(theirs / ours for theirs, ours in zip(one["cpu"][peer], one["cpu"]["ours"], strict=True))
        for one in outcomes
    ]
    return {name: round(choose(values), 3) for name, choose in EXTREMES.items()}


EXTREMES = {"median": statistics.median, "lowest": min, "highest": max}


def speed(case: Case, name: str, outcomes: list[dict[str, Any]]) -> dict[str, float]:
    """Return the time of one step, real tokens a second, and the share of the machine's matrix-product peak."""
    cpu, wall = (
        statistics.median(statistics.median(one[clock][name]) for one in outcomes) for clock in ("cpu", "wall")
    )
    lengths = SHAPES[case.shape].lengths
    preset = PRESETS[case.family]
    config = override(family_of(preset).presets[preset].config(), case.overrides())
    needed = necessary_operations(config, lengths, training=case.mode == "training")
    shares = [needed / statistics.median(one["cpu"][name]) / one["peak"] for one in outcomes]
    return {
        "cpu_seconds": round(cpu, 5),
        "seconds": round(wall, 5),
        "tokens_per_second": round(sum(lengths) / wall, 1),
        "share_of_peak": round(statistics.median(shares), 3),
    }
