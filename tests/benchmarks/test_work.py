"""The count of work: the committed numbers hold, and more work is found."""

from __future__ import annotations

import json

import pytest
import torch

from benchmarks import work
from benchmarks.counter import WorkCounter
from encoders_shared.attention import BACKENDS

BACKENDS_HERE = [backend for backend in work.MAY_MAKE_SQUARES if backend in BACKENDS]
STEPS = ["inference 1 x 700", "inference ragged", "training ragged"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("backend", BACKENDS_HERE)
@pytest.mark.parametrize("name", work.ENCODERS)
def test_no_more_work_than_expected(name, backend, step):
    counted = {f"{name}, {backend}, {step}": work.count(name, backend, step)}
    assert work.faults(counted, json.loads(work.EXPECTED.read_text(encoding="utf-8"))) == []


def test_what_is_counted():
    left, right = torch.randn(700, 3), torch.randn(3, 700)
    with WorkCounter(length=700) as counter:
        scores = left @ right
        scores.view(-1).add_(1.0)
        scores.T[None].expand(2, 700, 700)
        torch.mm(left, right, out=scores)
    assert counter.work == {"products": 2, "operations": 2 * 2 * 700 * 3 * 700, "bytes": 4 * 700 * 700, "squares": 1}


def one(**changes):
    return {"products": 4, "operations": 100, "bytes": 1_000, "squares": 0, **changes}


@pytest.mark.parametrize(
    ("case", "counted", "message"),
    [
        ("a, eager, s", one(products=5), "a, eager, s: more work: products 5, expected at most 4."),
        ("a, eager, s", one(operations=101), "a, eager, s: more work: operations 101, expected at most 100."),
        ("a, eager, s", one(bytes=1_021), "a, eager, s: more work: bytes 1,021, expected at most 1,000."),
        ("a, eager, s", one(squares=1), "a, eager, s: more work: squares 1, expected at most 0."),
        ("b, sdpa, s", one(), "b, sdpa, s: no expected numbers"),
        ("t, tiled, s", one(squares=2), "t, tiled, s: 2 tensors of length x length; this backend must make none."),
    ],
)
def test_more_work_is_named(case, counted, message):
    expected = {"a, eager, s": one(), "t, tiled, s": one(squares=2)}
    (line,) = work.faults({case: counted}, expected)
    assert line.startswith(message)


def test_as_much_work_or_less_is_fine():
    assert work.faults({"a, eager, s": one(bytes=1_019, products=3)}, {"a, eager, s": one()}) == []


def test_update_and_check(tmp_path, monkeypatch, capsys):
    file = tmp_path / "expected.json"
    monkeypatch.setattr(work, "EXPECTED", file)
    monkeypatch.setattr(work, "count_all", lambda: {"a, eager, s": one()})
    with pytest.raises(SystemExit, match="0"):
        work.main(["--update"])
    assert json.loads(file.read_text()) == {"a, eager, s": one()}
    monkeypatch.setattr(work, "count_all", lambda: {"a, eager, s": one(products=9)})
    with pytest.raises(SystemExit, match="1"):
        work.main([])
    assert "more work: products 9" in capsys.readouterr().out
