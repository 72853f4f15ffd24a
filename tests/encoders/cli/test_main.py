import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import encoders
from encoders.cli.main import app

run = CliRunner().invoke


@pytest.mark.parametrize("arguments", [["--help"], ["compare", "--help"], ["card", "--help"]])
def test_help_is_quick_for_it_imports_no_torch(arguments: list[str]):
    program = (
        "import sys\nfrom encoders.cli.main import app\n"
        f"app({arguments!r}, standalone_mode=False)\n"
        "heavy = {'torch', 'transformers', 'sklearn', 'matplotlib', 'numpy'} & sys.modules.keys()\n"
        "assert not heavy, heavy"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "Usage" in shown


def test_list_takes_patterns_and_families():
    assert run(app, ["list"]).stdout.split() == encoders.list_encoders()
    assert run(app, ["list", "*-nano"]).stdout.split() == encoders.list_encoders("*-nano")
    assert run(app, ["list", "--family", "norbert"]).stdout.split() == encoders.list_encoders(family="norbert")


def test_card_is_text_or_json():
    card = encoders.card("helmbert-nano")
    assert run(app, ["card", "helmbert-nano"]).stdout == f"{card}\n"
    assert json.loads(run(app, ["card", "helmbert-nano", "--json"]).stdout) == json.loads(json.dumps(card.to_dict()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["card", "norbert-nano"], "norbert3-nano"), (["list", "--family", "norberta"], "norbert")],
)
def test_unknown_names_are_one_line_and_exit_code_2(arguments: list[str], message: str):
    result = run(app, arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith("error: unknown")
    assert message in line
