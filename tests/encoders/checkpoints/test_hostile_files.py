"""Files made to do harm: no code of theirs runs, and nothing outside their folder is read.

What honest and damaged files do is in test_files.py and test_damage.py; memory is in test_hostile_sizes.py.
"""

from __future__ import annotations

import json
import pickle
import sys

import pytest
import torch
from safetensors.torch import save_file

import encoders
from encoders import CheckpointError
from encoders.checkpoints.inspection import inspect_checkpoint
from tests.encoders.checkpoints.folders import auto_map, code_was_run, write_code, write_json
from tests.encoders.checkpoints.test_files import Bomb, assert_refused, saved
from tests.encoders.checkpoints.tokenizer_files import HPLT_SPECIALS, write_word_piece
from tests.support import NANO, make_model

__all__ = ["saved"]  # the fixture


def save_pickle(folder, content, form, name="pytorch_model.bin"):
    (folder / "model.safetensors").unlink(missing_ok=True)
    if form == "plain":
        (folder / name).write_bytes(pickle.dumps(content))
    else:
        torch.save(content, folder / name, _use_new_zipfile_serialization=form == "zip")


# Code


@pytest.mark.parametrize("form", ["zip", "legacy", "plain"])
@pytest.mark.parametrize("place", ["shard", "safetensors"])
def test_pickles_under_other_names(saved, form, place):
    folder, model = saved
    content = {**model.state_dict(), "more": Bomb(folder / "trace")}
    name = {"shard": "pytorch_model-00001-of-00001.bin", "safetensors": "model.safetensors"}[place]
    save_pickle(folder, content, form, name)
    if place == "shard":
        write_json(folder / "pytorch_model.bin.index.json", {"weight_map": dict.fromkeys(content, name)})
    assert_refused(folder, "truncated or corrupt" if place == "safetensors" else "is a pickle")
    assert not (folder / "trace").exists()


@pytest.mark.parametrize("form", ["zip", "plain"])
def test_other_pickles_in_the_folder_are_not_opened(saved, form):
    folder, model = saved
    for name in ("pytorch_model.bin", "training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state.pth", "model.pt"):
        content = {"more": Bomb(folder / "trace")}
        torch.save(content, folder / name) if form == "zip" else (folder / name).write_bytes(pickle.dumps(content))
    loaded = encoders.load(folder, task="masked-lm")
    assert all(torch.equal(value, loaded.state_dict()[name]) for name, value in model.state_dict().items())
    assert not (folder / "trace").exists()


@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_a_torchscript_archive(saved):
    folder, _ = saved
    (folder / "model.safetensors").unlink()
    torch.jit.script(torch.nn.Linear(2, 2)).save(str(folder / "pytorch_model.bin"))
    assert_refused(folder, "pytorch_model.bin is")


@pytest.mark.parametrize("name", NANO)
def test_code_in_the_folder(name, tmp_path, monkeypatch):
    """Whatever config.json and tokenizer_config.json name, and whatever the files are called."""
    size = write_word_piece(tmp_path, HPLT_SPECIALS)
    make_model(name, "masked-lm", vocab_size=size).save_pretrained(tmp_path)
    modules = ["modeling_x", "configuration_x", "tokenization_x", "torch", "encoders", "conftest", "__init__", "setup"]
    write_code(tmp_path, *modules)
    config = json.loads((tmp_path / "config.json").read_text())
    mapped = {**auto_map("X", "x"), "AutoTokenizer": ["tokenization_x.XTokenizer", "owner/other--tokenization_x.Y"]}
    write_json(tmp_path / "config.json", {**config, "auto_map": mapped, "custom_pipelines": {"x": {"impl": "x.X"}}})
    write_word_piece(tmp_path, HPLT_SPECIALS, tokenizer_class="XTokenizer", auto_map=mapped)
    path = list(sys.path)
    monkeypatch.chdir(tmp_path)
    encoders.load(tmp_path, task="masked-lm")
    encoders.load_tokenizer(tmp_path)
    inspect_checkpoint(str(tmp_path))
    assert not code_was_run(tmp_path)
    assert sys.path == path
    files = [str(getattr(module, "__file__", "")) for module in list(sys.modules.values())]
    assert not [file for file in files if file.startswith(str(tmp_path))]


# Files elsewhere


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "model.safetensors.index.json", "1_Pooling"])
def test_no_link_is_followed(saved, name, tmp_path_factory):
    folder, _ = saved
    outside = tmp_path_factory.mktemp("outside")
    if name == "1_Pooling":
        bert = {"architectures": ["BertModel"], "model_type": "bert", "vocab_size": 9, "hidden_size": 4}
        write_json(folder / "config.json", {**bert, "num_hidden_layers": 1, "num_attention_heads": 2})
        names = ("embeddings.token_type_embeddings.weight", "encoder.layer.0.attention.self.query.weight")
        save_file({name: torch.zeros(4, 4) for name in names}, folder / "model.safetensors")
        write_json(outside / "config.json", {"pooling_mode_mean_tokens": True})
        (folder / name).symlink_to(outside)
    else:
        (folder / name).touch()
        (folder / name).rename(outside / name)
        (folder / name).symlink_to(outside / name)
        if name.endswith("index.json"):
            (folder / "model.safetensors").unlink()
    assert_refused(folder, f"{name}.* is a link to .*, outside its folder; it isn't followed")


@pytest.mark.parametrize("file", ["tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt"])
def test_no_link_of_a_tokenizer_is_followed(file, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    write_word_piece(folder, HPLT_SPECIALS)
    (tmp_path / file).write_text("{}")
    (folder / file).unlink(missing_ok=True)
    (folder / file).symlink_to(tmp_path / file)
    with pytest.raises(CheckpointError, match=f"{file} is a link to .*, outside its folder"):
        encoders.load_tokenizer(folder)


@pytest.mark.parametrize("key", ["tokenizer_file", "vocab_file", "special_tokens_map_file", "name_or_path"])
@pytest.mark.parametrize("own", ["tokenizer.json", "vocab.txt"])
def test_paths_in_a_tokenizers_configuration_are_not_followed(key, own, tmp_path):
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    folder.mkdir()
    write_word_piece(outside, [*HPLT_SPECIALS, "secret"])
    (outside / "vocab.txt").write_text("\n".join([*HPLT_SPECIALS, "secret"]))
    write_word_piece(folder, HPLT_SPECIALS)
    if own == "vocab.txt":
        (folder / "tokenizer.json").unlink()
        (folder / "vocab.txt").write_text("\n".join(HPLT_SPECIALS))
    target = outside / ("vocab.txt" if key == "vocab_file" else "tokenizer.json")
    content = json.loads((folder / "tokenizer_config.json").read_text())
    write_json(folder / "tokenizer_config.json", {**content, key: str(target)})
    assert "secret" not in encoders.load_tokenizer(folder).get_vocab()


@pytest.mark.parametrize("name", ["a" * 5_000, "\0", "\ud800", "a/../b", "..\\b", "b\n", "~/b", "%2e%2e%2fb"])
def test_strange_names_of_shards(saved, name):
    folder, _ = saved
    (folder / "model.safetensors").unlink()
    weight_map = {"embedding.word_embedding.weight": f"{name}.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    assert_refused(folder, "is missing|only .safetensors files in the same folder are read")


@pytest.mark.parametrize("source", ["a" * 5_000, "~nobody-by-this-name/x", "\0", "a\0/b", "x/" * 3_000])
def test_strange_sources(source):
    with pytest.raises(CheckpointError, match="there is no folder"):
        encoders.load(source)
