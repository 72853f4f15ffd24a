"""Sentence embeddings by the sentence-transformers library, on our folders.

Optional: the library is no dependency. `pip install "sentence-transformers>=6"` makes these run; they pass with 6.2.0.
"""

from __future__ import annotations

import pytest
import torch
from transformers import AutoTokenizer

from encoders_shared.pooling import POOLINGS
from tests.ecosystem.folders import FAMILIES, save, texts_of
from tests.support import assert_close

NEEDED = 'optional: needs `pip install "sentence-transformers>=6"`'
SentenceTransformer = pytest.importorskip("sentence_transformers", reason=NEEDED).SentenceTransformer
modules = pytest.importorskip("sentence_transformers.sentence_transformer.modules", reason=NEEDED)

every_family = pytest.mark.parametrize("family", FAMILIES)
every_pooling = pytest.mark.parametrize("pooling", POOLINGS)


def stack(folder, pooling):
    """The library's usual stack: the states of a Transformer, and one vector of them."""
    transformer = modules.Transformer(str(folder))
    pool = modules.Pooling(transformer.get_embedding_dimension(), pooling_mode=pooling)
    return SentenceTransformer(modules=[transformer, pool], device="cpu")


@every_family
@every_pooling
def test_embeddings_are_our_pooling(family, pooling, tmp_path):
    """In batches, whatever the order and the padding; and as the model itself pools."""
    model, texts = save(tmp_path, family, None, pooling=pooling), list(texts_of(family))
    batch = AutoTokenizer.from_pretrained(tmp_path)(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        output = model(**batch)
    expected = POOLINGS[pooling](output.last_hidden_state, batch["attention_mask"])
    assert_close(output.pooler_output, expected)
    sentences = stack(tmp_path, pooling)
    for size in (1, 3):
        assert_close(sentences.encode(texts, batch_size=size, convert_to_tensor=True), expected)


@every_family
def test_saved_and_loaded(family, tmp_path):
    save(tmp_path / "folder", family, None)
    sentences, texts = stack(tmp_path / "folder", "mean"), list(texts_of(family))
    sentences.save(str(tmp_path / "stack"))
    again = SentenceTransformer(str(tmp_path / "stack"), device="cpu")
    embeddings = (one.encode(texts, convert_to_tensor=True) for one in (sentences, again))
    assert torch.equal(*embeddings)


@every_family
def test_gradients_reach_the_encoder(family, tmp_path):
    """As when it is fine-tuned on pairs."""
    save(tmp_path, family, None)
    sentences, texts = stack(tmp_path, "mean").train(), list(texts_of(family))
    first, second = (sentences(sentences.preprocess(part))["sentence_embedding"] for part in (texts[:2], texts[2:]))
    (first * second).sum().backward()
    word_embeddings = sentences[0].auto_model.get_input_embeddings().weight
    assert word_embeddings.grad.abs().sum() > 0
