from pathlib import Path

import pytest
import torch

import encoders
from encoders.experiments.backbones import prepare_backbones
from encoders.experiments.errors import ExperimentError
from encoders.experiments.labelling import labelled_texts
from encoders.experiments.settings import Settings
from encoders.experiments.tokenizers import shared_tokenizer
from tests.encoders.experiments.samples import peptide_rows, sentence_rows

SENTENCES = labelled_texts(sentence_rows(), name="data.csv")
PEPTIDES = labelled_texts(peptide_rows(), name="peptides.csv", text_column="helm", label_column="share")


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """A bare encoder with a vocabulary that differs from the shared one."""
    tokenizer = shared_tokenizer(["grey warm cold", "grey warm cold"])
    folder = tmp_path / "trained"
    torch.manual_seed(0)
    model = encoders.create("norbert3-nano", vocab_size=len(tokenizer), pad_token_id=0)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def test_presets_share_one_tokenizer_and_start_from_fresh_weights():
    first, second = prepare_backbones(["distilbert-nano", "norbert3-nano"], SENTENCES, Settings())
    assert first.tokenizer is second.tokenizer
    assert first.texts is second.texts
    assert not first.pretrained
    model = first.new_model()
    assert model.config.vocab_size == len(first.tokenizer)
    assert model.config.id2label == {0: "cold", 1: "warm"}
    assert model.config.problem_type == "single_label_classification"
    assert first.parameters == sum(parameter.numel() for parameter in model.parameters())


def test_helm_strings_give_a_regression_head_over_the_helm_vocabulary():
    for backbone in prepare_backbones(encoders.list_encoders("*-nano"), PEPTIDES, Settings()):
        config = backbone.new_model().config
        assert (config.vocab_size, config.num_labels, config.problem_type) == (78, 1, "regression")


def test_a_checkpoint_brings_its_weights_and_its_tokenizer(checkpoint: str):
    fresh, trained = prepare_backbones(["norbert3-nano", checkpoint], SENTENCES, Settings())
    assert trained.pretrained
    assert len(trained.tokenizer) < len(fresh.tokenizer)
    torch.manual_seed(1)
    loaded, saved = trained.new_model(), encoders.load(checkpoint)
    assert loaded.config.num_labels == 2
    weights = loaded.state_dict()
    assert all(torch.equal(weights[name], tensor) for name, tensor in saved.state_dict().items())


def test_weights_saved_in_half_precision_are_trained_in_full(checkpoint: str):
    encoders.load(checkpoint).to(torch.bfloat16).save_pretrained(checkpoint)
    [backbone] = prepare_backbones([checkpoint], SENTENCES, Settings())
    assert backbone.new_model().dtype == torch.float32


def test_the_pooling_that_is_asked_for_reaches_every_model():
    backbones = prepare_backbones(["distilbert-nano", "helmbert-nano"], SENTENCES, Settings(pooling="mean"))
    assert {backbone.new_model().config.pooling for backbone in backbones} == {"mean"}
    published = prepare_backbones(["distilbert-nano", "helmbert-nano"], SENTENCES, Settings())
    assert [backbone.new_model().config.pooling for backbone in published] == ["cls", "mean"]


def test_the_fingerprint_follows_the_weights_the_configuration_and_the_token_ids(checkpoint: str):
    [first] = prepare_backbones([checkpoint], SENTENCES, Settings())
    [again] = prepare_backbones([checkpoint], SENTENCES, Settings())
    assert first.sha256 == again.sha256
    [pooled] = prepare_backbones([checkpoint], SENTENCES, Settings(pooling="mean"))
    [cut] = prepare_backbones([checkpoint], SENTENCES, Settings(max_length=5))
    model = encoders.load(checkpoint)
    with torch.no_grad():
        next(model.parameters()).add_(1e-3)
    model.save_pretrained(checkpoint)
    [moved] = prepare_backbones([checkpoint], SENTENCES, Settings())
    assert len({first.sha256, pooled.sha256, cut.sha256, moved.sha256}) == 4


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "no backbones are given"),
        (["norbert3-nano", "norbert3-nano"], "backbone norbert3-nano is given twice"),
        (["norbert-nano"], "backbone norbert-nano: unknown encoder 'norbert-nano'. Did you mean 'norbert3-nano'"),
        (["./absent/folder"], r"backbone ./absent/folder: there is no such folder"),
    ],
)
def test_names_that_lead_nowhere_are_refused(names: list[str], message: str):
    with pytest.raises(ExperimentError, match=message) as refusal:
        prepare_backbones(names, SENTENCES, Settings())
    assert "\n" not in str(refusal.value)


def test_a_folder_without_a_model_is_refused(tmp_path: Path):
    with pytest.raises(ExperimentError, match=f"backbone {tmp_path}: ") as refusal:
        prepare_backbones([str(tmp_path)], SENTENCES, Settings())
    assert "\n" not in str(refusal.value)


def test_a_head_that_is_made_afresh_is_said_once(checkpoint: str, recwarn: pytest.WarningsRecorder):
    [backbone] = prepare_backbones([checkpoint], SENTENCES, Settings())
    assert any("freshly initialised" in remark and "head" in remark for remark in backbone.remarks)
    backbone.new_model()
    assert len(recwarn) == 0


def test_a_maximum_length_beyond_what_a_backbone_takes_is_refused():
    with pytest.raises(
        ExperimentError, match="backbone distilbert-nano: it takes 512 tokens at most, not --max-length 600"
    ):
        prepare_backbones(["norbert3-nano", "distilbert-nano"], SENTENCES, Settings(max_length=600))
    for name in ("norbert3-nano", "helmbert-nano"):
        [any_length] = prepare_backbones([name], SENTENCES, Settings(max_length=600))
        assert any_length.texts.truncated == {"train": 0, "dev": 0, "test": 0}


def test_over_long_rows_are_refused_where_no_maximum_length_is_given():
    rows = sentence_rows()
    rows[5]["text"] = "house " * 600
    data = labelled_texts(rows, name="data.csv")
    with pytest.raises(ExperimentError, match=r"1 row over-long for distilbert-nano, .* 512 .* row 6 .* with 602"):
        prepare_backbones(["distilbert-nano"], data, Settings())
    [cut] = prepare_backbones(["distilbert-nano"], data, Settings(max_length=512))
    assert sum(cut.texts.truncated.values()) == 1
