"""Which tensor of a checkpoint goes where in a model; decided from headers alone.

Names here are ours without the prefix that a model with a head puts before those of the bare model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch

from encoders.checkpoints.recognition import Recognised
from encoders.checkpoints.weights import FLOATING, TensorFacts
from encoders.family import Family
from encoders_shared.checkpoints import CheckpointError
from encoders_shared.config import EncoderConfig
from encoders_shared.errors import listed

LISTED = 8
"""How many names a message lists at most, where they all say the same."""


@dataclass(frozen=True)
class Skeleton:
    """Names and shapes of a model, without memory.

    Attributes:
        shapes: of each tensor.
        full_names: of each tensor, as in the model's state_dict.
        trunk: names of those that every task has.
    """

    shapes: Mapping[str, tuple[int, ...]]
    full_names: Mapping[str, str]
    trunk: frozenset[str]


@dataclass(frozen=True)
class Plan:
    """Where each tensor of a model comes from.

    Attributes:
        skeleton: the model.
        sources: the published name, for each that is loaded.
        added_rows: published table and row to add, {ours: (table, row)}.
        tied: those that share another's tensor, {decoder: embeddings}.
        rivals: published names of tensors to be tied of which both are there, (decoder, embeddings).
        fresh: those that the checkpoint lacks.
        unexpected: published names of what the model has no place for.
    """

    skeleton: Skeleton
    sources: Mapping[str, str]
    added_rows: Mapping[str, tuple[str, int]]
    tied: Mapping[str, str]
    rivals: tuple[tuple[str, str], ...]
    fresh: tuple[str, ...]
    unexpected: tuple[str, ...]


def make_skeleton(family: Family, task: str | None, config: EncoderConfig) -> Skeleton:
    """Return names and shapes of the model for a task.

    Raises:
        CheckpointError: there can be no model of this configuration.
    """
    try:
        with torch.device("meta"):
            model, bare = family.tasks[task](config), family.tasks[None](config)
    except Exception as error:  # torch asserts and overflows where a number is out of range
        raise CheckpointError(f"no model can be made of the configuration: {error}") from error
    trunk = frozenset(bare.state_dict())
    prefix = "" if model.base_model is model else f"{model.base_model_prefix}."
    state = model.state_dict()
    names = {full.removeprefix(prefix) if full.removeprefix(prefix) in trunk else full: full for full in state}
    return Skeleton({name: tuple(state[full].shape) for name, full in names.items()}, names, trunk)


def make_plan(
    recognised: Recognised,
    task: str | None,
    config: EncoderConfig,
    facts: Mapping[str, TensorFacts],
    *,
    other_labels: bool = False,
) -> Plan:
    """Match the tensors of a checkpoint with those of a model.

    Args:
        recognised: what the checkpoint is.
        task: what the model is for.
        config: the model's configuration.
        facts: shape and type of each published tensor.
        other_labels: the caller chose the labels: a stored head for others is no misfit, but made afresh.

    Raises:
        CheckpointError: tensors of the wrong shape or type, all of them listed; or the encoder is incomplete, or has
            parts that the configuration doesn't know.
    """
    published = places_of(recognised, facts)
    skeleton = make_skeleton(recognised.family, task, config)
    stored = stored_task(recognised, config, published)
    ties = _ties(recognised.family) if getattr(config, "tie_word_embeddings", False) else {}
    usable = {
        name: source
        for name, source in published.items()
        if stored in (None, task) or name in skeleton.trunk or name in ties
    }
    sources = {name: usable[name] for name in skeleton.shapes if name in usable}
    for decoder, embeddings in ties.items():
        if embeddings not in usable and decoder in usable:
            sources[embeddings] = usable[decoder]
        sources.pop(decoder, None)
    tied = {decoder: embeddings for decoder, embeddings in ties.items() if decoder in skeleton.shapes}
    rivals = tuple((usable[a], usable[b]) for a, b in tied.items() if a in usable and b in usable)
    rows = _added_rows(recognised, facts)

    misfits = _misfits(skeleton, sources, rows, facts)
    if other_labels:
        for name in [name for name in misfits if name not in skeleton.trunk]:
            del misfits[name], sources[name]
    if misfits:
        raise CheckpointError(
            f"{len(misfits)} tensors don't fit the configuration: {'; '.join(misfits.values())}. Correct config.json, "
            "or the fields passed."
        )
    fresh = tuple(name for name in skeleton.shapes if name not in sources and name not in tied)
    _refuse_gaps(recognised, skeleton, fresh, published)
    used = {*sources.values(), *(name for pair in rivals for name in pair), *(table for table, _ in rows.values())}
    unexpected = [name for name in facts if name not in used and not recognised.layout.keys.ignores(name)]
    return Plan(skeleton, sources, rows, tied, rivals, fresh, tuple(unexpected))


def stored_task(recognised: Recognised, config: EncoderConfig, places: Mapping[str, str]) -> str | None:
    """Return the task of a checkpoint's head; None if it has none, or if it can't be told.

    Heads for different tasks can have the same names of tensors, so the class names decide; and they count only where
    the tensors of that head are all there.
    """
    by_suffix = {cls.__name__.partition("For")[2]: task for task, cls in recognised.family.tasks.items() if task}
    ties = _ties(recognised.family)
    for class_name in recognised.class_names:
        task = by_suffix.get(class_name.partition("For")[2])
        if task is not None:
            head = make_skeleton(recognised.family, task, config)
            if all(name in places or name in ties for name in head.shapes if name not in head.trunk):
                return task
    return None


def places_of(recognised: Recognised, facts: Iterable[str]) -> dict[str, str]:
    """Return the published name for each of our names."""
    keys = recognised.layout.keys
    places: dict[str, str] = {}
    for source in facts:
        name = None if keys.ignores(source) else keys.ours(source)
        if name in places:
            raise CheckpointError(f"the tensors {places[name]!r} and {source!r} both claim the place of {name!r}.")
        if name is not None:
            places[name] = source
    return places


def _ties(family: Family) -> dict[str, str]:
    """Return the decoder that shares the word embeddings, {decoder: embeddings}."""
    masked_lm = family.tasks["masked-lm"]
    declared = masked_lm._tied_weights_keys
    prefix = f"{masked_lm.base_model_prefix}."
    return {a: b.removeprefix(prefix) for a, b in declared.items()} if isinstance(declared, dict) else {}


def _misfits(
    skeleton: Skeleton,
    sources: Mapping[str, str],
    rows: Mapping[str, tuple[str, int]],
    facts: Mapping[str, TensorFacts],
) -> dict[str, str]:
    """Say of each tensor of the wrong shape or type what is wrong with it."""
    misfits = {}
    for name, (table, row) in rows.items():
        shape = facts[table].shape
        if len(shape) != 2 or row >= shape[0] or shape[1:] != skeleton.shapes[name][1:]:
            misfits[name] = f"{table} is {list(shape)} in the file, and its row {row} is to be added to {name}"
    for name, source in sources.items():
        shape, fact = skeleton.shapes[name], facts[source]
        if fact.shape != shape:
            misfits[name] = f"{source} is {list(fact.shape)} in the file, {list(shape)} in the model"
        elif fact.dtype not in FLOATING:
            misfits[name] = f"{source} is stored as {fact.dtype}, and only {listed(FLOATING)} can be read"
    return misfits


def _added_rows(recognised: Recognised, facts: Mapping[str, TensorFacts]) -> dict[str, tuple[str, int]]:
    plain = {recognised.layout.keys.plain(source): source for source in facts}
    return {row.to: (plain[row.table], row.row) for row in recognised.layout.added_rows}


def _refuse_gaps(recognised: Recognised, skeleton: Skeleton, fresh: Iterable[str], places: Mapping[str, str]) -> None:
    """Refuse an encoder that lacks tensors, or that has more than the configuration knows."""
    keys, trunk = recognised.layout.keys, skeleton.trunk
    lacking = [keys.published(name) for name in fresh if name in trunk]
    parts = {name.partition(".")[0] for name in trunk}
    surplus = [source for name, source in places.items() if name.partition(".")[0] in parts and name not in trunk]
    for names, what in ((lacking, "lacks tensors that"), (surplus, "has tensors in its encoder that nothing in")):
        if names:
            more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
            raise CheckpointError(
                f"the checkpoint {what} the configuration asks for: {listed(names[:LISTED])}{more}. The weights don't "
                "belong to this config.json, or to the fields passed."
            )
