"""Folders as people keep them: a model and its tokenizer, saved together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

import encoders
from encoders.auto import families  # the Auto classes know the families from here on
from tests.support import make_model

FAMILIES = tuple(families())
SENTENCES = (
    "A small cat sat on the old mat.",
    "No dog ran.",
    "The weather was cold, and the streets were empty.",
    "Cats like warm places!",
)
PEPTIDES = (
    "PEPTIDE1{A.C.D.[meL]}$$$$",
    "PEPTIDE1{G.G}$$$$",
    "PEPTIDE1{[Abu].[Sar].[meL].V.[dA].A}$PEPTIDE1,PEPTIDE1,1:R1-6:R2$$$",
    "PEPTIDE1{[ac].K.R.W}$$$$",
)


def texts_of(family: str) -> tuple[str, ...]:
    """Texts of different lengths, such as the family was made for."""
    return PEPTIDES if families()[family].train_tokenizer is None else SENTENCES


def tokenizer_of(family: str) -> PreTrainedTokenizerBase:
    """A tokenizer trained on these texts; the family's own one, if its vocabulary is fixed."""
    if families()[family].train_tokenizer is None:
        tokenizer_class = families()[family].tokenizer_class
        assert tokenizer_class is not None
        return tokenizer_class()
    return encoders.train_tokenizer(texts_of(family) * 3, family=family, vocab_size=400)


def save(folder: Path, family: str, task: str | None, **overrides: Any) -> PreTrainedModel:
    """Save a small model with its tokenizer, and return the model."""
    tokenizer = tokenizer_of(family)
    (name,) = encoders.list_encoders("*-nano", family=family)
    ids = {f"{kind}_token_id": getattr(tokenizer, f"{kind}_token_id") for kind in ("pad", "cls", "sep", "mask")}
    known = {key: value for key, value in ids.items() if key in encoders.create(name).config.to_dict()}
    model = make_model(name, task, vocab_size=len(tokenizer), **known, **overrides)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model
