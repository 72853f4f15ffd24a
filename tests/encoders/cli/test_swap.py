from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import encoders
from encoders.cli.main import app
from tests.encoders.checkpoints.tokenizer_files import HPLT_SPECIALS, write_word_piece
from tests.support import make_model


def run(*words):
    return CliRunner().invoke(app, ["swap", *map(str, words)])


def test_text_and_json_are_the_report(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("hello world\n\nworld hello 42\n", encoding="utf-8")
    write_word_piece(tmp_path, HPLT_SPECIALS)
    words = ("norbert3-nano", "distilbert-nano", "--text", text, "--length", 5)
    tokenizers = ("--tokenizer-a", tmp_path, "--tokenizer-b", tmp_path)
    report = encoders.swap_report(
        "norbert3-nano",
        "distilbert-nano",
        texts=["hello world", "world hello 42"],
        length=5,
        tokenizer_a=tmp_path,
        tokenizer_b=tmp_path,
    )
    done = run(*words, *tokenizers)
    assert done.exit_code == 0
    assert done.stdout == f"{report}\n"
    assert json.loads(run(*words, *tokenizers, "--json").stdout) == report.to_dict()


def test_revisions(tmp_path, monkeypatch):
    """Each side has its own, also for its tokenizer; two of one repository are told apart."""
    size = write_word_piece(tmp_path, HPLT_SPECIALS)
    make_model("distilbert-nano", None, vocab_size=size).save_pretrained(tmp_path)
    asked = []

    def fetch(repository, revision, weights):
        asked.append((repository, revision, weights))
        return tmp_path

    monkeypatch.setattr("encoders.checkpoints.folder.fetch", fetch)
    done = run("owner/name", "owner/name", "--revision-a", "v1", "--revision-b", "v2", "--json")
    assert done.exit_code == 0, done.stderr
    assert set(asked) == {("owner/name", revision, weights) for revision in ("v1", "v2") for weights in (True, False)}
    found = json.loads(done.stdout)
    assert (found["a"], found["b"]) == ("owner/name (v1)", "owner/name (v2)")
    [line] = [line for line in found["lines"] if line["topic"] == "trained weights"]
    assert (line["a"], line["b"]) == ("owner/name (v1)", "owner/name (v2)")


def test_measuring():
    found = json.loads(run("norbert3-nano", "distilbert-nano", "--measure", "--length", 8, "--json").stdout)
    [line] = [line for line in found["lines"] if line["topic"].startswith("CPU seconds")]
    assert line["a"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("norbert3-nano", "distilbert-nan"), "Did you mean 'distilbert-nano'"),
        (("norbert3-nano", "distilbert-nano", "--text", "{folder}/none.txt"), "No such file"),
        (("norbert3-nano", "{folder}"), "no config.json"),
        (("norbert3-nano", "norbert3-nano", "--revision-a", "v1"), "has no revisions, but 'v1' was given: leave it"),
        (("norbert3-nano", "norbert3-nano", "--tokenizer-b", "{folder}"), "no tokenizer that can be read"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(words, message, tmp_path):
    refused = run(*(word.format(folder=tmp_path) for word in words))
    assert refused.exit_code == 2
    assert refused.stdout == ""
    assert refused.stderr.startswith("error: ")
    assert refused.stderr.count("\n") == 1
    assert message in refused.stderr
