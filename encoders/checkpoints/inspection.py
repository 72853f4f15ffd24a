"""What is in a checkpoint? Answered from config.json and the headers of the weights; no values are read."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

from encoders.checkpoints.checkpoint import Checkpoint, open_checkpoint
from encoders.checkpoints.configuration import read_config
from encoders.checkpoints.plan import make_plan, places_of, stored_task
from encoders.family import TASKS, Family
from encoders_shared.checkpoints import CheckpointError
from encoders_shared.config import EncoderConfig
from encoders_shared.errors import listed

SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
_LABEL_WIDTH = 24


@dataclass(frozen=True)
class Inspection:
    """What is in a checkpoint.

    Attributes:
        source: the folder or hub id.
        family: the family it belongs to.
        layout: the published layout it has.
        evidence: what it was recognised by.
        preset: the named size that it has, or None.
        task: what its head is for; None if it has none, or if it can't be told.
        sizes: the sizes of its configuration.
        parameters: of the bare model.
        dtypes: how many tensors are stored in each type.
        missing: for each task, the tensors that would be freshly initialised ("bare" is the model without a head).
        problems: for each task that the checkpoint can't be loaded for, why.
        notes: what config.json leaves open, and how it would be decided.
    """

    source: str
    family: str
    layout: str
    evidence: str
    preset: str | None
    task: str | None
    sizes: dict[str, int]
    parameters: int
    dtypes: dict[str, int]
    missing: dict[str, tuple[str, ...]]
    problems: dict[str, str]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as plain data, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        rows = [
            ("family", self.family),
            ("layout", f"{self.layout}, seen by its {self.evidence}"),
            ("size of", self.preset or "no preset"),
            ("head", self.task or "none that is known"),
            *((name.replace("_", " "), f"{value:,}") for name, value in self.sizes.items()),
            ("parameters", f"{self.parameters:,} without a head"),
            ("stored as", listed(f"{name} ({count} tensors)" for name, count in self.dtypes.items())),
            *(("missing for", f"{task}: {listed(names) or 'nothing'}") for task, names in self.missing.items()),
            *(("impossible for", f"{task}: {problem}") for task, problem in self.problems.items()),
            *(("note", note) for note in self.notes),
        ]
        return "\n".join([self.source, *(f"{label:<{_LABEL_WIDTH}}{value}" for label, value in rows)])


def inspect_checkpoint(source: str, *, revision: str | None = None) -> Inspection:
    """Tell what a checkpoint is and what would be missing for each task.

    Args:
        source: a folder, or the id of a repository on a hub.
        revision: branch, tag or commit on the hub.

    Raises:
        CheckpointError: it can't be loaded for any task.
    """
    checkpoint = open_checkpoint(source, revision)
    folder, weights, recognised = checkpoint.folder, checkpoint.weights, checkpoint.recognised
    config, completion = read_config(folder, recognised, weights, {})
    bare = make_plan(recognised, None, config, weights.facts)
    missing, problems = {"bare": bare.fresh}, {}
    for task in TASKS:
        try:
            plan = make_plan(recognised, task, config, weights.facts)
            missing[task] = tuple(plan.skeleton.full_names[name] for name in plan.fresh)
        except CheckpointError as error:
            problems[task] = str(error)
    return Inspection(
        source=folder.source,
        family=recognised.family.name,
        layout=recognised.layout.name,
        evidence=recognised.evidence,
        preset=_preset_of_size(recognised.family, config),
        task=head_of(checkpoint, config),
        sizes=_sizes(config),
        parameters=sum(prod(shape) for shape in bare.skeleton.shapes.values()),
        dtypes=dict(Counter(facts.dtype for facts in weights.facts.values())),
        missing=missing,
        problems=problems,
        notes=completion.notes,
    )


def head_of(checkpoint: Checkpoint, config: EncoderConfig) -> str | None:
    """Return the task of a checkpoint's head; None if it has none, or if it can't be told."""
    recognised = checkpoint.recognised
    return stored_task(recognised, config, places_of(recognised, checkpoint.weights.facts))


def _sizes(config: EncoderConfig) -> dict[str, int]:
    return {name: getattr(config, name) for name in SIZES}


def _preset_of_size(family: Family, config: EncoderConfig) -> str | None:
    return next((n for n, preset in family.presets.items() if _sizes(preset.config()) == _sizes(config)), None)
