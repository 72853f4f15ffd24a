"""The machine-readable facts of one encoder."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch

from encoders.family import TASKS, Family

_LABEL_WIDTH = 22


@dataclass(frozen=True)
class EncoderCard:
    """What a person or a program should know about an encoder before using it.

    Attributes:
        name: preset name.
        family: family name.
        summary: one line.
        languages: what it was made for.
        vocab_size: number of words.
        hidden_size: width of the states.
        num_hidden_layers: number of layers.
        num_attention_heads: attention heads in each layer.
        intermediate_size: width inside the feed-forward network.
        parameters: of the bare model.
        parameters_masked_lm: with the masked-LM head, whose decoder is shared with the word embeddings.
        maximum_length: longest sequence in tokens that every task takes, None for any.
        beyond_maximum: what happens beyond it.
        positions: kind of positions.
        position_ids: what passing position ids does.
        token_types: what passing token type ids does.
        pooling: how a sequence becomes one vector unless `pooling` says otherwise.
        padding: on which sides padding is harmless.
        tasks: names of the tasks.
        options: keywords of `forward` beyond the common ones, by task ("bare" for the bare model).
        notes: what else to know.
        paper: where the architecture is described.
        checkpoint: where weights are published.
        licence: licence of these weights.
    """

    name: str
    family: str
    summary: str
    languages: str
    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    parameters: int
    parameters_masked_lm: int
    maximum_length: int | None
    beyond_maximum: str
    positions: str
    position_ids: str
    token_types: str
    pooling: str
    padding: str
    tasks: tuple[str, ...]
    options: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]
    paper: str
    checkpoint: str | None
    licence: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as plain data, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = []
        for label, value in self.to_dict().items():
            if isinstance(value, tuple) and label == "notes":
                lines += [f"{'note':<{_LABEL_WIDTH}}{note}" for note in value]
                continue
            lines.append(f"{label.replace('_', ' '):<{_LABEL_WIDTH}}{_readable(value)}")
        return "\n".join(lines)


def make_card(name: str, family: Family) -> EncoderCard:
    """Derive the card of a preset from its configuration and its models."""
    preset = family.presets[name]
    config = preset.config()
    return EncoderCard(
        name=name,
        family=family.name,
        summary=preset.summary,
        languages=preset.languages,
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        num_hidden_layers=config.num_hidden_layers,
        num_attention_heads=config.num_attention_heads,
        intermediate_size=config.intermediate_size,
        parameters=count_parameters(family, name, None),
        parameters_masked_lm=count_parameters(family, name, "masked-lm"),
        maximum_length=family.maximum_length(config, "masked-lm"),
        beyond_maximum=family.beyond_maximum,
        positions=family.positions,
        position_ids=family.position_ids,
        token_types="ignored",
        pooling=config.pooling,
        padding=family.padding,
        tasks=TASKS,
        options={task or "bare": cls.forward_options for task, cls in family.tasks.items() if cls.forward_options},
        notes=family.notes,
        paper=family.paper,
        checkpoint=preset.checkpoint,
        licence=preset.licence,
    )


def count_parameters(family: Family, name: str, task: str | None) -> int:
    """Count the parameters of a model, shared ones once, without allocating it."""
    with torch.device("meta"):
        model = family.tasks[task](family.presets[name].config())
    return sum(parameter.numel() for parameter in model.parameters())


def _readable(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, dict):
        return "; ".join(f"{task}: {', '.join(names)}" for task, names in value.items()) or "-"
    return str(value)
