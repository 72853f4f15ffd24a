"""The points that configurations, families and cards settle; no weights and no texts are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from encoders.family import TASKS
from encoders.sides import Side
from encoders.swap.report import SwapLine
from encoders_shared.errors import listed
from encoders_shared.model import Trunk
from encoders_shared.tasks import MaskedLM, TaskModel

Fact = TypeVar("Fact")

ANY = "any"
EITHER_SIDE = "left or right"
NO_WEIGHTS = "none published"
MORE = 1.2
"""From this ratio on, more memory or time is worth planning for."""


def weight_lines(a: Side, b: Side) -> Iterator[SwapLine]:
    """Yield what is to be said of the trained weights: where they are, whose they are, how big."""
    homes = _both(_weights, a, b)
    lost = homes[1] == NO_WEIGHTS != homes[0]
    yield SwapLine("trained weights", *homes, "train from scratch" if lost else None)
    heads = _both(lambda side: side.head or "none", a, b)
    lost = a.head is not None and a.head != b.head
    yield SwapLine("trained head", *heads, f"train a head for {a.head} anew" if lost else None)
    questions = _both(lambda side: "leaves something open" if side.open_question else "leaves nothing open", a, b)
    yield SwapLine("config.json", *questions, b.open_question)
    licences = _both(_licence, a, b)
    yield SwapLine("licence of the weights", *licences, _differs(licences, "check that it allows your use", NO_WEIGHTS))
    languages = _both(lambda side: side.preset and side.preset.languages, a, b)
    yield SwapLine("languages", *languages, _differs(languages, "check that your texts are in them", ANY))
    counts = _both(lambda side: sum(p.numel() for p in side.skeleton(None).parameters()), a, b)
    yield SwapLine("parameters", *counts)
    megabytes = (4 * counts[0] / 1e6, 4 * counts[1] / 1e6)
    yield SwapLine("weights in MB, float32", *megabytes, more("memory", *megabytes))


def input_lines(a: Side, b: Side, length: int | None) -> Iterator[SwapLine]:
    """Yield what changes in what a model takes."""
    ids = _both(lambda side: side.config.pad_token_id, a, b)
    yield SwapLine("padding id", *ids, _differs(ids, "take it from the tokenizer or the configuration"))
    limits = _both(_longest, a, b)
    limit, needed = b.maximum_length, length or a.maximum_length
    too_long = limit is not None and (needed is None or needed > limit)
    beyond = f"keep to {limit} tokens; beyond that: {b.family.beyond_maximum}"
    yield SwapLine("longest sequence", *limits, beyond if too_long else None)
    yield SwapLine("positions", a.family.positions, b.family.positions)
    uses = _both(lambda side: side.family.position_ids, a, b)
    yield SwapLine("position_ids", *uses, _differs(uses, f"if you pass them: they are {uses[1]}"))
    paddings = _both(lambda side: side.family.padding, a, b)
    pad = f"pad on a side that changes nothing: {paddings[1]}"
    yield SwapLine("harmless padding", *paddings, _differs(paddings, pad, EITHER_SIDE))
    yield SwapLine("token_type_ids", "ignored", "ignored")
    options = _both(_options, a, b)
    refused = [f"{names} ({task})" for task, names in options[0].items() if options[1].get(task) != names]
    yield SwapLine("options of forward", *options, f"don't pass {listed(refused)}" if refused else None)


def output_lines(a: Side, b: Side) -> Iterator[SwapLine]:
    """Yield what changes in what a model gives, in its heads and in its labels."""
    for topic, field, action in (
        ("hidden size", "hidden_size", "layers of your own on top need the new width"),
        ("layers", "num_hidden_layers", "choose anew if you pick hidden_states by number"),
        ("attention heads", "num_attention_heads", "a head_mask needs the new shape"),
    ):
        sizes = getattr(a.config, field), getattr(b.config, field)
        yield SwapLine(topic, *sizes, _differs(sizes, action))
    poolings = _both(lambda side: side.config.pooling, a, b)
    yield SwapLine("pooling", *poolings, _differs(poolings, f"pooling={poolings[0]!r} keeps what the vector means"))
    yield SwapLine("tasks", listed(TASKS), listed(TASKS))
    parts = _both(_head_parts, a, b)
    yield SwapLine("modules of the heads", *parts, _differs(parts, "train heads anew; change code that names modules"))
    prefixes = _both(_prefix, a, b)
    yield SwapLine("prefix under a head", *prefixes, _differs(prefixes, "change code that names parameters"))
    rule = "-100 is ignored; the loss follows num_labels and the type of the labels"
    yield SwapLine("labels", rule, rule)
    first = _both(_first_label, a, b)
    refused = f"use no labels below {first[1]}: they are refused" if first[1] > first[0] else None
    yield SwapLine("first masked-LM label", *first, refused)


def more(what: str, a: float, b: float) -> str | None:
    """Return what to do where a swap costs more, or None."""
    return f"plan for {b / a:.1f} times the {what}" if b > MORE * a else None


def _both(fact: Callable[[Side], Fact], a: Side, b: Side) -> tuple[Fact, Fact]:
    return fact(a), fact(b)


def _differs(values: tuple[object, object], action: str, harmless: str | None = None) -> str | None:
    """Return the action unless both values are known and the same, or the second never does harm."""
    if values[1] is None:
        return "look it up where the weights come from"
    return None if values[0] == values[1] or values[1] == harmless else action


def _weights(side: Side) -> str:
    return side.title if side.preset is None else side.preset.checkpoint or NO_WEIGHTS


def _licence(side: Side) -> str | None:
    if side.preset is None:
        return None
    return side.preset.licence if side.preset.checkpoint else NO_WEIGHTS


def _longest(side: Side) -> int | str:
    masked = side.family.maximum_length(side.config, "masked-lm")
    return side.maximum_length or (ANY if masked is None else f"{ANY}; {masked} for masked LM")


def _options(side: Side) -> dict[str, str]:
    models = side.family.tasks.items()
    return {task or "bare": listed(model.forward_options) for task, model in models if model.forward_options}


def _head_parts(side: Side) -> dict[str, str]:
    models = {task: side.family.tasks[task] for task in TASKS}
    return {task: listed(model.head_parts) for task, model in models.items() if issubclass(model, TaskModel)}


def _prefix(side: Side) -> str:
    model = side.family.tasks["sequence-classification"]
    return "none" if issubclass(model, Trunk) else model.base_model_prefix


def _first_label(side: Side) -> int:
    model = side.skeleton("masked-lm")
    return model.num_reserved_ids if isinstance(model, MaskedLM) else 0
