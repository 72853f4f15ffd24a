"""Parity with the published code: outputs, hidden states, attentions, losses and gradients of every golden case.

The files in tests/golden were made by running the documents that the families come from; each holds the parameters,
inputs, outputs and gradients of one small random model. Values at padding mean nothing and are not compared.

Differences on purpose: NorBERT's document returns differences between layers as hidden states, ours are states, so they
are compared through `layer_differences`; its position tables (`position_indices`) are computed, not loaded.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

import encoders.distilbert
import encoders.helmbert
import encoders.norbert
from encoders.norbert import layer_differences
from tests.support import BACKENDS, assert_close, loss_of

GOLDEN = Path(__file__).parent / "golden"
FAMILIES = {"helmbert": encoders.helmbert, "norbert": encoders.norbert, "distilbert": encoders.distilbert}
CASES = sorted(path.stem for family in FAMILIES for path in GOLDEN.glob(f"{family}-*.safetensors"))


def read_case(case: str) -> tuple[str, dict, dict[str, dict[str, Tensor]]]:
    """Return the class name, the configuration, and the tensors by kind ("param", "in", "out", "grad") and name."""
    with safe_open(GOLDEN / f"{case}.safetensors", "pt") as file:
        metadata = file.metadata()
        tensors: dict[str, dict[str, Tensor]] = {"param": {}, "in": {}, "out": {}, "grad": {}}
        for key in file.keys():  # noqa: SIM118 - it is not a dictionary
            kind, _, name = key.partition(".")
            tensors[kind][name] = file.get_tensor(key)
    config = json.loads(metadata["config"])
    if "contiguous" in case:
        config["position_projection"] = "contiguous"
    return metadata["class"], config, tensors


def run_case(case: str, backend: str, packing: bool, output_attentions: bool):
    """Load the golden parameters, strictly, and run the golden inputs."""
    class_name, config, tensors = read_case(case)
    family = FAMILIES[case.partition("-")[0]]
    config_class = family.FAMILY.config_class
    model = getattr(family, class_name)(config_class(**config, attn_implementation=backend)).eval()
    model.load_state_dict(tensors["param"], strict=True)
    model.trunk.packing = packing
    options = {"use_emd": False} if case.endswith("without-emd") else {}
    output = model(**tensors["in"], **options, output_hidden_states=True, output_attentions=output_attentions)
    return model, output, tensors


def flatten(output, family: str) -> dict[str, Tensor]:
    """Name every tensor of an output as the golden files do."""
    named = {name: value for name, value in output.items() if isinstance(value, Tensor)}
    states = layer_differences(output.hidden_states) if family == "norbert" else output.hidden_states
    named |= {f"hidden_states.{i}": state for i, state in enumerate(states)}
    named |= {f"attentions.{i}": weights for i, weights in enumerate(output.attentions or ())}
    return named


def attended(name: str, values: Tensor, mask: Tensor) -> Tensor:
    """Keep the values at real tokens; of attention weights, those of real queries."""
    if name.startswith("attentions"):
        values = values.transpose(1, 2)  # [batch, query, heads, key]
    return values[mask] if values.shape[:2] == mask.shape else values


def test_every_family_has_cases():
    assert {case.partition("-")[0] for case in CASES} == set(FAMILIES)
    assert len(CASES) == 31


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("packing", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_outputs_and_gradients(case, packing, backend):
    with_attentions = backend == "eager" and not packing
    model, output, tensors = run_case(case, backend, packing, output_attentions=with_attentions)
    mask = tensors["in"]["attention_mask"].flatten(0, -2).bool()
    ours = flatten(output, case.partition("-")[0])
    expected = {n: v for n, v in tensors["out"].items() if with_attentions or not n.startswith("attentions")}
    assert expected.keys() <= ours.keys()
    for name, value in expected.items():
        assert_close(attended(name, ours[name], mask), attended(name, value, mask), 1e-5, f"{case} {name}")

    loss_of(output, tensors["in"]["attention_mask"]).backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    largest = max(gradient.abs().max() for gradient in tensors["grad"].values())
    for name, value in tensors["grad"].items():
        allowed = max(1e-4 * value.abs().max(), 1e-6 * largest)  # the true gradient of a key's bias is zero
        assert (gradients[name] - value).abs().max() <= allowed, f"{case} gradient of {name}"
    for name in gradients.keys() - tensors["grad"].keys():
        assert not gradients[name].any(), f"{case}: {name} has a gradient that upstream's code does not give"


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("norbert")])
def test_wrong_position_projection_shows(case):
    """The two layouts have the same names and shapes; the wrong one must not pass the comparison above."""
    class_name, config, tensors = read_case(case)
    wrong = "interleaved" if "contiguous" in case else "contiguous"
    model = getattr(encoders.norbert, class_name)(
        encoders.norbert.NorbertConfig(**{**config, "position_projection": wrong})
    ).eval()
    model.load_state_dict(tensors["param"])
    with torch.no_grad():
        states = model(**tensors["in"], output_hidden_states=True).hidden_states
    mask = tensors["in"]["attention_mask"].flatten(0, -2).bool()
    expected = tensors["out"]["hidden_states.1"][mask]
    assert (layer_differences(states)[1][mask] - expected).abs().max() > 1e-2 * expected.abs().max()
