"""One measuring process: `python -m benchmarks.measure CASE`, the case and the result being JSON.

Processor time does not count what other programs do meanwhile; that all models of a case run in turn, again and again,
takes care of the rest. Memory is measured with one model in the process.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
import time
from typing import Any

import torch
import torch.nn.functional as F
import transformers
from torch import Tensor

from benchmarks.cases import PRESETS, SHAPES, Case
from benchmarks.peers import Model, build
from encoders.registry import family_of, override
from encoders_shared.linear import linear

SHORTEST_TURN = 0.1  # seconds: shorter steps are repeated


def infer(model: Model, batch: dict[str, Tensor]) -> None:
    """One forward pass in evaluation mode."""
    if isinstance(model, torch.nn.Module):
        model.eval()
    with torch.inference_mode():
        model(**batch)


def train(model: Model, batch: dict[str, Tensor]) -> None:
    """One forward and backward pass in training mode."""
    assert isinstance(model, torch.nn.Module)
    model.train()
    model.zero_grad(set_to_none=True)
    model(**batch)[0].square().mean().backward()


def matrix_peak() -> float:
    """Measure operations in a second of processor time of a matrix product, as large as those of the linear layers.

    It is the faster one of torch's own product and of ours.
    """
    states, weight = torch.randn(1024, 768), torch.randn(3072, 768)
    seconds = []
    for product in (F.linear, linear):
        start = time.process_time()
        product(states, weight, None)
        seconds.append(time.process_time() - start)
    return 2 * 1024 * 768 * 3072 / min(seconds)


def measure_time(case: Case) -> dict[str, Any]:
    """Run the models of a case in turn.

    Returns:
        For each model the processor seconds ("cpu") and the seconds on the clock ("wall") of one step, in each round;
        why a model could not run ("unable"); the matrix-product peak in operations a second of processor time ("peak").
    """
    step = train if case.mode == "training" else infer
    batch = batch_of(case)
    models: dict[str, Model] = {}
    unable = {}
    for name in case.models:
        try:
            models[name] = build(name, case)
            step(models[name], batch)  # warms up
        except Exception as error:
            if name == "ours":
                raise
            models.pop(name, None)
            unable[name] = reason(error)
    start = time.perf_counter()
    step(models["ours"], batch)
    steps = max(1, round(SHORTEST_TURN / (time.perf_counter() - start)))
    matrix_peak()
    peaks = []
    cpu: dict[str, list[float]] = {name: [] for name in models}
    wall: dict[str, list[float]] = {name: [] for name in models}
    names = list(models)
    for turn in range(case.rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            clocks = time.process_time(), time.perf_counter()
            for _ in range(steps):
                step(models[name], batch)
            cpu[name].append((time.process_time() - clocks[0]) / steps)
            wall[name].append((time.perf_counter() - clocks[1]) / steps)
        peaks.append(matrix_peak())
    return {"cpu": cpu, "wall": wall, "unable": unable, "peak": max(peaks)}


def measure_memory(case: Case) -> dict[str, Any]:
    """Return how far the resident memory of the process rises above the model's own, in megabytes ("memory")."""
    step = train if case.mode == "training memory" else infer
    (name,) = case.models
    try:
        model = build(name, case)
        step(model, SHAPES["1 x 32"].batch(vocab_size=64))
        batch = batch_of(case)
        limit_memory()
        gc.collect()  # what is freed during the step would be taken off what the step needs
        before = reset_peak_memory()
        step(model, batch)
    except Exception as error:
        if name == "ours":
            raise
        return {"unable": {name: reason(error)}}
    return {"memory": {name: (peak_memory() - before) / 1e6}, "unable": {}}


def batch_of(case: Case) -> dict[str, Tensor]:
    """Return the batch of a case."""
    config = family_of(PRESETS[case.family]).presets[PRESETS[case.family]].config()
    return SHAPES[case.shape].batch(override(config, case.overrides()).vocab_size)


def reset_peak_memory() -> int:
    """Forget the highest resident memory so far, which building a model may have set; return the present one."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return peak_memory()


def peak_memory() -> int:
    """Return the highest resident memory in bytes; getrusage would give the parent's too."""
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM:"))


def limit_memory() -> None:
    """Let a model that needs more than is free fail, rather than the machine."""
    import psutil

    used, free = psutil.Process().memory_info().vms, psutil.virtual_memory().available
    resource.setrlimit(resource.RLIMIT_AS, (used + int(0.9 * free), resource.RLIM_INFINITY))


def reason(error: Exception) -> str:
    """Return an error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"


def main() -> None:
    """Measure the case on the command line and print what came out."""
    case = Case(**json.loads(sys.argv[1]))
    torch.set_num_threads(case.threads)
    transformers.logging.set_verbosity_error()
    measure = measure_memory if case.mode.endswith("memory") else measure_time
    print(json.dumps(measure(case)))


if __name__ == "__main__":
    main()
