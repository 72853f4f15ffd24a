"""Hub ids: what is fetched, and what is said when nothing can be. No hub is reached here."""

from __future__ import annotations

import shutil
from fnmatch import fnmatch

import pytest
import torch

import encoders
from encoders import CheckpointError
from encoders.checkpoints import hub
from tests.encoders.checkpoints.folders import write_code
from tests.support import make_model


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A folder that stands for a repository on a hub, and what was asked of it."""
    origin, cache, asked = tmp_path / "origin", tmp_path / "cache", []
    model = make_model("norbert3-nano", None, hidden_size=32, intermediate_size=48)
    model.save_pretrained(origin)
    write_code(origin, "modeling_norbert")
    (origin / "tf_model.h5").touch()
    (origin / "README.md").touch()

    def snapshot_download(repository, *, revision, allow_patterns):
        asked.append((repository, revision))
        for path in origin.iterdir():
            if any(fnmatch(path.name, pattern) for pattern in allow_patterns):
                cache.mkdir(exist_ok=True)
                shutil.copyfile(path, cache / path.name)
        return str(cache)

    monkeypatch.setattr(hub, "snapshot_download", snapshot_download)
    return origin, cache, asked, model


def fetched(cache):
    return {path.name for path in cache.iterdir()}


def test_weights_and_texts_are_fetched_but_no_code(repository):
    origin, cache, asked, model = repository
    torch.save(model.state_dict(), origin / "pytorch_model.bin")
    loaded, report = encoders.load("ltg/norbert3-tiny", revision="step3125", return_report=True)
    assert asked == [("ltg/norbert3-tiny", "step3125")]
    assert fetched(cache) == {"config.json", "model.safetensors"}
    assert report.source == loaded.config.name_or_path == "ltg/norbert3-tiny"
    assert all(torch.equal(value, loaded.state_dict()[key]) for key, value in model.state_dict().items())


def test_pickles_are_fetched_only_where_there_is_nothing_else(repository):
    origin, cache, asked, model = repository
    (origin / "model.safetensors").unlink()
    torch.save(model.state_dict(), origin / "pytorch_model.bin")
    encoders.load("ltg/norbert3-tiny")
    assert len(asked) == 2
    assert fetched(cache) == {"config.json", "pytorch_model.bin"}


def test_a_tokenizer_needs_no_weights(repository):
    origin, cache, asked, _ = repository
    (origin / "tokenizer_config.json").write_text('{"tokenizer_class": "HELMBertTokenizer"}')
    assert encoders.load_tokenizer("a/b").mask_token == "¶"
    assert asked == [("a/b", None)]
    assert fetched(cache) == {"config.json", "tokenizer_config.json"}


@pytest.mark.parametrize("load", [encoders.load, encoders.load_tokenizer])
def test_no_connection_is_one_clear_sentence(load, monkeypatch):
    def snapshot_download(*args, **kwargs):
        raise FileNotFoundError("Got: ConnectError: [Errno -2] Name or service not known\nAn error happened while ...")

    monkeypatch.setattr(hub, "snapshot_download", snapshot_download)
    message = (
        r"there is no folder 'ltg/norbert3-base', and it could not be fetched from the hub: Got: ConnectError: "
        r"\[Errno -2\] Name or service not known\. Give the path of a folder"
    )
    with pytest.raises(CheckpointError, match=message) as refusal:
        load("ltg/norbert3-base")
    assert "\n" not in str(refusal.value)


def test_an_offline_machine(monkeypatch, tmp_path):
    """The real client, told to stay offline, with an empty cache."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(CheckpointError, match=r"could not be fetched from the hub: .*\. Give the path of a folder"):
        encoders.load("encoders-nobody/encoders-nothing")


@pytest.mark.parametrize("source", ["./absent", "../absent/x", "a/b/c", "/absent", "", "a b", "~/absent", "..", "x\n"])
def test_paths_that_are_not_there_are_not_asked_for(source, monkeypatch):
    monkeypatch.setattr(hub, "snapshot_download", None)
    monkeypatch.chdir("/")
    with pytest.raises(CheckpointError):
        encoders.load(source)
