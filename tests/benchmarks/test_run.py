"""From the command line over measuring processes to a result file and its figures."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks import machine, measure, peers, plot, results, run
from benchmarks.cases import Case
from benchmarks.results import Results, summarise

TINY = ["--families", "distilbert", "--shapes", "1 x 32", "--peers", "transformers", "published"]
TINY += ["--modes", "inference", "--processes", "1", "--rounds", "1", "--layers", "1"]


def case(mode="inference", models=("ours", "published"), shape="8 x 128 ragged", family="norbert"):
    return Case(family, shape, mode, list(models), layers=1, rounds=2, threads=1, folder="")


def outcome(ours, published, peak=1e11, **more):
    times = {"ours": ours, "published": published}
    return {"cpu": times, "wall": {name: [2 * t for t in values] for name, values in times.items()}, "peak": peak} | {
        "unable": {},
        **more,
    }


def test_measured_once_and_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("ENCODERS_REFERENCE", raising=False)
    run.main([*TINY, "--output", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "published is left out: ENCODERS_REFERENCE does not name a folder" in printed
    (record,) = json.loads((tmp_path / "standard.json").read_text())["records"]
    assert record["models"] == ["ours", "transformers"]
    assert record["tokens"] == 32
    assert record["ratios"]["transformers"]["median"] > 0
    assert record["speed"]["ours"]["tokens_per_second"] > 0
    assert 0 < record["speed"]["ours"]["share_of_peak"] < 1.5

    monkeypatch.setattr(run, "child", None)  # nothing is left to measure
    run.main([*TINY, "--output", str(tmp_path)])
    plot.main([str(tmp_path)])
    assert [file.name for file in tmp_path.glob("*.png")] == ["speed-by-shape-inference.png"]


def test_memory_is_what_a_step_adds():
    """And not what building the model took, although that was more, nor less by what garbage happens to be freed."""
    program = """
import gc, json, torch
from benchmarks import measure
from benchmarks.cases import Case

def build(name, case):
    torch.ones(75_000_000)
    return step

def step(input_ids, **batch):
    if input_ids.shape == (1, 32):  # to warm up; it leaves something for the garbage collector
        garbage = [torch.ones(75_000_000)]
        garbage.append(garbage)
    else:
        gc.collect()
    return torch.ones(input_ids.numel() * 50_000)  # 102 MB at 1 x 512

gc.disable()  # only where it is asked for
measure.build = build
case = Case("norbert", "1 x 512", "inference memory", ["ours"], layers=1, rounds=1, threads=1, folder="")
print(json.dumps(measure.measure_memory(case)))
"""
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert 90 < json.loads(printed)["memory"]["ours"] < 150


def test_memory_takes_a_process_for_each_model(monkeypatch):
    seen = []
    monkeypatch.setattr(
        run, "child", lambda part: seen.append(part.models) or {"memory": {part.models[0]: 2.0}, "unable": {}}
    )
    record = run.measure(case("inference memory"), processes=2)
    assert seen == [["ours"], ["published"]] * 2
    assert record["memory_megabytes"] == {"ours": 2.0, "published": 2.0}


def test_ratios_are_medians_over_processes():
    outcomes = [outcome([1.0, 1.0], [2.0, 2.0]), outcome([1.0, 2.0], [3.0, 8.0]), outcome([1.0, 1.0], [9.0, 9.0])]
    record = summarise(case(), 3, outcomes)
    assert record["ratios"] == {"published": {"median": 3.5, "lowest": 2.0, "highest": 9.0}}
    assert record["speed"]["ours"]["cpu_seconds"] == 1.0
    assert record["speed"]["ours"]["tokens_per_second"] == pytest.approx(record["tokens"] / 2.0, rel=1e-3)
    assert record["speed"]["published"]["share_of_peak"] < record["speed"]["ours"]["share_of_peak"]


def test_a_peer_that_can_not_run_is_noted(monkeypatch):
    def build(name, case):
        if name == "published":
            raise AttributeError("no table\nfor this length")
        return lambda **batch: None

    monkeypatch.setattr(measure, "build", build)
    outcomes = [measure.measure_time(case(shape="1 x 32"))]
    record = summarise(case(shape="1 x 32"), 1, outcomes)
    assert record["unable"] == {"published": "AttributeError: no table for this length"}
    assert record["ratios"] == {}
    run.show([record])


def test_our_own_failure_is_not_hidden(monkeypatch):
    monkeypatch.setattr(measure, "build", lambda name, case: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        measure.measure_time(case(shape="1 x 32"))


def test_a_failed_process_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "executable", "false")
    with pytest.raises(RuntimeError, match=r"measuring Case\(.*failed with exit code 1"):
        run.child(case())


def test_figures_of_other_code_do_not_count(tmp_path, monkeypatch):
    stored = Results(tmp_path / "standard.json")
    stored.add(summarise(case(), 1, [outcome([1.0], [2.0])]))
    monkeypatch.setattr(results, "code_digest", lambda: "another")
    assert not stored.find(case(), 1)
    stored.add(summarise(case(), 1, [outcome([1.0], [3.0])]))
    (record,) = Results(stored.file).records
    assert record["ratios"]["published"]["median"] == 3.0


def test_results_of_another_machine_are_not_mixed(tmp_path, monkeypatch):
    file = tmp_path / "standard.json"
    Results(file).add(summarise(case(), 1, [outcome([1.0], [2.0])]))
    assert Results(file).find(case(), 1)
    assert not Results(file).find(case(), 2)
    monkeypatch.setattr(machine, "processor_name", lambda: "another")
    with pytest.raises(ValueError, match=r"was measured on another machine or with other versions \(processor\)"):
        Results(file)


def test_no_name_of_person_or_computer():
    facts = machine.machine()
    assert set(facts) <= {"processor", "processors", "instructions", "system", "python", *machine.PACKAGES}


@pytest.mark.parametrize("peer", peers.STANDARD_PEERS)
def test_standard_peers_are_known(peer):
    assert peers.PEERS[peer][1]


def test_onnxruntime_does_not_train():
    assert peers.fits("onnxruntime", "norbert", "inference")
    assert not peers.fits("onnxruntime", "norbert", "training")
    assert not peers.fits("debertav2", "norbert", "inference")


def test_every_figure():
    shapes = ("8 x 128 ragged", "8 x 128 fill 0.3", "8 x 128 fill 0.5", "1 x 256", "1 x 512")
    timed = [
        summarise(case(mode, shape=shape), 1, [outcome([1.0], [2.0])])
        for mode in ("inference", "training")
        for shape in shapes
    ]
    memory = [
        summarise(case(f"{mode} memory", shape=shape), 1, [{"memory": {"ours": 3.0}, "unable": {}}])
        for mode in ("inference", "training")
        for shape in ("1 x 1024", "1 x 2048")
    ]
    names = {name.rpartition("-")[0] for name in plot.figures(timed + memory)}
    assert names == {"speed-by-shape", "speed-by-fill", "speed-by-length", "memory-by-length"}
    assert plot.figures([]) == {}
    points = ("8 x 128 fill 0.3", "1 x 256", "1 x 1024")  # one for each kind of line
    drawn = plot.figures([record for record in timed + memory if record["shape"] in points])
    assert not any("fill" in name or "length" in name for name in drawn)


def test_figures_tell_models_apart():
    colours = {tuple(plot.COLOURS[name]) for name in ("ours", *peers.PEERS)}
    assert len(colours) == len(peers.PEERS) + 1


def test_bars_are_of_other_implementations():
    both = summarise(case(), 1, [outcome([1.0], [2.0])])
    both["ratios"]["ours-tiled"] = both["ratios"]["published"]
    alone = {**both, "shape": "1 x 32", "ratios": {"ours-tiled": both["ratios"]["published"]}}
    figure = plot.speed_by_shape([both, alone], "inference")
    assert figure is not None
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["published"]
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["8 x 128 ragged"]
    assert plot.speed_by_shape([alone], "inference") is None


def test_records_with_other_peers_are_joined():
    case = {"family": "norbert", "shape": "8 x 128", "mode": "inference"}
    first, second = {**case, "ratios": {"a": 1}, "layers": 2}, {**case, "ratios": {"a": 5, "b": 2}, "layers": 3}
    assert plot.merge([first, second]) == [{**case, "ratios": {"a": 1, "b": 2}, "layers": 2}]
    assert first["ratios"] == {"a": 1}
