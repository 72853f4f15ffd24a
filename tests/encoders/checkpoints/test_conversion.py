"""`encoders convert`: into our own form, and back into that of the published code."""

from __future__ import annotations

import json
import warnings

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer, DistilBertForMaskedLM, DistilBertForSequenceClassification

import encoders
import encoders.auto
from encoders import CheckpointError
from encoders.checkpoints.conversion import convert_checkpoint
from encoders.distilbert import DistilBertForSequenceClassification as OurDistilBert
from encoders.norbert.checkpoints import PUBLISHED_CODE
from tests.encoders.checkpoints.folders import golden_folder, write_json
from tests.encoders.checkpoints.references import reference_model, small_bert
from tests.encoders.checkpoints.tokenizer_files import HPLT_SPECIALS, write_word_piece
from tests.support import assert_close, inputs_of, make_batch, make_model, real

MASKED_LM = {
    "helmbert": "helmbert-masked-lm",
    "norbert3": "norbert-interleaved-masked-lm",
    "bnc": "norbert-interleaved-masked-lm",
    "hplt": "norbert-contiguous-masked-lm",
    "distilbert-3": "distilbert-masked-lm",
}
CLASSES = {
    "helmbert": ("HELMBertForMaskedLM", "helmbert"),
    "norbert3": ("NorbertForMaskedLM", None),
    "bnc": ("LtgBertForMaskedLM", "bert"),
    "hplt": ("LtgbertForMaskedLM", None),
    "distilbert-3": ("DistilBertForMaskedLM", "distilbert"),
}


def config_of(folder):
    return json.loads((folder / "config.json").read_text())


@pytest.mark.parametrize("form", MASKED_LM)
@pytest.mark.parametrize("to", ["transformers", "upstream"])
def test_there_and_back(form, to, tmp_path):
    """The head stays, the numbers stay, and what was left open is settled."""
    folder, task, tensors = golden_folder(form, MASKED_LM[form], tmp_path)
    target = tmp_path / "target"
    report, _ = convert_checkpoint(str(folder), target, to)
    assert not report.missing
    again, second = encoders.load(str(target), task=task, return_report=True)
    assert not second.notes
    assert second.layout == ("NorBERT3" if to == "transformers" and form in ("bnc", "hplt") else report.layout)
    with warnings.catch_warnings(action="ignore"):
        first = encoders.load(str(folder), task=task)
    assert all(torch.equal(value, again.state_dict()[key]) for key, value in first.state_dict().items())
    with torch.no_grad():
        logits = [model(**inputs_of(tensors["in"])).logits for model in (first, again)]
    assert_close(logits[1], logits[0], 1e-6)


@pytest.mark.parametrize("form", MASKED_LM)
def test_the_published_form(form, tmp_path):
    """Class names, model type, and all tensors under both names of the tied one, the tables of positions included."""
    folder, _, tensors = golden_folder(form, MASKED_LM[form], tmp_path)
    with warnings.catch_warnings(action="ignore"):
        model = encoders.load(str(folder), task="masked-lm")
    model.save_pretrained(tmp_path / "ours")
    convert_checkpoint(str(tmp_path / "ours"), tmp_path / "target", "upstream")
    config, stored = config_of(tmp_path / "target"), load_file(tmp_path / "target" / "model.safetensors")
    assert config["architectures"] == [CLASSES[form][0]]
    assert config.get("model_type") == CLASSES[form][1]
    assert ("auto_map" in config) == (form != "distilbert-3")
    assert stored.keys() == tensors["param"].keys()
    for name, value in tensors["param"].items():
        assert torch.equal(stored[name], value), name


@pytest.mark.parametrize(
    ("form", "head"), [("helmbert", "MaskedLM"), ("norbert3", "TokenClassification"), ("hplt", "MaskedLM")]
)
def test_the_published_code_reads_it(reference, form, head, tmp_path):
    """The reference implementation, loading strictly, gives our numbers."""
    model, fields = reference_model(reference, form, head)
    name = {"helmbert": "helmbert-nano"}.get(form, "norbert3-nano")
    options = (
        {"vocab_size": 78}
        if form == "helmbert"
        else {"position_projection": "contiguous" if form == "hplt" else "interleaved"}
    )
    task = "masked-lm" if head == "MaskedLM" else "token-classification"
    ours = make_model(name, task, **{**fields, **options})
    ours.save_pretrained(tmp_path / "ours")
    convert_checkpoint(str(tmp_path / "ours"), tmp_path / "target", "upstream")
    model.load_state_dict(load_file(tmp_path / "target" / "model.safetensors"), strict=True)
    ids = torch.randint(5 if form == "helmbert" else 110, 78 if form == "helmbert" else 200, (2, 30))
    mask = (torch.arange(30) < torch.tensor([30, 11])[:, None]).long()
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):
        expected = model(input_ids=ids, attention_mask=mask, return_dict=True).logits
        assert_close(real(ours(ids, mask).logits, mask), real(expected, mask), 1e-5)


@pytest.mark.parametrize("cls", [DistilBertForMaskedLM, DistilBertForSequenceClassification])
def test_transformers_own_class_reads_distilbert(cls, tmp_path):
    task = "masked-lm" if cls is DistilBertForMaskedLM else "sequence-classification"
    ours = make_model("distilbert-nano", task)
    ours.save_pretrained(tmp_path / "ours")
    convert_checkpoint(str(tmp_path / "ours"), tmp_path / "target", "upstream")
    theirs, info = cls.from_pretrained(tmp_path / "target", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    inputs = inputs_of(make_batch(task))
    with torch.no_grad():
        mask = inputs["attention_mask"]
        assert_close(real(theirs.eval()(**inputs).logits, mask), real(ours(**inputs).logits, mask), 1e-5)


def test_a_bert_becomes_a_distilbert(tmp_path):
    small_bert().save_pretrained(tmp_path / "bert")
    report, _ = convert_checkpoint(str(tmp_path / "bert"), tmp_path / "target")
    assert report.layout == "BERT"
    assert config_of(tmp_path / "target")["architectures"] == ["DistilBertModel"]
    assert encoders.load(str(tmp_path / "target"), return_report=True)[1].layout == "DistilBERT"


@pytest.mark.parametrize(
    ("name", "task", "options", "message"),
    [
        ("helmbert-nano", "token-classification", {}, "the published code has no HELMBertForTokenClassification"),
        ("norbert3-nano", "sequence-classification", {"pooling": "mean"}, "pools by 'mean' and the published code by"),
        ("norbert3-nano", "masked-lm", {"num_reserved_ids": 20}, r"no published code computes .*'interleaved'"),
        (
            "norbert3-nano",
            "masked-lm",
            {"num_reserved_ids": 0, "position_projection": "contiguous"},
            r"'contiguous' with num_reserved_ids=0; it knows interleaved with 107; interleaved with 0; contiguous with",
        ),
    ],
)
def test_what_the_published_code_can_not_do_is_refused(name, task, options, message, tmp_path):
    make_model(name, task, **options).save_pretrained(tmp_path / "ours")
    with pytest.raises(CheckpointError, match=message):
        convert_checkpoint(str(tmp_path / "ours"), tmp_path / "target", "upstream")


def test_pruned_heads_stay_ours(tmp_path):
    model = make_model("distilbert-nano", "sequence-classification")
    assert isinstance(model, OurDistilBert)
    model.prune_heads({0: [1]})
    model.save_pretrained(tmp_path / "ours")
    convert_checkpoint(str(tmp_path / "ours"), tmp_path / "target")
    loaded = encoders.load(str(tmp_path / "target"), task="sequence-classification")
    assert loaded.config.pruned_heads == {0: [1]}
    assert all(torch.equal(value, loaded.state_dict()[key]) for key, value in model.state_dict().items())
    with pytest.raises(CheckpointError, match=r"heads were pruned \(\{0: \[1\]\}\)"):
        convert_checkpoint(str(tmp_path / "ours"), tmp_path / "other", "upstream")


def test_upstream_names_of_classes():
    classes = PUBLISHED_CODE[2].classes()
    assert classes["AutoConfig"] == "configuration_ltgbert.LtgbertConfig"
    assert classes["AutoModel"] == "modeling_ltgbert.LtgbertModel"
    assert classes["AutoModelForMaskedLM"] == "modeling_ltgbert.LtgbertForMaskedLM"
    assert len(classes) == 7


def test_head_dropout_under_both_names(tmp_path):
    make_model("norbert3-nano", "token-classification", classifier_dropout=0.4).save_pretrained(tmp_path / "ours")
    convert_checkpoint(str(tmp_path / "ours"), tmp_path / "target", "upstream")
    config = config_of(tmp_path / "target")
    assert config["cls_dropout"] == 0.4
    assert "classifier_dropout" not in config
    assert encoders.load(str(tmp_path / "target")).config.classifier_dropout == 0.4


@pytest.mark.parametrize("to", ["transformers", "upstream"])
def test_the_tokenizer_goes_along(to, tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    size = write_word_piece(source, HPLT_SPECIALS)
    make_model("norbert3-nano", None, vocab_size=size).save_pretrained(source)
    convert_checkpoint(str(source), target, to)
    before, after = (encoders.load_tokenizer(str(folder))("hello 1").input_ids for folder in (source, target))
    assert after == before
    if to == "transformers":
        assert AutoTokenizer.from_pretrained(target)("hello 1").input_ids[0] == 2


def test_helm_berts_published_code_has_its_own_vocabulary(tmp_path):
    source = tmp_path / "source"
    make_model("helmbert-nano", None, vocab_size=78).save_pretrained(source)
    write_json(source / "tokenizer_config.json", {"tokenizer_class": "HELMBertTokenizer"})
    convert_checkpoint(str(source), tmp_path / "ours")
    assert (tmp_path / "ours" / "tokenizer.json").exists()
    convert_checkpoint(str(source), tmp_path / "theirs", "upstream")
    assert {path.name for path in (tmp_path / "theirs").iterdir()} == {"config.json", "model.safetensors"}


def test_targets_and_forms(tmp_path):
    make_model("norbert3-nano", None).save_pretrained(tmp_path / "source")
    with pytest.raises(ValueError, match="exists and is not an empty folder"):
        convert_checkpoint(str(tmp_path / "source"), tmp_path / "source")
    with pytest.raises(ValueError, match="unknown form 'onnx'; allowed: transformers, upstream"):
        convert_checkpoint(str(tmp_path / "source"), tmp_path / "target", "onnx")
    (tmp_path / "empty").mkdir()
    convert_checkpoint(str(tmp_path / "source"), tmp_path / "empty")
    assert (tmp_path / "empty" / "model.safetensors").exists()
