"""The script for a GPU, at tiny sizes on the CPU and on a simulated GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from benchmarks import gpu
from benchmarks.cases import Shape
from benchmarks.parity import check, difference
from encoders_shared.attention import BACKENDS
from tests.simulated_gpu import simulated_gpu

CPU = torch.device("cpu")
SIZE = gpu.SIZES["cpu"]
CASE = gpu.case_of("helmbert", SIZE)


@pytest.fixture(autouse=True)
def no_published_code(monkeypatch):
    monkeypatch.delenv("ENCODERS_REFERENCE", raising=False)
    gpu.models.cache_clear()


def run(*words):
    with pytest.raises(SystemExit) as ended:
        gpu.main([*words, "--families", "helmbert"])
    return ended.value.code


def test_the_script_runs(capsys):
    assert run("--device", "cpu", "--backends", "tiled") == 0
    printed = capsys.readouterr().out
    assert "0 of 4 combinations fail or depart" in printed
    assert "debertav2" in printed


def test_no_timing_begins_when_the_time_is_up(capsys):
    assert run("--device", "cpu", "--backends", "tiled", "--minutes", "0") == 0
    printed = capsys.readouterr().out
    assert "4 of 4 timings are left out: 0 minutes are over." in printed
    assert "0 of 4 combinations fail or depart" in printed  # all are checked, however long it takes
    assert "debertav2" not in printed


def test_without_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="There is no GPU here that torch can use"):
        gpu.main([])


def test_flex_comes_last_and_does_not_train():
    order = gpu.in_order(["helmbert", "norbert"], ["eager", "flex"], SIZE)
    assert [backends for backends, *_ in order] == [("eager",)] * 8 + [("flex",)] * 4
    assert {mode for backends, *_, mode in order if backends == ("flex",)} == {"inference"}


def test_checks_and_timings_on_a_simulated_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    with simulated_gpu() as device:
        assert all(agrees for _, agrees in check(CASE, SIZE.checked, ["eager", "sdpa", "tiled"], device))
        entries = gpu.models("helmbert", ("eager", "sdpa"), SIZE, device)
        rows = list(gpu.timings(entries, torch.bfloat16, "8 x 128 ragged", "training", 1, device))
    names = ["ours", "eager", "eager, packed", "sdpa, packed", "debertav2"]
    assert [(name, float(ratio) > 0) for *_, name, ratio, _ in rows] == [(name, True) for name in names]


def test_a_wrong_backend_departs(monkeypatch):
    def wrong(inputs):
        return BACKENDS["eager"](replace(inputs, scale=inputs.scale * 1.05))

    monkeypatch.setitem(BACKENDS, "tiled", wrong)
    verdicts = [(row[2], row[-1], agrees) for row, agrees in check(CASE, Shape(2, 12, 0.7), ["tiled"], CPU)]
    assert ("float32", "departs", False) in verdicts


def test_a_backend_that_fails_is_shown(monkeypatch):
    def failing(*_):
        raise NotImplementedError("no kernel")

    monkeypatch.setitem(BACKENDS, "flex", failing)
    rows = list(check(CASE, Shape(2, 12, 0.7), ["flex"], CPU))
    assert [(row[-1], agrees) for row, agrees in rows] == [("NotImplementedError: no kernel", False)] * 4
    entries = {**gpu.models("helmbert", ("flex",), SIZE, CPU), **gpu.models("helmbert", (), SIZE, CPU)}
    timed = [row[3:] for row in gpu.timings(entries, torch.float32, "1 x 32", "inference", 1, CPU)]
    assert timed[0] == ("flex", "NotImplementedError: no kernel", "")
    assert [name for name, *_ in timed[1:]] == ["ours", "debertav2"]  # the others go on


def test_nan_agrees_with_nothing():
    assert not difference(torch.tensor([float("nan")]), torch.ones(1)) <= 1.0
