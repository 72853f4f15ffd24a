"""Which family, which layout: by class names, tensors and model type, in this order, and never by running code."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    BertConfig,
    BertModel,
    DebertaConfig,
    DebertaModel,
    DebertaV2Config,
    DebertaV2Model,
    RobertaConfig,
    RobertaModel,
)

import encoders
from encoders import CheckpointError
from encoders.checkpoints.recognition import recognise
from tests.encoders.checkpoints.folders import code_was_run, golden_folder, write_code, write_json
from tests.support import NANO, make_model

LTG = ["embedding.relative_embedding", "transformer.layers.0.attention.in_proj_qk.weight"]
HELM = ["helmbert.encoder.ngie_layer.conv.weight", "helmbert.encoder.layers.0.self_attn.query_proj.weight"]
DISTIL = ["distilbert.transformer.layer.0.attention.q_lin.weight"]
BERT = ["bert.embeddings.token_type_embeddings.weight", "bert.encoder.layer.0.attention.self.query.weight"]
TINY = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}


@pytest.mark.parametrize(
    ("config", "tensors", "layout", "evidence"),
    [
        ({"architectures": ["NorbertForMaskedLM"]}, LTG, "NorBERT3", "architectures"),
        ({"architectures": ["LtgbertForMaskedLM"]}, LTG, "HPLT", "architectures"),
        ({"architectures": ["LtgBertForMaskedLM"], "model_type": "bert"}, LTG, "LTG-BERT", "architectures"),
        ({"auto_map": {"AutoModel": "modeling_ltgbert.LtgbertModel"}}, LTG, "HPLT", "auto_map"),
        ({"auto_map": {"AutoModel": "ltg/norbert3-base--modeling_norbert.NorbertModel"}}, LTG, "NorBERT3", "auto_map"),
        ({"architectures": ["Unknown"], "auto_map": {"AutoModel": "m.NorbertModel"}}, LTG, "NorBERT3", "auto_map"),
        ({"model_type": "bert"}, LTG, "LTG-BERT", "tensor names"),
        ({"architectures": ["BertForMaskedLM"], "model_type": "bert"}, LTG, "LTG-BERT", "tensor names"),
        ({}, LTG, "LTG-BERT", "tensor names"),
        ({"architectures": None, "auto_map": "nonsense"}, HELM, "HELM-BERT", "tensor names"),
        ({"model_type": "helmbert"}, HELM, "HELM-BERT", "tensor names"),
        ({"architectures": ["DistilBertModel"]}, DISTIL, "DistilBERT", "architectures"),
        ({"architectures": [3, {}]}, DISTIL, "DistilBERT", "tensor names"),
        ({"architectures": ["BertModel"]}, BERT, "BERT", "architectures"),
        ({"model_type": "bert"}, BERT, "BERT", "model_type"),
    ],
)
def test_evidence(config, tensors, layout, evidence):
    found = recognise("somewhere", config, tensors)
    assert (found.layout.name, found.evidence) == (layout, evidence)


@pytest.mark.parametrize(
    ("config", "tensors"),
    [
        ({}, BERT),
        ({"architectures": ["NorbertModel"]}, BERT),
        ({"architectures": ["XLMRobertaModel"], "model_type": "xlm-roberta"}, BERT),
        ({"architectures": ["SomeModel"], "model_type": "bert"}, BERT),
        ({"architectures": ["HELMBertModel"]}, ["a", "b"]),
        ({"model_type": "norbert"}, []),
    ],
)
def test_no_family(config, tensors):
    with pytest.raises(CheckpointError, match=r"somewhere is of no family here: .* These can be loaded: HELM-BERT"):
        recognise("somewhere", config, tensors)


@pytest.mark.parametrize(
    ("name", "class_name", "tensor"),
    [
        ("ELC-BERT", "LtgBertForMaskedLM", "transformer.layers.0.prev_layer_weights"),
        ("ELC-BERT", "ElcBertForMaskedLM", "x"),
        ("GPT-BERT", "NorbertForMaskedLM", "transformer.attention_layers.0.in_proj_qk.weight"),
        ("GPT-BERT", "GPTBertForMaskedLM", "module.transformer.mlp_layers.0.mlp.1.weight"),
        ("GPT-BERT", "LtgbertModel", "transformer.layers.0.attention.in_proj_vg.weight"),
        ("NorBERT4", "Norbert4Model", "x"),
        ("DeBERTa", "DebertaV2Model", "x"),
        ("DeBERTa", "HELMBertModel", "deberta.encoder.layer.0.attention.self.query_proj.weight"),
    ],
)
def test_siblings_are_refused_by_name(name, class_name, tensor):
    """Also where their configuration says that they are one of ours."""
    with pytest.raises(CheckpointError, match=rf"somewhere is .*{name}.* \(seen by '.*'\), which can't be loaded: it "):
        recognise("somewhere", {"architectures": [class_name], "model_type": "bert"}, [*LTG, *HELM, tensor])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: DebertaV2Model(DebertaV2Config(**TINY, relative_attention=True, pos_att_type=["c2p"])), "is DeBERTa"),
        (lambda: DebertaModel(DebertaConfig(**TINY, relative_attention=True, pos_att_type=["c2p"])), "is DeBERTa"),
        (lambda: RobertaModel(RobertaConfig(**TINY)), "of no family here: .* RobertaModel and model_type 'roberta'"),
    ],
)
def test_real_neighbours_are_refused(model, message, tmp_path):
    model().save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=message):
        encoders.load(str(tmp_path))


def test_elc_bert_as_a_folder(tmp_path):
    folder, _, _ = golden_folder("babylm", "norbert-contiguous-masked-lm", tmp_path)
    state = torch.load(folder / "pytorch_model.bin", weights_only=True)
    state |= {f"transformer.layers.{i}.prev_layer_weights": torch.ones(i + 1) for i in range(3)}
    torch.save(state, folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"is ELC-BERT .* no residual around its attention"):
        encoders.load(str(folder))


@pytest.mark.parametrize("name", NANO)
def test_code_in_the_folder_is_never_run(name, tmp_path):
    """A folder that names remote code loads without it, whether it is there or not (ltgoslo/norbench #37)."""
    model = make_model(name, None)
    model.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    mapped = {
        "AutoConfig": "evil.Config",
        "AutoModel": f"evil.{type(model).__name__}",
        "AutoTokenizer": ["evil.T", None],
    }
    write_json(tmp_path / "config.json", {**config, "auto_map": mapped})
    write_code(tmp_path, "evil", "modeling_norbert", "__init__", "config", "torch")
    loaded, report = encoders.load(str(tmp_path), return_report=True)
    assert type(loaded) is type(model)
    assert not code_was_run(tmp_path)
    assert not hasattr(loaded.config, "auto_map")
    assert report.evidence == "architectures"
    for file in tmp_path.glob("*.py"):
        file.unlink()
    assert type(encoders.load(str(tmp_path))) is type(model)


def test_trust_in_remote_code_can_not_be_asked_for(tmp_path):
    make_model("norbert3-nano", None).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="has no field 'trust_remote_code'"):
        encoders.load(str(tmp_path), trust_remote_code=True)


def test_unknown_keys_are_kept_but_nothing_is_done_with_them(tmp_path):
    make_model("helmbert-nano", None).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    write_json(tmp_path / "config.json", {**config, "from_the_future": [1, 2]})
    assert encoders.load(str(tmp_path)).config.from_the_future == [1, 2]


@pytest.mark.parametrize("name", ["to_dict", "check", "__init__", "num_outputs", "base_model_tp_plan", "sub_configs"])
def test_keys_that_would_replace_a_part_of_the_class_are_passed_over(name, tmp_path):
    make_model("norbert3-nano", None).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    write_json(tmp_path / "config.json", {**config, name: 1})
    assert getattr(encoders.load(str(tmp_path)).config, name) != 1


def test_the_backend_is_chosen_here(tmp_path):
    make_model("norbert3-nano", None).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    write_json(tmp_path / "config.json", {**config, "attn_implementation": "flash_attention_2"})
    assert encoders.load(str(tmp_path)).config._attn_implementation == "sdpa"
    assert encoders.load(str(tmp_path), attn_implementation="eager").config._attn_implementation == "eager"


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_size": "large"},
        {"num_attention_heads": 7},
        {"pooling": "max"},
        {"num_hidden_layers": -1},
        {"id2label": "x"},
        {"num_labels": {}},
        {"vocab_size": None},
    ],
)
def test_a_configuration_that_can_not_be(change, tmp_path):
    make_model("norbert3-nano", None).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    write_json(tmp_path / "config.json", {**config, **change})
    with pytest.raises(CheckpointError, match=r"config\.json can't be used: "):
        encoders.load(str(tmp_path))


def test_a_model_that_can_not_be(tmp_path):
    make_model("norbert3-nano", None).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    write_json(tmp_path / "config.json", {**config, "num_reserved_ids": config["vocab_size"]})
    with pytest.raises(
        CheckpointError, match=r"no model can be made of the configuration: num_reserved_ids 140 leaves"
    ):
        encoders.load(str(tmp_path), task="masked-lm")


def test_a_bert_is_not_guessed_from_its_tensors(tmp_path):
    BertModel(BertConfig(**TINY)).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    tensors = load_file(tmp_path / "model.safetensors")
    save_file({name: value for name, value in tensors.items() if "pooler" not in name}, tmp_path / "model.safetensors")
    write_json(tmp_path / "config.json", {**config, "architectures": ["MyEncoder"]})
    with pytest.raises(CheckpointError, match="class names MyEncoder and model_type 'bert'"):
        encoders.load(str(tmp_path))
