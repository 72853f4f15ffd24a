"""transformers' pipelines on saved folders: the same results as calling the model by hand, and no code from outside.

There is no pipeline for question answering in transformers 5.
"""

from __future__ import annotations

from itertools import groupby

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel, pipeline
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

import encoders
from encoders.registry import families
from tests.ecosystem.folders import FAMILIES, save, texts_of
from tests.support import SMALL, assert_close

every_family = pytest.mark.parametrize("family", FAMILIES)
LABELS = [f"LABEL_{number}" for number in range(SMALL["num_labels"])]


class Saved:
    """A folder, its model, and pipelines of transformers' on both."""

    def __init__(self, folder, family, task):
        self.folder, self.task, self.texts = folder, task, list(texts_of(family))
        self.model = save(folder, family, task)
        self.tokenizer = AutoTokenizer.from_pretrained(folder)

    def pipelines(self, name, **options):
        """One that finds classes for the folder itself, one that is handed our model."""
        yield pipeline(name, model=str(self.folder), **options)
        yield pipeline(name, model=encoders.load(self.folder, task=self.task), tokenizer=self.tokenizer, **options)

    def by_hand(self, text):
        """The model's output for one text, alone."""
        with torch.no_grad():
            return self.model(**self.tokenizer(text, return_tensors="pt"))


@every_family
def test_auto_classes(family, tmp_path):
    """They need no code from the folder; a model type that transformers has itself stays with transformers' class."""
    saved = Saved(tmp_path, family, None)
    assert not list(tmp_path.glob("*.py"))
    assert all("auto_map" not in file.read_text(encoding="utf-8") for file in tmp_path.glob("*.json"))
    config = AutoConfig.from_pretrained(tmp_path)
    model = AutoModel.from_pretrained(tmp_path)
    ours = families()[family].tasks[None]
    assert type(model).__name__ == ours.__name__
    assert type(config).__name__ == ours.config_class.__name__
    assert (type(model) is ours) == (ours.config_class.model_type not in CONFIG_MAPPING_NAMES)
    assert_close(model(**saved.tokenizer(saved.texts[0], return_tensors="pt"))[0], saved.by_hand(saved.texts[0])[0])


@every_family
def test_text_classification(family, tmp_path):
    saved = Saved(tmp_path, family, "sequence-classification")
    for pipe in saved.pipelines("text-classification", top_k=None):
        for batch_size in (1, 3):
            for text, found in zip(saved.texts, pipe(saved.texts, batch_size=batch_size), strict=True):
                expected = saved.by_hand(text).logits[0].softmax(-1)
                scores = {one["label"]: one["score"] for one in found}
                assert_close(torch.tensor([scores[label] for label in LABELS]), expected)


@every_family
def test_token_classification(family, tmp_path):
    saved = Saved(tmp_path, family, "token-classification")
    for pipe in saved.pipelines("token-classification", ignore_labels=[]):
        for text, found in zip(saved.texts, pipe(saved.texts, batch_size=2), strict=True):
            tokens = saved.tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True)
            ordinary = [index for index, special in enumerate(tokens["special_tokens_mask"]) if not special]
            best = saved.by_hand(text).logits[0].softmax(-1).max(-1)
            assert [one["index"] for one in found] == ordinary
            assert [one["entity"] for one in found] == [LABELS[best.indices[index]] for index in ordinary]
            assert [(one["start"], one["end"]) for one in found] == [tokens["offset_mapping"][i] for i in ordinary]
            assert_close(torch.tensor([one["score"] for one in found]), best.values[ordinary])


@every_family
def test_token_classification_in_spans(family, tmp_path):
    """Neighbours with the same label become one span of the text."""
    saved = Saved(tmp_path, family, "token-classification")
    for pipe in saved.pipelines("token-classification", ignore_labels=[], aggregation_strategy="simple"):
        spans = []
        for text in saved.texts:
            offsets = saved.tokenizer(text, return_offsets_mapping=True)["offset_mapping"][1:-1]
            labels = saved.by_hand(text).logits[0].argmax(-1)[1:-1].tolist()
            runs = [[i for i, _ in run] for _, run in groupby(enumerate(labels), key=lambda pair: pair[1])]
            expected = [(LABELS[labels[run[0]]], offsets[run[0]][0], offsets[run[-1]][1]) for run in runs]
            assert [(one["entity_group"], one["start"], one["end"]) for one in pipe(text)] == expected
            spans += expected
        assert len(spans) > len(saved.texts)


@every_family
def test_fill_mask(family, tmp_path):
    saved = Saved(tmp_path, family, "masked-lm")
    masked = [f"{text[:-3]}{saved.tokenizer.mask_token}{text[-2:]}" for text in saved.texts]
    for pipe in saved.pipelines("fill-mask", top_k=4):
        for text, found in zip(masked, pipe(masked, batch_size=2), strict=True):
            ids = saved.tokenizer(text)["input_ids"]
            place = ids.index(saved.tokenizer.mask_token_id)
            best = saved.by_hand(text).logits[0, place].softmax(-1).topk(4)
            assert [one["token"] for one in found] == best.indices.tolist()
            assert_close(torch.tensor([one["score"] for one in found]), best.values)
            for one in found:
                filled = [*ids[:place], one["token"], *ids[place + 1 :]]
                assert one["sequence"] == saved.tokenizer.decode(filled, skip_special_tokens=True)


@every_family
def test_feature_extraction(family, tmp_path):
    saved = Saved(tmp_path, family, None)
    for pipe in saved.pipelines("feature-extraction", return_tensors=True):
        assert isinstance(pipe.model, PreTrainedModel)
        for text, states in zip(saved.texts, pipe(saved.texts), strict=True):
            assert_close(states, saved.by_hand(text).last_hidden_state)
