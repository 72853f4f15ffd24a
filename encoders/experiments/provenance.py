"""What the numbers of a comparison follow from: data, settings, versions and encoders, as plain values."""

import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import torch

from encoders.experiments.backbones import Backbone
from encoders.experiments.data import LabelledTexts, counted
from encoders.experiments.settings import WARMUP, WEIGHT_DECAY, Settings
from encoders.experiments.splits import SPLITS
from encoders.experiments.tokenizers import kind_of

PACKAGES = ("encoder-zoo", "torch", "transformers", "tokenizers", "accelerate", "scikit-learn", "numpy")


def versions() -> dict[str, str]:
    """Return the versions of Python and of every package that takes part in the numbers."""
    return {"python": platform.python_version()} | {package: version(package) for package in PACKAGES}


def circumstances(data: LabelledTexts, settings: Settings) -> dict[str, Any]:
    """Return everything that all runs of a comparison share, and that changes their scores if it changes."""
    shared = {name: value for name, value in asdict(settings).items() if name != "seeds"}
    identity = f"{data.name} ({data.label_column}, sha256 {data.sha256[:12]})"
    return {"data": identity, **shared, "warmup": WARMUP, "weight_decay": WEIGHT_DECAY, **versions()}


def facts(data: LabelledTexts, settings: Settings, backbones: Sequence[Backbone]) -> dict[str, Any]:
    """Return what a reader of the results needs besides the scores."""
    return {
        "data": {
            "label_column": data.label_column,
            "classes": list(data.classes),
            "rows": data.sizes,
            "sha256": data.sha256,
        },
        "settings": {
            **asdict(settings),
            "seeds": list(range(settings.seeds)),
            "warmup": WARMUP,
            "weight_decay": WEIGHT_DECAY,
        },
        "backbones": {
            backbone.name: {
                "weights": "trained" if backbone.pretrained else "fresh",
                "parameters": backbone.parameters,
                "learning_rate": settings.peak_learning_rate(pretrained=backbone.pretrained),
                "tokenizer": kind_of(backbone.tokenizer),
                "vocabulary": len(backbone.tokenizer),
                "truncated": backbone.texts.truncated,
                "unknown": backbone.texts.unknown,
                "sha256": backbone.sha256,
                "config": backbone.config,
            }
            for backbone in backbones
        },
        "versions": versions(),
        "device": str(torch.accelerator.current_accelerator()) if torch.accelerator.is_available() else "cpu",
    }


def notes(data: LabelledTexts, settings: Settings, backbones: Sequence[Backbone]) -> list[str]:
    """Return what a person should know before trusting the scores, a sentence each."""
    sizes = ", ".join(f"{data.sizes[split]} {split}" for split in SPLITS)
    lines = [f"{data.name}: {sizes} rows", *data.notes]
    if data.repeated_texts:
        lines.append(f"{counted(data.repeated_texts)} of dev and test with a text that is in train too")
    tokenizers: dict[int, list[Backbone]] = {}
    for backbone in backbones:
        tokenizers.setdefault(id(backbone.tokenizer), []).append(backbone)
    for sharing in tokenizers.values():
        tokenizer, texts = sharing[0].tokenizer, sharing[0].texts
        names = ", ".join(backbone.name for backbone in sharing)
        lines.append(f"tokenizer: {kind_of(tokenizer)} of {len(tokenizer)} entries for {names}")
        for what, rows in {
            f"truncated at {settings.max_length} tokens": texts.truncated,
            "with something that the vocabulary lacks": texts.unknown,
        }.items():
            if any(rows.values()):
                counts = ", ".join(f"{count} {split}" for split, count in rows.items())
                lines.append(f"rows {what} for {names}: {counts}")
    lines.extend(remark for backbone in backbones for remark in backbone.remarks)
    for pretrained in sorted({backbone.pretrained for backbone in backbones}):
        rate = settings.peak_learning_rate(pretrained=pretrained)
        lines.append(
            f"{'trained' if pretrained else 'fresh'} weights: {settings.epochs} epochs, batches of "
            f"{settings.batch_size}, AdamW, learning rate up to {rate:g} and down to 0, the epoch that is best on dev"
        )
    return lines
