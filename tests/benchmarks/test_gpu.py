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
    assert "4 of 4 combinations agree with the CPU, 0 were not reached." in printed
    assert "4 of 4 timings were reached" in printed
    assert "debertav2" in printed


def test_flex_without_gradients_fails_on_a_cpu(capsys):
    assert run("--device", "cpu", "--backends", "flex", "eager") == 1
    printed = capsys.readouterr().out
    assert "4 of 8 combinations agree with the CPU, 0 were not reached." in printed
    assert printed.index("eager") < printed.index("flex")


@pytest.mark.parametrize(("checked", "timed"), [(0, 0), (3, 0), (4, 2)])
def test_nothing_begins_when_the_time_is_over(checked, timed, monkeypatch, capsys):
    """A clock that moves on by a minute with each check and each timing."""
    begun = []

    def slow_check(*_):
        for _ in range(4):
            begun.append("check")
            yield ("tiled", "padded", "float32", "0", "0", "agrees"), True

    def slow_timings(*_):
        begun.append("timing")
        return [("float32", "1 x 32", "inference", "ours", "1.00", "1")]

    monkeypatch.setattr(gpu, "check", slow_check)
    monkeypatch.setattr(gpu, "timings", slow_timings)
    monkeypatch.setattr(gpu, "models", lambda *_: {})
    monkeypatch.setattr(gpu.time, "monotonic", lambda: 60.0 * len(begun))
    code = run("--device", "cpu", "--backends", "tiled", "--minutes", str(checked + timed))
    printed = capsys.readouterr().out
    assert begun == ["check"] * checked + ["timing"] * timed
    assert f"{checked} of 4 combinations agree with the CPU, {4 - checked} were not reached." in printed
    assert f"{timed} of 4 timings were reached, in {60 * (checked + timed)} seconds" in printed
    assert code == (0 if checked == 4 else 1)


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
        assert [agrees for _, agrees in check(CASE, SIZE.checked, ["sdpa"], device)] == [True] * 4
        entries = gpu.models("helmbert", ("sdpa",), SIZE, device)
        rows = list(gpu.timings(entries, torch.float32, "8 x 128 ragged", "training", 1, device))
    names = ["ours", "sdpa, packed", "debertav2"]
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
