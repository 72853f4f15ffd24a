import json
from pathlib import Path

import pytest

from encoders.experiments.errors import ExperimentError
from encoders.experiments.runs import Run, RunFolder, write_whole

RUN = Run("norbert3-nano", 1, {"dev": {"accuracy": 0.25}, "test": {"accuracy": 0.5}}, seconds=1.5, sha256="abc")
EPOCHS = {"data": "file.csv", "epochs": 3}


def test_a_finished_run_is_found_again_by_name_and_seed(tmp_path: Path):
    folder = RunFolder(tmp_path / "deep" / "runs", EPOCHS)
    folder.check()
    folder.keep(RUN)
    assert folder.find("norbert3-nano", 1, "abc") == RUN
    assert folder.find("norbert3-nano", 2, "abc") is None
    assert folder.find("norbert3", 1, "abc") is None
    assert [path.name for path in (tmp_path / "deep" / "runs").iterdir()] == ["norbert3-nano-seed1.json"]


def test_runs_of_other_circumstances_are_refused_with_both_values(tmp_path: Path):
    folder = RunFolder(tmp_path, EPOCHS)
    folder.keep(RUN)
    RunFolder(tmp_path, EPOCHS).check()
    with pytest.raises(ExperimentError, match="comparison with other epochs: 3 there, 5 here; give another --output"):
        RunFolder(tmp_path, {**EPOCHS, "epochs": 5}).check()
    with pytest.raises(ExperimentError, match="with other pooling: None there, mean here"):
        RunFolder(tmp_path, {**EPOCHS, "pooling": "mean"}).check()


def test_a_run_of_other_weights_is_refused(tmp_path: Path):
    folder = RunFolder(tmp_path, EPOCHS)
    folder.keep(RUN)
    with pytest.raises(ExperimentError, match="of other weights or another tokenizer of norbert3-nano"):
        folder.find("norbert3-nano", 1, "def")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"circumstances": {}', "\xff"])
def test_a_file_that_is_no_run_is_refused(tmp_path: Path, content: str):
    (tmp_path / "norbert3-nano-seed1.json").write_text(content, encoding="latin-1")
    with pytest.raises(ExperimentError, match=r"norbert3-nano-seed1.json is no finished run"):
        RunFolder(tmp_path, EPOCHS).check()


def test_names_that_are_paths_get_a_file_each(tmp_path: Path):
    folder = RunFolder(tmp_path, EPOCHS)
    names = ["a/b", "a-b", "../a/b", "a b"]
    for name in names:
        folder.keep(Run(name, 0, {}, seconds=0.0, sha256=name))
    assert [folder.find(name, 0, name).backbone for name in names] == names  # pyright: ignore
    assert len(list(tmp_path.iterdir())) == len(names)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ExperimentError, match=r"cannot write to .*file/runs: Not a directory"):
        RunFolder(tmp_path / "file" / "runs", EPOCHS).check()


def test_without_a_folder_nothing_is_kept():
    folder = RunFolder(None, EPOCHS)
    folder.check()
    folder.keep(RUN)
    assert folder.find("norbert3-nano", 1, "abc") is None


def test_a_file_is_replaced_whole_or_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "results.json"
    write_whole(path, b"old")
    assert path.read_bytes() == b"old"

    def fill_the_disk(self: Path, contents: bytes) -> None:
        with self.open("wb") as file:
            file.write(contents[:1])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fill_the_disk)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, json.dumps({"new": 1}).encode())
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
