"""A checkpoint on its way to a model: what it is, and what it becomes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import torch

from encoders.checkpoints.configuration import read_config, unknown_keys
from encoders.checkpoints.filling import build, choose_dtype
from encoders.checkpoints.folder import CheckpointFolder, open_folder
from encoders.checkpoints.plan import Plan, make_plan
from encoders.checkpoints.recognition import Recognised, recognise
from encoders.checkpoints.report import LoadReport
from encoders.checkpoints.weights import Weights
from encoders.registry import checked_fields
from encoders_shared.checkpoints import CheckpointError
from encoders_shared.config import LABEL_FIELDS
from encoders_shared.errors import listed
from encoders_shared.model import EncoderPreTrainedModel

ALWAYS_ALLOWED = 10**9
"""Bytes that a model may take however small its files are."""
MOST_OF_FILES = 8
"""How many times the length of its files a model may take beyond that: half precision read in double is 4."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was opened and recognised.

    Attributes:
        folder: where its files are.
        weights: its tensors.
        recognised: what it is.
    """

    folder: CheckpointFolder
    weights: Weights
    recognised: Recognised


def open_checkpoint(source: str | os.PathLike[str], revision: str | None = None) -> Checkpoint:
    """Open a checkpoint and tell what it is, from its headers.

    Raises:
        CheckpointError: it can't be read, or is of no family here.
    """
    folder = open_folder(source, revision=revision)
    config = folder.config
    weights = Weights(folder)
    return Checkpoint(folder, weights, recognise(folder.source, config, weights.facts))


def load_model(
    checkpoint: Checkpoint, task: str | None, overrides: Mapping[str, Any]
) -> tuple[EncoderPreTrainedModel, LoadReport, list[str]]:
    """Build a model from a checkpoint.

    Returns:
        The model, what happened, and what the user should be warned of.

    Raises:
        CheckpointError: the checkpoint can't be loaded.
        ConfigurationError: an override doesn't exist, or is not allowed.
    """
    folder, weights, recognised = checkpoint.folder, checkpoint.weights, checkpoint.recognised
    given = {name: value for name, value in overrides.items() if name != "dtype"}
    given = checked_fields(recognised.family.config_class, given)
    config, completion = read_config(folder, recognised, weights, given)
    warnings = [completion.warning] if completion.warning else []
    other_labels = any(name in given for name in LABEL_FIELDS)
    plan = make_plan(recognised, task, config, weights.facts, other_labels=other_labels)
    dtype = choose_dtype(overrides.get("dtype"), plan, weights)
    _refuse_more_than_the_files(folder, plan, weights, dtype)
    if different := _different_rivals(plan, weights):
        warnings.append(
            f"{folder.source}: {different} should be one tensor, but differ; they are kept apart, and "
            "tie_word_embeddings is now False."
        )
        config.tie_word_embeddings = False
        plan = make_plan(recognised, task, config, weights.facts, other_labels=other_labels)
        dtype = choose_dtype(overrides.get("dtype"), plan, weights)
    model = build(recognised.family.tasks[task], config, plan, weights, dtype)
    report = _report(checkpoint, plan, dtype, completion.notes)
    if report.missing:
        warnings.append(
            f"{folder.source} lacks {listed(report.missing)}: freshly initialised, to be trained before use."
        )
    return model, report, warnings


def _refuse_more_than_the_files(folder: CheckpointFolder, plan: Plan, weights: Weights, dtype: torch.dtype) -> None:
    """Refuse a model much larger than its files: a huge fresh head, or tensors that share their data."""
    size = dtype.itemsize * sum(prod(shape) for name, shape in plan.skeleton.shapes.items() if name not in plan.tied)
    if size > max(ALWAYS_ALLOWED, MOST_OF_FILES * weights.size):
        raise CheckpointError(
            f"{folder.path}: the configuration asks for a model of {size / 1e9:,.1f} GB, but the files hold "
            f"{weights.size / 1e9:,.3f} GB. Correct config.json, or the fields passed."
        )


def _different_rivals(plan: Plan, weights: Weights) -> str:
    for decoder, embeddings in plan.rivals:
        if not torch.equal(weights.read(decoder), weights.read(embeddings)):
            return f"{decoder} and {embeddings}"
    return ""


def _report(checkpoint: Checkpoint, plan: Plan, dtype: torch.dtype, notes: tuple[str, ...]) -> LoadReport:
    recognised, full = checkpoint.recognised, plan.skeleton.full_names
    keys = recognised.layout.keys
    converted = {full[name]: source for name, source in plan.sources.items() if keys.plain(source) != name}
    for name, (table, row) in plan.added_rows.items():
        converted[full[name]] = f"{plan.sources[name]} + {table}[{row}]"
    return LoadReport(
        source=checkpoint.folder.source,
        family=recognised.family.name,
        layout=recognised.layout.name,
        evidence=recognised.evidence,
        dtype=str(dtype).removeprefix("torch."),
        loaded=tuple(full[name] for name in plan.sources),
        missing=tuple(full[name] for name in plan.fresh),
        unexpected=plan.unexpected,
        tied={full[decoder]: full[embeddings] for decoder, embeddings in plan.tied.items()},
        converted=converted,
        notes=notes,
        unknown_keys=unknown_keys(checkpoint.folder, recognised.family.config_class),
    )
