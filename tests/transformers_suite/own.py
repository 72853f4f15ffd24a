"""Beside transformers' suite: what it has to leave out for us, in our own words. Started by `run.py`."""

from __future__ import annotations

import pytest
import torch

from encoders.family import TASKS
from encoders.helmbert import HELMBertTokenizer
from tests.support import ALL_TASKS, loss_of, make_batch, make_model


@pytest.mark.parametrize("task", ALL_TASKS)
def test_helmbert_parameters_without_gradient(task):
    """One table each, as published: the mask decoder reads the first layer's offsets, the other tasks no positions."""
    model = make_model("helmbert-nano", task)
    batch = make_batch(task)
    loss_of(model(**batch), batch["attention_mask"]).backward()
    last = model.config.num_hidden_layers - 1
    unused = f"layers.{last}.self_attn.rel_embeddings" if task == "masked-lm" else "embeddings.position_embeddings"
    without = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert without == [next(name for name in model.state_dict() if name.endswith(f"{unused}.weight"))]


@pytest.mark.parametrize("task", TASKS)
def test_norbert_between_bare_and_head(task, tmp_path):
    """Without a prefix in the names: missing are exactly the head's weights, and superfluous on the way back."""
    bare, headed = make_model("norbert3-nano", None), make_model("norbert3-nano", task)
    bare.save_pretrained(tmp_path / "bare")
    headed.save_pretrained(tmp_path / "headed")
    head = {key for key in headed.state_dict() if key.startswith(headed.head_parts)} - set(headed.all_tied_weights_keys)
    assert head
    assert head.isdisjoint(bare.state_dict())
    into, info = type(headed).from_pretrained(tmp_path / "bare", output_loading_info=True)
    assert (set(info["missing_keys"]), set(info["unexpected_keys"])) == (head, set())
    back, info = type(bare).from_pretrained(tmp_path / "headed", output_loading_info=True)
    assert (set(info["missing_keys"]), set(info["unexpected_keys"])) == (set(), head)
    for name, value in bare.state_dict().items():
        assert torch.equal(into.state_dict()[name], value), name
        assert torch.equal(back.state_dict()[name], headed.state_dict()[name]), name


def test_helmbert_special_tokens(tmp_path):
    """Others are refused; one that was taken away stays away."""
    HELMBertTokenizer().save_pretrained(tmp_path)
    for role in ("bos_token", "eos_token", "pad_token"):
        for make in (HELMBertTokenizer, lambda **roles: HELMBertTokenizer.from_pretrained(tmp_path, **roles)):
            with pytest.raises(ValueError, match=rf"{role}='\[NEW\]': HELM-BERT's is '<"):
                make(**{role: "[NEW]"})
    HELMBertTokenizer(bos_token=None).save_pretrained(tmp_path)
    loaded = HELMBertTokenizer.from_pretrained(tmp_path)
    assert (loaded.bos_token, loaded.cls_token) == (None, "<cls>")


def test_helmbert_vocabulary():
    tokenizer = HELMBertTokenizer()
    for token, index in tokenizer.get_vocab().items():
        assert (tokenizer.convert_tokens_to_ids(token), tokenizer.convert_ids_to_tokens(index)) == (index, token)
    with pytest.raises(ValueError, match="HELM-BERT's vocabulary is fixed"):
        tokenizer.train_new_from_iterator([["A.C"]], 100)


def test_helmbert_alignment():
    """Each token is a word of its own."""
    text, second = "PEPTIDE1{[meL].A}", "[ac].PEPTIDE2"
    encoding = HELMBertTokenizer()([text] * 2, [second] * 2)
    for sequence, characters in enumerate((text, second)):
        word = 0
        for token in range(len(encoding["input_ids"][1])):
            if encoding.token_to_sequence(1, token) != sequence:
                continue
            span = encoding.token_to_chars(1, token)
            assert encoding.tokens(1)[token] == characters[span.start : span.end]
            for character in range(*span):
                assert encoding.char_to_token(1, character, sequence) == token
                assert encoding.char_to_word(1, character, sequence) == word
            assert encoding.token_to_word(1, token) == word
            assert encoding.word_to_chars(1, word, sequence) == span
            assert tuple(encoding.word_to_tokens(1, word, sequence)) == (token, token + 1)
            word += 1
        assert word == {text: 10, second: 6}[characters]
