"""Do two models compute the same?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from encoders_shared.evaluation import evaluating
from encoders_shared.masks import read_attention_mask

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BY_TOKEN = ("start logits", "end logits")
_SMALLEST_DRAWN = 1e-18


@dataclass(frozen=True)
class LayerDifference:
    """How far two models are apart at one place.

    Attributes:
        name: "embeddings", "layer 1", ..., or the name of an output.
        absolute: the largest difference.
        relative: the largest difference, as a share of the largest value of the first model there.
    """

    name: str
    absolute: float
    relative: float


@dataclass(frozen=True)
class ParityReport:
    """Differences between two models at attended positions.

    Attributes:
        differences: one for each layer, then for each output.
        tolerance: largest relative difference that counts as agreement.
        left_out: outputs that were not compared, and why.
    """

    differences: tuple[LayerDifference, ...]
    tolerance: float
    left_out: tuple[str, ...] = ()

    @property
    def first_departure(self) -> str | None:
        """The first place where the models are apart by more than the tolerance, None if there is none."""
        return next((one.name for one in self.differences if not one.relative <= self.tolerance), None)

    @property
    def agree(self) -> bool:
        """Whether the models are the same within the tolerance everywhere."""
        return self.first_departure is None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data, ready for JSON; None stands for nan and infinity."""
        differences = [
            {"name": one.name, "absolute": _plain(one.absolute), "relative": _plain(one.relative)}
            for one in self.differences
        ]
        return {
            "agree": self.agree,
            "first_departure": self.first_departure,
            "tolerance": self.tolerance,
            "differences": differences,
            "left_out": list(self.left_out),
        }

    def __str__(self) -> str:
        lines = [f"{'':<24}{'absolute':>12}{'relative':>12}"]
        for one in self.differences:
            mark = "" if one.relative <= self.tolerance else "  <- beyond the tolerance"
            lines.append(f"{one.name:<24}{one.absolute:>12.2e}{one.relative:>12.2e}{mark}")
        lines += [f"not compared: {reason}" for reason in self.left_out]
        verdict = "agree everywhere" if self.agree else f"depart at {self.first_departure}"
        return "\n".join([*lines, f"The models {verdict} (relative tolerance {self.tolerance:g})."])


def parity(
    model_a: nn.Module, model_b: nn.Module, inputs: Mapping[str, Tensor], *, tolerance: float = 1e-5
) -> ParityReport:
    """Compare two models, layer by layer, on the same batch.

    They may be of two classes or libraries, types, backends or devices. Both run in evaluation mode and are left as
    they were found. Positions that nobody attends to are left out: what a model gives there means nothing.

    The pooled vector is compared where both configurations have the same `pooling`. Otherwise it differs by choice, not
    by mistake, and is left out: so it is with classes outside this library, whose poolers have weights of their own.

    Args:
        model_a: the model to trust; any transformers model that returns hidden states, of this library or not.
        model_b: the model to check.
        inputs: keywords for both; they are moved to each model's device, and `inputs_embeds` get its type.
        tolerance: largest relative difference that counts as agreement. Single precision needs about 1e-5, half
            precision 1e-2 (float16) or 1e-1 (bfloat16); small faults, such as a wrong epsilon, show only in float64.

    Raises:
        ValueError: the tolerance is negative, no token is real, a model returns no hidden states, or the models return
            different fields or tensors of different shapes.
    """
    if not tolerance >= 0:
        raise ValueError(f"tolerance is {tolerance}; a number from 0 on is needed, such as 1e-5.")
    tokens = _tokens(inputs)
    if not tokens.any():
        raise ValueError("the batch has no real token, so there is nothing to compare: pass some, with a mask of 1.")
    first, second = _states(model_a, inputs), _states(model_b, inputs)
    left_out = _drop_other_poolings((model_a, model_b), (first, second))
    if first.keys() != second.keys():
        raise ValueError(f"the models can't be compared: one gives {list(first)}, the other {list(second)}.")
    differences = []
    for name, a in first.items():
        b = second[name]
        if a.shape != b.shape:
            raise ValueError(f"the models can't be compared: {name} is {list(a.shape)} against {list(b.shape)}.")
        by_token = a.dim() == 3 or name in _BY_TOKEN
        differences.append(_difference(name, *(x.double()[tokens] if by_token else x.double() for x in (a, b))))
    return ParityReport(tuple(differences), tolerance, left_out)


def difference_figure(report: ParityReport, title: str = "") -> Figure:
    """Draw the relative differences by depth, with the tolerance as a line. Needs matplotlib (the extra `plot`)."""
    from matplotlib.figure import Figure

    names = [one.name for one in report.differences]
    heights = [max(one.relative, _SMALLEST_DRAWN) for one in report.differences]  # a logarithm has no zero
    figure = Figure(figsize=(max(6.0, 1.5 + 0.3 * len(names)), 4.0), layout="constrained")
    axes = figure.subplots()
    axes.semilogy(range(len(names)), heights, "o-", color="C0")
    axes.axhline(report.tolerance, color="0.4", linestyle="dashed", label=f"tolerance {report.tolerance:g}")
    for place, one in enumerate(report.differences):
        if not isfinite(one.relative):
            axes.axvline(place, color="C3", linestyle="dotted", label=f"{one.name}: nan or infinite")
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right")
    axes.set_ylabel(f"relative difference (0 is drawn at {_SMALLEST_DRAWN:.0e})")
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return figure


def _states(model: nn.Module, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Run a model; name its states and outputs, on the CPU."""
    weight = next(model.parameters())
    moved = {name: value.to(weight.device) for name, value in inputs.items()}
    if "inputs_embeds" in moved:
        moved["inputs_embeds"] = moved["inputs_embeds"].to(weight.dtype)
    with evaluating(model):
        output = model(**moved, output_hidden_states=True, return_dict=True)
    if output.get("hidden_states") is None:
        raise ValueError(f"{type(model).__name__} returns no hidden states, so its layers can't be compared.")
    states = {f"layer {i}" if i else "embeddings": state for i, state in enumerate(output.hidden_states)}
    outputs = {name.replace("_", " "): value for name, value in output.items() if isinstance(value, Tensor)}
    return {name: value.cpu() for name, value in (states | outputs).items()}


def _drop_other_poolings(models: tuple[nn.Module, ...], found: tuple[dict[str, Tensor], ...]) -> tuple[str, ...]:
    """Take the pooled vectors out unless they mean the same, and say so if there were any."""
    name = "pooler output"
    configs = [cast(Any, model).config for model in models]
    poolings = [
        getattr(config, "pooling", None) if name in own else None for config, own in zip(configs, found, strict=True)
    ]
    if poolings[0] == poolings[1] and poolings[0] is not None:
        return ()
    removed = [own.pop(name, None) for own in found]
    if all(vector is None for vector in removed):
        return ()
    first, second = (pooling or "none, or one of its own" for pooling in poolings)
    return (f"{name} (pooling of the first: {first}; of the second: {second})",)


def _tokens(inputs: Mapping[str, Tensor]) -> Tensor:
    """Return which tokens are real, bool [batch * choices, length], on the CPU."""
    given = inputs["input_ids"] if "input_ids" in inputs else inputs["inputs_embeds"][..., 0]
    rows = given.flatten(0, -2)  # [batch * choices, length]
    mask = inputs.get("attention_mask")
    if mask is not None and given.dim() == 3:
        mask = mask.flatten(0, 1)
    return read_attention_mask(mask, rows.shape[0], rows.shape[1], rows.device).tokens.cpu()


def _difference(name: str, a: Tensor, b: Tensor) -> LayerDifference:
    same = (a == b) | (a.isnan() & b.isnan())
    apart = torch.where(same, 0.0, (a - b).abs())
    absolute = apart.max().item() if apart.numel() else 0.0
    scale = a[a.isfinite()].abs().max().item() if a.isfinite().any() else 0.0
    return LayerDifference(name, absolute, absolute / scale if scale else absolute)


def _plain(number: float) -> float | None:
    return number if isfinite(number) else None
