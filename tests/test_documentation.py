"""The documents keep their word: Python blocks run, commands and options exist, links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from encoders import registry

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^[ ]*```(\w+)[^\n]*\n(.*?)^[ ]*```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
OTHER_PROGRAMS = {"git", "cd", "pip", "export", "python"}


def blocks(document: Path, *languages: str) -> list[str]:
    """The fenced blocks of a document in some languages."""
    return [text for language, text in BLOCK.findall(document.read_text(encoding="utf-8")) if language in languages]


def documents_with(*languages: str):
    """Parametrise over the documents that have such blocks."""
    return pytest.mark.parametrize("document", [d for d in DOCUMENTS if blocks(d, *languages)], ids=lambda d: d.name)


@pytest.mark.filterwarnings("ignore")  # torch's ONNX exporter gives many
@documents_with("python")
def test_python_blocks_run(document, tmp_path, monkeypatch):
    """In one namespace, from top to bottom, as a reader would."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_modules", dict(registry._modules))  # a document may register a family
    namespace = {"__name__": "__main__"}
    for number, text in enumerate(blocks(document, "python")):
        exec(compile(text, f"{document.name}, block {number}", "exec"), namespace)
    assert namespace.keys() > {"__name__"}


def commands(document: Path) -> list[list[str]]:
    """The commands of a document's shell blocks, split into words; continued lines are joined."""
    lines = "\n".join(blocks(document, "bash", "sh", "console")).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.strip() and not line.lstrip().startswith("#")]


@documents_with("bash", "sh", "console")
def test_commands_exist(document):
    from encoders.cli.main import app

    tool = typer.main.get_command(app)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for program, *words in commands(document):
        if program == "make":
            assert set(words) <= targets, words
        elif program == "encoders":
            check_options(tool, words)
        else:
            assert program in OTHER_PROGRAMS, f"{document.name} uses {program}"


def check_options(tool: Any, words: list[str]) -> None:
    """Refuse a subcommand or an option that the command line does not have."""
    name, *arguments = words
    if name.startswith("-"):
        return
    assert name in tool.commands, f"there is no command {name}"
    known = {option for parameter in tool.commands[name].params for option in parameter.opts} | {"--help"}
    for word in arguments:
        if word.startswith("--"):
            assert word.partition("=")[0] in known, f"encoders {name} has no option {word}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_links_lead_somewhere(document):
    text = BLOCK.sub("", document.read_text(encoding="utf-8"))
    missing = [target for target in LINK.findall(text) if not (document.parent / target).exists()]
    assert not missing
