from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from encoders.cli.diagnose import diagnose
from tests.encoders.checkpoints.tokenizer_files import HPLT_SPECIALS, write_word_piece
from tests.support import make_model


@pytest.fixture
def run():
    app = typer.Typer()
    app.command()(diagnose)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text.txt").write_text("hello world\n\nworld hello 42\n" * 4, encoding="utf-8")
    return tmp_path / "text.txt"


def saved(folder, name, task):
    size = write_word_piece(folder, HPLT_SPECIALS)
    make_model(
        name, task, vocab_size=size, **({"num_reserved_ids": 5} if name == "norbert3-nano" else {})
    ).save_pretrained(folder)
    return folder


def test_a_random_model_is_undecided(run, text, tmp_path):
    done = run(saved(tmp_path, "norbert3-nano", "masked-lm"), "--text", text, "--lines", 6)
    assert done.exit_code == 0, done.stderr
    assert "undecided: the model predicts masked words hardly better" in done.stdout
    assert "masked-word loss interleaved" in done.stdout


@pytest.mark.parametrize(
    ("name", "task", "message"),
    [
        ("norbert3-nano", "token-classification", "has no masked-LM head, so there is nothing to measure"),
        ("distilbert-nano", "masked-lm", "a NorbertForMaskedLM is needed, got DistilBertForMaskedLM"),
    ],
)
def test_other_models_are_refused(run, text, name, task, message, tmp_path):
    refused = run(saved(tmp_path, name, task), "--text", text)
    assert refused.exit_code == 2
    assert message in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_bad_files_are_one_line_and_exit_code_2(run, text, tmp_path):
    folder = saved(tmp_path, "norbert3-nano", "masked-lm")
    empty, binary = tmp_path / "empty.txt", tmp_path / "binary.txt"
    empty.touch()
    binary.write_bytes(b"\xff\xfe\x00")
    for words in (
        (folder, "--text", empty),
        (folder, "--text", binary),
        (folder, "--text", tmp_path / "no.txt"),
        (empty, "--text", text),
    ):
        refused = run(*words)
        assert refused.exit_code == 2
        assert refused.stderr.startswith("error: ")
        assert refused.stderr.count("\n") == 1
