from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import encoders
from encoders.cli.main import app
from tests.encoders.test_cards import SCHEMA, facts_of


@pytest.mark.parametrize("name", encoders.list_encoders())
def test_json_is_the_card(name):
    done = CliRunner().invoke(app, ["card", name, "--json"])
    assert done.exit_code == 0
    facts = json.loads(done.stdout)
    assert facts == facts_of(name)
    assert [field for field, rule in SCHEMA.items() if not rule(facts[field])] == []


def test_text_has_a_line_for_each_fact():
    done = CliRunner().invoke(app, ["card", "norbert3-base"])
    labels = [line[:22].strip() for line in done.stdout.splitlines()]
    expected = [field.replace("_", " ") for field in SCHEMA if field != "notes"]
    assert [label for label in labels if label != "note"] == expected
    assert labels.count("note") == len(facts_of("norbert3-base")["notes"])
