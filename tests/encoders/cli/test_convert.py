from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

import encoders
from encoders.cli.convert import convert
from tests.encoders.checkpoints.folders import golden_folder


@pytest.fixture
def run():
    app = typer.Typer()
    app.command()(convert)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def test_both_forms(run, tmp_path):
    folder, task, _ = golden_folder("hplt", "norbert-contiguous-masked-lm", tmp_path)
    done = run(folder, tmp_path / "ours")
    assert done.exit_code == 0
    assert f"written to {tmp_path / 'ours'}" in done.stdout
    assert "HPLT (norbert" in done.stdout
    assert "\nwarning: " in done.stderr.replace("\r", "\n")
    assert encoders.load(str(tmp_path / "ours"), task=task).config.position_projection == "contiguous"
    assert run(tmp_path / "ours", tmp_path / "theirs", "--to", "upstream").exit_code == 0
    assert json.loads((tmp_path / "theirs" / "config.json").read_text())["architectures"] == ["LtgbertForMaskedLM"]


def test_bad_input_is_one_line_and_exit_code_2(run, tmp_path):
    folder, _, _ = golden_folder("helmbert", "helmbert-model", tmp_path)
    for words in ((tmp_path / "absent", tmp_path / "a"), (folder, folder)):
        refused = run(*words)
        assert refused.exit_code == 2
        assert refused.stderr.startswith("error: ")
        assert refused.stderr.count("\n") == 1
    assert run(folder, tmp_path / "a", "--to", "onnx").exit_code == 2
