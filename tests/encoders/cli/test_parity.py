"""`encoders parity`: what can stand on each side, what it prints, and its exit codes."""

from __future__ import annotations

import json

import pytest
import transformers
from typer.testing import CliRunner

from encoders.checkpoints.conversion import convert_checkpoint
from encoders.cli.main import app
from tests.encoders.checkpoints.folders import code_was_run, write_code, write_json
from tests.encoders.checkpoints.references import small_bert
from tests.encoders.checkpoints.tokenizer_files import HPLT_SPECIALS, write_word_piece
from tests.encoders.faults import one_weight_off
from tests.support import NANO, make_model

every_encoder = pytest.mark.parametrize("name", NANO)


def run(*words):
    return CliRunner().invoke(app, ["parity", *map(str, words)])


def facts(*words):
    done = run(*words, "--json")
    assert done.exit_code in (0, 1), done.stderr
    return json.loads(done.stdout)


def saved(folder, name, task=None, **fields):
    folder.mkdir()
    make_model(name, task, **fields).save_pretrained(folder)
    return folder


@every_encoder
def test_a_name_is_the_same_model_on_both_sides(name):
    done = run(name, name, "--backend-a", "eager", "--backend-b", "sdpa")
    assert done.exit_code == 0, done.stderr
    assert f"A: {name} (random weights), encoders." in done.stdout
    assert ", float32, eager, cpu" in done.stdout
    assert "bare; 4 rows of 3 to 32 tokens from random ids (seed 0)" in done.stdout
    assert "The models agree everywhere (relative tolerance 1e-05)." in done.stdout


@every_encoder
@pytest.mark.parametrize("task", ["masked-lm", "multiple-choice"])
def test_types_and_tolerance_decide(name, task):
    words = (name, name, "--task", task, "--dtype-b", "bfloat16")
    found = facts(*words)
    assert found["first_departure"] == "embeddings"
    assert (found["a"]["dtype"], found["b"]["dtype"]) == ("float32", "bfloat16")
    assert found["task"] == task
    assert run(*words).exit_code == 1
    assert run(*words, "--tolerance", "0.5").exit_code == 0


def test_the_seed_makes_other_weights_and_inputs():
    one, other, again = (
        facts("distilbert-nano", "distilbert-nano", "--dtype-b", "bfloat16", "--seed", i) for i in "010"
    )
    assert one == again
    assert one["differences"] != other["differences"]


@every_encoder
def test_before_and_after_conversion(name, tmp_path):
    """The head that both have is compared; after the conversion, a fault is found in its layer."""
    before = saved(tmp_path / "before", name, "masked-lm")
    convert_checkpoint(str(before), tmp_path / "after", "upstream")
    found = facts(before, tmp_path / "after")
    assert found["agree"]
    assert found["task"] == "masked-lm"
    assert found["differences"][-1]["name"] == "logits"
    assert facts(before, tmp_path / "after", "--task", "bare")["task"] is None
    model = make_model(name, "masked-lm")
    place = one_weight_off(model, 1)
    model.save_pretrained(tmp_path / "broken")
    assert facts(before, tmp_path / "broken")["first_departure"] == place


@pytest.mark.parametrize("task", [None, "masked-lm", "question-answering"])
def test_transformers_own_class(task, tmp_path):
    folder = saved(tmp_path / "ours", "distilbert-nano", task, num_labels=2)
    found = facts(folder, f"transformers:{folder}")
    assert found["agree"]
    assert found["task"] == task
    assert found["b"]["class"].startswith("transformers.DistilBert")


def test_a_bert_and_its_copy_in_another_family(tmp_path):
    small_bert(transformers.BertForMaskedLM).save_pretrained(tmp_path)
    found = facts(f"transformers:{tmp_path}", tmp_path, "--tolerance", "1e-4")
    assert found["agree"]
    assert (found["a"]["class"], found["b"]["class"]) == (
        "transformers.BertForMaskedLM",
        "encoders.DistilBertForMaskedLM",
    )
    bare = facts(f"transformers:{tmp_path}", tmp_path, "--task", "bare", "--tolerance", "1e-4")
    assert bare["agree"]
    assert len(bare["left_out"]) == 1


def test_no_code_of_a_folder_is_run(tmp_path):
    folder = saved(tmp_path / "ours", "distilbert-nano")
    config = json.loads((folder / "config.json").read_text())
    write_json(
        folder / "config.json", config | {"auto_map": {"AutoModel": "modeling_x.X", "AutoConfig": "modeling_x.C"}}
    )
    write_code(folder, "modeling_x")
    assert facts(folder, f"transformers:{folder}")["agree"]
    assert not code_was_run(folder)
    (folder / "model.safetensors").rename(tmp_path / "elsewhere")
    (folder / "model.safetensors").symlink_to(tmp_path / "elsewhere")
    refused = run("distilbert-nano", f"transformers:{folder}")
    assert refused.exit_code == 2
    assert "outside its folder" in refused.stderr


def test_texts_are_read_with_the_first_tokenizer_that_there_is(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("hello world\n\nworld 42 " + "hello " * 600 + "\n", encoding="utf-8")
    folder = saved(tmp_path / "ours", "distilbert-nano", vocab_size=write_word_piece(tmp_path, HPLT_SPECIALS))
    for file in tmp_path.glob("token*.json"):
        file.rename(folder / file.name)
    expected = "2 rows of 5 to 512 tokens from text.txt"
    assert facts(folder, folder, "--inputs", text)["inputs"] == expected
    assert facts(folder, folder, "--inputs", text, "--task", "bare")["agree"]
    refused = run("distilbert-nano", "distilbert-nano", "--inputs", text)
    assert refused.exit_code == 2
    assert "there is no tokenizer to read" in refused.stderr
    helm = tmp_path / "helm.txt"
    helm.write_text("PEPTIDE1{A.C}$$$$\n", encoding="utf-8")
    assert facts("helmbert-nano", "helmbert-nano", "--inputs", helm)["inputs"].startswith("1 rows of ")


def test_revisions(tmp_path, monkeypatch):
    """Each side has its own; they are told apart in the report."""
    folder = saved(tmp_path / "ours", "distilbert-nano", "masked-lm")
    asked = []

    def fetch(repository, revision, weights):
        asked.append((repository, revision))
        return folder

    monkeypatch.setattr("encoders.checkpoints.folder.fetch", fetch)
    found = facts("owner/name", "transformers:owner/name", "--revision-a", "v1", "--revision-b", "v2")
    assert found["agree"]
    assert set(asked) == {("owner/name", "v1"), ("owner/name", "v2")}
    assert (found["a"]["source"], found["b"]["source"]) == ("owner/name (v1)", "transformers:owner/name (v2)")


def test_a_plot(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    words = ("norbert3-nano", "norbert3-nano", "--plot", tmp_path / "depth.png")
    assert run(*words).exit_code == 0
    assert (tmp_path / "depth.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr("encoders.cli.parity.find_spec", lambda name: None)
    refused = run(*words)
    assert refused.exit_code == 2
    assert refused.stderr == "error: a plot needs matplotlib: install with pip install 'encoder-zoo[plot]'\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("norbert3-nan", "norbert3-nano"), "Did you mean 'norbert3-nano'"),
        (("norbert3-nano", "{empty}"), "has no config.json"),
        (("norbert3-nano", "norbert3-nano", "--revision-b", "v2"), "has no revisions, but 'v2' was given: leave it"),
        (("{nano}", "{nano}", "--task", "question-answering"), "these would be random"),
        (("norbert3-nano", "norbert3-nano", "--task", "masked"), "unknown task 'masked'"),
        (("norbert3-nano", "ltg-bert-xs"), "the models can't be compared: one gives"),
        (("norbert3-nano", "norbert3-nano", "--dtype-a", "float8"), "dtype is 'float8'; allowed: float64, float32"),
        (("norbert3-nano", "norbert3-nano", "--backend-b", "fast"), "fast"),
        (("norbert3-nano", "norbert3-nano", "--device-b", "nowhere"), "device 'nowhere' can't be used"),
        (("norbert3-nano", "norbert3-nano", "--tolerance", "-1"), "tolerance is -1.0"),
        (("norbert3-nano", "norbert3-nano", "--inputs", "{empty}/no.txt"), "No such file"),
        (("norbert3-nano", "norbert3-nano", "--inputs", "{empty}/blank.txt"), "holds no text"),
        (("{nano}", "transformers:{nano}"), "transformers has no class of its own. It has some for: bert, distilbert"),
    ],
)
def test_what_cannot_be_compared_is_one_line_and_exit_code_2(words, message, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "blank.txt").write_text("\n\n")
    if "{nano}" in words:
        saved(tmp_path / "nano", "norbert3-nano")
    refused = run(*(word.format(empty=tmp_path / "empty", nano=tmp_path / "nano") for word in words))
    assert refused.exit_code == 2, refused.stdout
    assert refused.stdout == ""
    assert refused.stderr.startswith("error: ")
    assert refused.stderr.count("\n") == 1
    assert message in refused.stderr


@pytest.mark.parametrize(
    "key",
    [
        {"attn_implementation": "owner/kernel"},
        {"_attn_implementation": "owner/kernel"},
        {"quantization_config": {"quant_method": "gptq", "bits": 4}},
        {"dtype": "nonsense"},
        {"auto_map": {"AutoModel": "owner/code--module.Class"}},
    ],
    ids=str,
)
def test_keys_that_would_change_how_transformers_loads_a_folder(tmp_path, key):
    folder = tmp_path / "saved"
    saved(folder, "distilbert-nano", "masked-lm")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **key}))
    done = run(f"transformers:{folder}", f"transformers:{folder}")
    assert done.exit_code == 0, done.stdout + done.stderr
