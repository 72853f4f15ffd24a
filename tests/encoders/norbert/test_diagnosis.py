"""`diagnose_projection`, proven on models that were trained under each projection until they had learnt something."""

from __future__ import annotations

import ast
import os
import sysconfig
from pathlib import Path

import pytest
import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedTokenizerFast

import encoders
from encoders.norbert import ProjectionDiagnosis, diagnose_projection
from tests.support import make_model

DATA = Path(os.environ.get("ENCODERS_DATA", Path(__file__).parents[4] / "shared" / "data"))
SPECIALS = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
LENGTH = 56
HELD_OUT = 80
STEPS = 260


def real_texts() -> list[str]:
    """Sentences of a data set if it is there, else of the standard library's docstrings, cut to one length."""
    file = DATA / "no_acceptability_nocola.csv"
    if file.is_file():
        texts = file.read_text(encoding="utf-8").splitlines()[1:]
    else:
        texts = []
        for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[:120]:
            nodes = ast.walk(ast.parse(path.read_bytes()))
            owners = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)]
            texts += [" ".join((ast.get_docstring(node) or "").split()) for node in owners]
    return [text[:LENGTH] for text in texts if len(text) >= LENGTH]


def character_tokenizer(texts: list[str]) -> PreTrainedTokenizerFast:
    words = [*SPECIALS, *sorted({letter for text in texts for letter in text})]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        mask_token="[MASK]",
    )


def nano(projection: str, vocab_size: int):
    torch.manual_seed(0)
    return encoders.create(
        "norbert3-nano",
        task="masked-lm",
        vocab_size=vocab_size,
        hidden_size=48,
        num_attention_heads=4,
        num_hidden_layers=2,
        intermediate_size=96,
        num_reserved_ids=len(SPECIALS),
        position_projection=projection,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )


def train(model, rows: list[torch.Tensor]) -> None:
    """Masked-LM training, a fifth of the letters masked."""
    generator = torch.Generator().manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / 20) * (1 - step / STEPS))
    model.train()
    for _ in range(STEPS):
        chosen = torch.randint(0, len(rows), (16,), generator=generator).tolist()
        ids = pad_sequence([rows[i] for i in chosen], batch_first=True, padding_value=3)
        masked = (torch.rand(ids.shape, generator=generator) < 0.2) & (ids >= len(SPECIALS))
        labels = ids.masked_fill(~masked, -100)
        loss = model(ids.masked_fill(masked, 4), (ids != 3).long(), labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    model.eval()


@pytest.fixture(scope="module")
def texts():
    return real_texts()


@pytest.fixture(scope="module")
def tokenizer(texts):
    return character_tokenizer(texts)


@pytest.mark.parametrize("projection", ["interleaved", "contiguous"])
def test_trained_models_are_told_apart(projection, texts, tokenizer, tmp_path):
    """Saved without its projection, loaded under either one, and diagnosed right each time."""
    held_out, seen = texts[:HELD_OUT], texts[HELD_OUT:]
    model = nano(projection, len(tokenizer))
    train(model, [torch.tensor(tokenizer(text).input_ids) for text in seen])
    model.save_pretrained(tmp_path)
    other = {"interleaved": "contiguous", "contiguous": "interleaved"}[projection]
    for configured in (projection, other):
        loaded = encoders.load(str(tmp_path), task="masked-lm", position_projection=configured)
        found = diagnose_projection(loaded, tokenizer, held_out)
        assert found.verdict == projection, str(found)
        assert found.losses[projection] < 0.85 * found.frequency_loss
        assert found.gap > 0.2
        assert found.gap > 10 * found.standard_error
        assert (f"position_projection='{projection}'" in str(found)) == (configured == other)
        assert loaded.config.position_projection == found.configured == configured


@pytest.mark.parametrize("projection", ["interleaved", "contiguous"])
def test_untrained_models_are_undecided(projection, texts, tokenizer):
    for model in (nano(projection, len(tokenizer)).eval(), random_model(projection, len(tokenizer))):
        found = diagnose_projection(model, tokenizer, texts[:HELD_OUT])
        assert found.verdict is None
        assert "it looks untrained" in str(found)


def random_model(projection: str, vocab_size: int):
    """Weights that are spread widely: it gives very different numbers under each projection, all of them wrong."""
    return make_model(
        "norbert3-nano", "masked-lm", vocab_size=vocab_size, position_projection=projection, num_reserved_ids=5
    )


def test_nothing_is_changed(texts, tokenizer):
    model = nano("interleaved", len(tokenizer)).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    first, second = (diagnose_projection(model, tokenizer, texts[:20], seed=3) for _ in range(2))
    assert first == second
    assert first != diagnose_projection(model, tokenizer, texts[:20], seed=4)
    assert model.training
    assert model.config.position_projection == "interleaved"
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)


def test_close_losses_are_undecided():
    common = {"frequency_loss": 3.0, "masked": 50, "configured": "interleaved"}
    near = ProjectionDiagnosis({"interleaved": 2.0, "contiguous": 2.005}, gap=0.005, standard_error=0.0001, **common)
    noisy = ProjectionDiagnosis({"interleaved": 2.0, "contiguous": 2.5}, gap=0.5, standard_error=0.2, **common)
    clear = ProjectionDiagnosis({"interleaved": 2.0, "contiguous": 2.5}, gap=0.5, standard_error=0.02, **common)
    assert near.verdict is None
    assert noisy.verdict is None
    assert "try more of them" in str(noisy)
    assert clear.verdict == "interleaved"
    assert "interleaved fits, as configured" in str(clear)


def test_what_is_refused(texts, tokenizer):
    model = nano("interleaved", len(tokenizer))
    with pytest.raises(TypeError, match="a NorbertForMaskedLM is needed, got NorbertModel"):
        diagnose_projection(make_model("norbert3-nano", None), tokenizer, texts)
    for nothing in ([], ["", ""]):
        with pytest.raises(ValueError, match=rf"none of the {len(nothing)} texts has a word to mask"):
            diagnose_projection(model, tokenizer, nothing)
    maskless = character_tokenizer(texts)
    maskless.mask_token = None
    with pytest.raises(ValueError, match="the tokenizer has no mask token"):
        diagnose_projection(model, maskless, texts)
