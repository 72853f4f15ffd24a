"""Do two models compute the same?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from encoders_shared.masks import read_attention_mask


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
    """

    differences: tuple[LayerDifference, ...]
    tolerance: float

    @property
    def first_departure(self) -> str | None:
        """The first place where the models are apart by more than the tolerance, None if there is none."""
        return next((one.name for one in self.differences if not one.relative <= self.tolerance), None)

    @property
    def agree(self) -> bool:
        """Whether the models are the same within the tolerance everywhere."""
        return self.first_departure is None

    def __str__(self) -> str:
        lines = [f"{'':<24}{'absolute':>12}{'relative':>12}"]
        for one in self.differences:
            mark = "" if one.relative <= self.tolerance else "  <- beyond the tolerance"
            lines.append(f"{one.name:<24}{one.absolute:>12.2e}{one.relative:>12.2e}{mark}")
        verdict = "agree everywhere" if self.agree else f"depart at {self.first_departure}"
        return "\n".join([*lines, f"The models {verdict} (relative tolerance {self.tolerance:.0e})."])


def parity(
    model_a: nn.Module, model_b: nn.Module, inputs: Mapping[str, Tensor], *, tolerance: float = 1e-5
) -> ParityReport:
    """Compare two models, layer by layer, on the same batch.

    Both run in evaluation mode and are left as they were found. Positions that nobody attends to are left out: what a
    model gives there means nothing.

    Args:
        model_a: the model to trust; any transformers model that returns hidden states, of this library or not.
        model_b: the model to check.
        inputs: keywords for both.
        tolerance: largest relative difference that counts as agreement.

    Raises:
        ValueError: the models return different fields, or tensors of different shapes.
    """
    first, second = _states(model_a, inputs), _states(model_b, inputs)
    if first.keys() != second.keys():
        raise ValueError(f"the models can't be compared: one gives {list(first)}, the other {list(second)}.")
    tokens = _tokens(inputs)
    differences = []
    for name, a in first.items():
        b = second[name]
        if a.shape != b.shape:
            raise ValueError(f"the models can't be compared: {name} is {list(a.shape)} against {list(b.shape)}.")
        differences.append(_difference(name, *(_attended(x.double(), tokens) for x in (a, b))))
    return ParityReport(tuple(differences), tolerance)


def _states(model: nn.Module, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            output = model(**inputs, output_hidden_states=True, return_dict=True)
    finally:
        model.train(training)
    states = {f"layer {i}" if i else "embeddings": state for i, state in enumerate(output.hidden_states)}
    outputs = {name: value for name, value in output.items() if isinstance(value, Tensor)}
    outputs.pop("pooler_output", None)  # by choice, not by computation
    return states | {name.replace("_", " "): value for name, value in outputs.items()}


def _tokens(inputs: Mapping[str, Tensor]) -> Tensor:
    given = inputs["input_ids"] if "input_ids" in inputs else inputs["inputs_embeds"][..., 0]
    rows = given.flatten(0, -2)  # [batch * choices, length]
    mask = inputs.get("attention_mask")
    if mask is not None and given.dim() == 3:
        mask = mask.flatten(0, 1)
    return read_attention_mask(mask, rows.shape[0], rows.shape[1], rows.device).tokens


def _attended(values: Tensor, tokens: Tensor) -> Tensor:
    return values[tokens] if values.shape[:2] == tokens.shape else values


def _difference(name: str, a: Tensor, b: Tensor) -> LayerDifference:
    same = (a == b) | (a.isnan() & b.isnan())
    apart = torch.where(same, 0.0, (a - b).abs())
    absolute = apart.max().item() if apart.numel() else 0.0
    scale = a[a.isfinite()].abs().max().item() if a.isfinite().any() else 0.0
    return LayerDifference(name, absolute, absolute / scale if scale else absolute)
