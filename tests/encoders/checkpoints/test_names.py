"""Names of tensors: wrappers, prefixes, tied tensors, and the tables that translate them."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

import encoders
from encoders import CheckpointError
from encoders.distilbert.checkpoints import BERT_KEYS
from encoders.norbert.checkpoints import KEYS
from tests.encoders.checkpoints.folders import golden_folder
from tests.support import NANO, assert_close, inputs_of, make_batch, make_model

every_encoder = pytest.mark.parametrize("name", NANO)
TIED = {
    "helmbert-nano": ("lm_head.decoder.weight", "helmbert.embeddings.word_embeddings.weight"),
    "norbert3-nano": ("classifier.nonlinearity.5.weight", "embedding.word_embedding.weight"),
    "distilbert-nano": ("vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight"),
}


@pytest.fixture
def saved(name, tmp_path):
    """A folder with a masked-LM model, and its tensors, tied ones under both names."""
    model = make_model(name, "masked-lm")
    model.save_pretrained(tmp_path)
    return tmp_path, {key: value.clone() for key, value in model.state_dict().items()}


def load(folder, tensors, **options):
    save_file(tensors, folder / "model.safetensors")
    return encoders.load(str(folder), **options)


def is_tied(model):
    return model.get_output_embeddings().weight is model.get_input_embeddings().weight


@every_encoder
@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "module._orig_mod.", "module.module."])
def test_wrappers(name, prefix, saved):
    folder, tensors = saved
    loaded = load(folder, {prefix + key: value for key, value in tensors.items()}, task="masked-lm").state_dict()
    assert all(torch.equal(loaded[key], value) for key, value in tensors.items())


@pytest.mark.parametrize("name", ["norbert3-nano"])
@pytest.mark.parametrize("prefix", ["norbert3.", "ltgbert.", "_orig_mod.norbert3.", "module.ltgbert."])
def test_prefixes_of_bare_models(name, prefix, saved):
    folder, tensors = saved
    wrapped = {key if key.startswith("classifier") else prefix + key: value for key, value in tensors.items()}
    loaded = load(folder, wrapped, task="masked-lm").state_dict()
    assert all(torch.equal(loaded[key], value) for key, value in tensors.items())


@pytest.mark.parametrize("name", ["norbert3-nano"])
def test_layers_that_were_compiled_one_by_one(name, saved):
    folder, tensors = saved
    parts = {key.replace(".attention.", "._orig_mod.attention."): value for key, value in tensors.items()}
    loaded = load(folder, parts, task="masked-lm").state_dict()
    assert all(torch.equal(loaded[key], value) for key, value in tensors.items())


@pytest.mark.parametrize("name", ["norbert3-nano"])
def test_two_tensors_for_one_place(name, saved):
    folder, tensors = saved
    both = {**tensors, "norbert3.embedding.relative_embedding": tensors["embedding.relative_embedding"].clone()}
    with pytest.raises(CheckpointError, match=r"both claim the place of .embedding\.relative_embedding."):
        load(folder, both)


@every_encoder
def test_both_tied_tensors_equal(name, saved):
    folder, tensors = saved
    model, report = load(folder, tensors, task="masked-lm", return_report=True)
    assert is_tied(model)
    assert report.tied == {TIED[name][0]: TIED[name][1]}
    assert not report.unexpected


@every_encoder
def test_both_tied_tensors_different(name, saved, tmp_path):
    """Kept apart, with one warning; and saved and loaded again so, without one."""
    folder, tensors = saved
    decoder, embeddings = TIED[name]
    tensors[decoder] = tensors[decoder] + 1
    with pytest.warns(UserWarning, match="should be one tensor, but differ") as caught:
        model, report = load(folder, tensors, task="masked-lm", return_report=True)
    assert len(caught) == 1
    assert not is_tied(model)
    assert not report.tied
    model.save_pretrained(tmp_path / "again")
    for one in (model, encoders.load(str(tmp_path / "again"), task="masked-lm")):
        state = one.state_dict()
        assert torch.equal(state[decoder], tensors[decoder])
        assert torch.equal(state[embeddings], tensors[embeddings])


@every_encoder
def test_a_bare_model_has_no_decoder_to_be_different(name, saved):
    folder, tensors = saved
    decoder, embeddings = TIED[name]
    tensors[decoder] = tensors[decoder] + 1
    model = load(folder, tensors)
    assert torch.equal(model.get_input_embeddings().weight, tensors[embeddings])


@every_encoder
@pytest.mark.parametrize("task", ["masked-lm", None])
@pytest.mark.parametrize("kept", [0, 1])
def test_one_tied_tensor_under_either_name(name, task, kept, saved):
    """A file with only the decoder must never leave the embeddings random (transformers #41038)."""
    folder, tensors = saved
    values = tensors.pop(TIED[name][1 - kept])
    if kept == 0:
        tensors[TIED[name][0]] = values
    model = load(folder, tensors, task=task)
    assert torch.equal(model.get_input_embeddings().weight, values)
    if task is not None:
        assert is_tied(model)


@every_encoder
def test_neither_tied_tensor(name, saved):
    folder, tensors = saved
    for key in TIED[name]:
        del tensors[key]
    with pytest.raises(CheckpointError, match=r"lacks tensors that the configuration asks for: .*word_embedding"):
        load(folder, tensors, task="masked-lm")


@pytest.mark.parametrize("present", [True, False])
def test_position_indices_are_not_needed(present, tmp_path):
    """The same logits with the published tables, without them, and with wrong ones (transformers #48892)."""
    folder, task, tensors = golden_folder("hplt", "norbert-contiguous-masked-lm", tmp_path)
    stored = load_file(folder / "model.safetensors")
    tables = [name for name in stored if name.endswith("position_indices")]
    assert len(tables) == 3
    for name in tables:
        stored[name] = stored[name] * 0
        if not present:
            del stored[name]
    model, report = load(folder, stored, task=task, return_report=True, position_projection="contiguous")
    assert not report.unexpected
    with torch.no_grad():
        logits = model(**inputs_of(tensors["in"])).logits
    mask = tensors["in"]["attention_mask"].bool()
    assert_close(logits[mask][:, 107:], tensors["out"]["logits"][mask][:, 107:], 1e-5)


@every_encoder
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_types(name, dtype, saved):
    """Loaded in the type of the file by default, or in the one that is asked for."""
    folder, tensors = saved
    stored = {key: value.to(dtype) for key, value in tensors.items()}
    model, report = load(folder, stored, return_report=True)
    assert {parameter.dtype for parameter in model.parameters()} == {dtype}
    assert report.dtype == str(dtype).removeprefix("torch.")
    assert json.loads(model.config.to_json_string())["dtype"] == report.dtype
    assert load(folder, stored, dtype="auto").dtype == dtype
    full = load(folder, stored, dtype="float32")
    key = "embedding.word_embedding.weight" if name == "norbert3-nano" else "embeddings.word_embeddings.weight"
    assert torch.equal(full.state_dict()[key], stored[TIED[name][1]].float())
    with torch.no_grad():
        assert full(**inputs_of(make_batch(None))).last_hidden_state.isfinite().all()


@pytest.mark.parametrize("name", ["norbert3-nano"])
def test_mixed_types_give_the_widest(name, saved):
    folder, tensors = saved
    stored = {key: value if value.dim() < 2 else value.half() for key, value in tensors.items()}
    assert load(folder, stored).dtype == torch.float32
    with pytest.raises(encoders.ConfigurationError, match="dtype is 'int8'; allowed: float64"):
        load(folder, stored, dtype="int8")


def test_tables_can_be_reversed():
    published = {
        "bert.encoder.layer.11.attention.output.LayerNorm.bias": "transformer.layer.11.sa_layer_norm.bias",
        "encoder.layer.0.output.dense.weight": "transformer.layer.0.ffn.lin2.weight",
        "module.bert.embeddings.LayerNorm.gamma": "embeddings.LayerNorm.weight",
        "cls.predictions.bias": "vocab_projector.bias",
    }
    for theirs, ours in published.items():
        assert BERT_KEYS.ours(theirs) == ours
        assert BERT_KEYS.ours(BERT_KEYS.published(ours)) == ours
        assert BERT_KEYS.published(ours) == BERT_KEYS.plain(theirs)
    assert BERT_KEYS.ours("bert.pooler.dense.weight") is None
    assert KEYS.ours("norbert3.transformer.layers.0.mlp.mlp.1.weight") == "transformer.layers.0.mlp.mlp.1.weight"
    assert KEYS.published("classifier.nonlinearity.1.bias") == "classifier.nonlinearity.1.bias"


@pytest.mark.parametrize("name", ["distilbert-nano"])
def test_every_tensor_of_a_bert_has_a_place_and_a_way_back(name, saved):
    _, tensors = saved
    for full in tensors:
        ours = full.removeprefix("distilbert.")
        published = BERT_KEYS.published(ours)
        assert published != ours or ours.startswith("embeddings")
        assert BERT_KEYS.ours(published) == ours
