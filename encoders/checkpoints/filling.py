"""From a plan to a model: read the tensors, and initialise what the checkpoint lacks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, cast

import torch
from torch import Tensor, nn

from encoders.checkpoints.plan import Plan
from encoders.checkpoints.weights import FLOATING, Weights
from encoders_shared.config import EncoderConfig
from encoders_shared.errors import ConfigurationError, listed
from encoders_shared.model import EncoderPreTrainedModel


def build(
    model_class: type[EncoderPreTrainedModel], config: EncoderConfig, plan: Plan, weights: Weights, dtype: torch.dtype
) -> EncoderPreTrainedModel:
    """Return the model, in evaluation mode, on torch's default device.

    It is made without memory and then given its tensors, so nothing is initialised only to be overwritten. All values
    are copied: the model doesn't depend on the files. Fresh tensors are initialised as in a new model, from torch's
    random numbers.
    """
    device = torch.empty(0).device  # `torch.get_default_device` overlooks `with torch.device(...)` in older versions
    device = torch.device("cpu") if device.type == "meta" else device
    with torch.device("meta"):
        model = model_class(config)
    parameters = {
        name: nn.Parameter(_values(name, plan, weights).to(device, dtype, copy=True)) for name in plan.sources
    }
    for name in plan.fresh:
        parameters[name] = nn.Parameter(torch.empty(plan.skeleton.shapes[name], dtype=dtype, device=device))
    for decoder, embeddings in plan.tied.items():
        parameters[decoder] = parameters[embeddings]
    state = {plan.skeleton.full_names[name]: parameter for name, parameter in parameters.items()}
    model.load_state_dict(state, strict=True, assign=True)
    for name, parameter in parameters.items():
        cast(Any, parameter)._is_hf_initialized = name not in plan.fresh  # transformers' initialisers heed it
    model.initialize_weights()
    model.config.dtype = dtype
    model.config.architectures = [model_class.__name__]
    return model.eval()


def choose_dtype(given: torch.dtype | str | None, plan: Plan, weights: Weights) -> torch.dtype:
    """Return the type of the model's parameters: the one asked for, or the widest that its tensors are stored in.

    Raises:
        ConfigurationError: there is no such type.
    """
    if isinstance(given, torch.dtype) and given.is_floating_point:
        return given
    if given in FLOATING:
        return getattr(torch, str(given))
    if given not in (None, "auto"):
        raise ConfigurationError(f"dtype is {given!r}; allowed: {listed(FLOATING)}, or 'auto' for that of the files.")
    return stored_dtype(weights.facts[source].dtype for source in plan.sources.values())


def stored_dtype(names: Iterable[str]) -> torch.dtype:
    """Return the narrowest type that holds all of these without loss."""
    return reduce(torch.promote_types, (getattr(torch, name) for name in sorted(set(names))))


def _values(name: str, plan: Plan, weights: Weights) -> Tensor:
    values = weights.read(plan.sources[name])
    if name in plan.added_rows:
        table, row = plan.added_rows[name]
        values = values.float() + weights.read(table)[row].float()
    return values
