"""An encoder by whatever name a person gives it, preset or checkpoint, and what is known of it without its weights."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerBase

from encoders.checkpoints.checkpoint import open_checkpoint
from encoders.checkpoints.configuration import read_config
from encoders.checkpoints.inspection import head_of
from encoders.family import Family, Preset
from encoders.loading import load_tokenizer
from encoders.registry import family_of, list_encoders
from encoders_shared.config import EncoderConfig
from encoders_shared.errors import suggestion
from encoders_shared.model import EncoderPreTrainedModel


@dataclass(frozen=True)
class Side:
    """One of the two encoders that a command is given.

    Attributes:
        source: preset name, folder or hub id.
        revision: branch, tag or commit on the hub; None for its default.
        family: its family.
        config: its configuration.
        preset: what its family says of it, if it is a preset.
        head: the task of its trained head; None if it has none, or if it can't be told.
        open_question: what its config.json leaves open, or None.
    """

    source: str
    revision: str | None
    family: Family
    config: EncoderConfig
    preset: Preset | None
    head: str | None
    open_question: str | None

    @property
    def title(self) -> str:
        """What it is called in a report."""
        return self.source if self.revision is None else f"{self.source} ({self.revision})"

    @property
    def maximum_length(self) -> int | None:
        """The longest sequence that its head takes, in tokens; None for any."""
        return self.family.maximum_length(self.config, self.head)

    def skeleton(self, task: str | None) -> EncoderPreTrainedModel:
        """Return its model for a task, without memory."""
        with torch.device("meta"):
            return self.family.tasks[task](self.config)

    def tokenizer(self) -> PreTrainedTokenizerBase:
        """Return its tokenizer: that of its folder, or of its family where all its encoders share one.

        Raises:
            ValueError: it has none here.
        """
        if self.preset is None:
            return load_tokenizer(self.source, revision=self.revision)
        own = self.family.tokenizer_class
        if own is None or self.family.train_tokenizer is not None:  # what can be trained comes with the weights
            raise ValueError(f"{self.source} is a preset, and its tokenizer comes with its weights: give its folder.")
        return own()


def open_side(source: str | os.PathLike[str], revision: str | None = None) -> Side:
    """Tell what is known of a preset, a folder or a hub id; `revision` is a branch, tag or commit on the hub.

    Raises:
        ValueError: there is nothing of this name, or it is a preset and a revision was given.
        CheckpointError: it is a checkpoint of no family here, or can't be read.
    """
    name, presets = str(source), list_encoders()
    if name not in presets and "/" not in name and not Path(name).exists():
        raise ValueError(
            f"{name!r} is neither the name of an encoder nor a folder here.{suggestion(name, presets)} Names are those "
            "of `encoders list`; the id of a repository on a hub is OWNER/NAME."
        )
    if name in presets and revision is not None:
        raise ValueError(
            f"{name} is a preset, which has no revisions, but {revision!r} was given: leave it out, or give the id of "
            "the repository on a hub, OWNER/NAME."
        )
    if name in presets:
        family = family_of(name)
        return Side(name, None, family, family.presets[name].config(), family.presets[name], None, None)
    checkpoint = open_checkpoint(source, revision)
    config, completion = read_config(checkpoint.folder, checkpoint.recognised, checkpoint.weights, {})
    head = head_of(checkpoint, config)
    return Side(name, revision, checkpoint.recognised.family, config, None, head, completion.warning)
