from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from encoders.cli.inspect import inspect
from tests.encoders.checkpoints.folders import golden_folder


@pytest.fixture
def run():
    app = typer.Typer()
    app.command()(inspect)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def test_text_and_json(run, tmp_path):
    folder, _, _ = golden_folder("norbert3", "norbert-interleaved-masked-lm", tmp_path)
    shown = run(folder)
    assert shown.exit_code == 0
    assert "NorBERT3, seen by its architectures" in shown.stdout
    assert json.loads(run(folder, "--json").stdout)["task"] == "masked-lm"


def test_bad_input_is_one_line_and_exit_code_2(run, tmp_path):
    for source in (tmp_path, tmp_path / "absent", "no such"):
        refused = run(source)
        assert refused.exit_code == 2
        assert refused.stderr.startswith("error: ")
        assert refused.stderr.count("\n") == 1
        assert not refused.stdout
