"""The script for a GPU, at tiny sizes on the CPU."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from benchmarks import gpu
from benchmarks.cases import Case, Shape
from benchmarks.parity import check, difference
from encoders_shared.attention import BACKENDS

CPU = torch.device("cpu")
CASE = Case("helmbert", "1 x 32", "inference", ["ours"], layers=1, rounds=1, threads=1, folder="")


def test_the_script_runs(capsys, monkeypatch):
    monkeypatch.delenv("ENCODERS_REFERENCE", raising=False)
    with pytest.raises(SystemExit, match="0"):
        gpu.main(["--device", "cpu", "--families", "helmbert", "--backends", "tiled"])
    printed = capsys.readouterr().out
    assert "0 of 4 combinations fail or depart" in printed
    assert "debertav2" in printed


def test_without_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="There is no GPU here that torch can use"):
        gpu.main([])


def test_a_wrong_backend_departs(monkeypatch):
    def wrong(inputs):
        return BACKENDS["eager"](replace(inputs, scale=inputs.scale * 1.05))

    monkeypatch.setitem(BACKENDS, "tiled", wrong)
    verdicts = [(row[2], row[-1], agrees) for row, agrees in check(CASE, Shape(2, 12, 0.7), ["tiled"], CPU)]
    assert ("float32", "departs", False) in verdicts


def test_a_backend_that_fails_is_shown(monkeypatch):
    def failing(*_):
        raise NotImplementedError("no kernel")

    monkeypatch.setitem(BACKENDS, "tiled", failing)
    rows = list(check(CASE, Shape(2, 12, 0.7), ["tiled"], CPU))
    assert [(row[-1], agrees) for row, agrees in rows] == [("NotImplementedError: no kernel", False)] * 4
    timed = list(gpu.timings(CASE, torch.float32, ["tiled"], CPU))
    assert ("tiled", "NotImplementedError: no kernel", "") in timed
    assert timed[-1][0] == "debertav2"  # the others go on


def test_nan_agrees_with_nothing():
    assert not difference(torch.tensor([float("nan")]), torch.ones(1)) <= 1.0
