"""Faults to plant in a model, of every family where they apply.

Each function spoils layer `index` of a model, or a part that all layers share, and says where the first difference must
show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from encoders_shared.attention import AttentionSettings

Fault = Callable[[Any, int], str]


def layers_of(model) -> nn.ModuleList:
    return next(module for module in model.modules() if isinstance(module, nn.ModuleList))


def part(layer: nn.Module, *names: str) -> Any:
    """The first of these parts that there is, or None. Families name the same thing differently."""
    paths = [path for path, _ in layer.named_modules()]
    return next((layer.get_submodule(path) for name in names for path in paths if path.endswith(name)), None)


def attention_of(layer: nn.Module) -> Any:
    return part(layer, "self_attn", "attention")


def swapped_query_and_key(model, index):
    layer = layers_of(model)[index]
    joint = part(layer, "in_proj_qk")
    with torch.no_grad():
        for name in ("weight", "bias"):
            if joint is not None:
                halves = getattr(joint, name).chunk(2)
                getattr(joint, name).copy_(torch.cat(halves[::-1]))
            else:
                query, key = (
                    getattr(part(layer, *names), name) for names in (("query_proj", "q_lin"), ("key_proj", "k_lin"))
                )
                old = query.clone()
                query.copy_(key)
                key.copy_(old)
    return f"layer {index + 1}"


def wrong_norm_epsilon(model, index):
    """The defaults of two libraries: 1e-12 in BERT's, 1e-5 in torch."""
    norm = next(module for module in layers_of(model)[index].modules() if isinstance(module, nn.LayerNorm))
    norm.eps = 1e-12 if norm.eps == 1e-5 else 1e-5
    return f"layer {index + 1}"


def wrong_epsilon_of_the_embeddings(model, index):
    norm = next(module for module in model.modules() if isinstance(module, nn.LayerNorm))
    norm.eps = 1e-12 if norm.eps == 1e-5 else 1e-5
    return "embeddings"


def wrong_buckets(model, index):
    """Only distances in the logarithmic part get another bucket."""
    owner = next(module for module in model.modules() if hasattr(module, "buckets"))
    owner.buckets = replace(owner.buckets, max_position=owner.buckets.max_position // 2)
    return "layer 1"


def swapped_position_projections(model, index):
    attention = attention_of(layers_of(model)[index])
    if hasattr(attention, "split_positions"):
        split = attention.split_positions
        attention.split_positions = lambda projected, heads: split(projected, heads)[::-1]
    else:
        query, key = attention.pos_query_proj, attention.pos_key_proj
        query.weight, key.weight = key.weight, query.weight
    return f"layer {index + 1}"


def missing_scale(model, index):
    attention = attention_of(layers_of(model)[index])
    setattr(attention, "scale" if hasattr(attention, "scale") else "head_size", 1)
    return f"layer {index + 1}"


def ignored_mask(model, index):
    def see_everything(layer, given):
        return tuple(replace(x, allowed=None) if isinstance(x, AttentionSettings) else x for x in given)

    layers_of(model)[index].register_forward_pre_hook(see_everything)
    return f"layer {index + 1}"


def one_weight_off(model, index):
    weights = part(layers_of(model)[index], "mlp.mlp.4", "linear2", "ffn.lin2").weight
    with torch.no_grad():
        weights[3, 5] += 1e-3
    return f"layer {index + 1}"


def dropped_bias(model, index):
    part(layers_of(model)[index], "in_proj_v", "value_proj", "v_lin").bias = None
    return f"layer {index + 1}"


class OtherGELU(TorchFunctionMode):
    """The tanh form of GELU where the exact one is meant, and the other way round."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func is F.gelu:
            kwargs["approximate"] = "none" if kwargs.get("approximate") == "tanh" else "tanh"
        return func(*args, **kwargs)


class WithOtherGELU(nn.Module):
    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, *args):
        with OtherGELU():
            return self.inner(*args)


def wrong_activation(model, index):
    layer = layers_of(model)[index]
    path = next(path for path, module in layer.named_modules() if "GELU" in type(module).__name__)
    layer.set_submodule(path, WithOtherGELU(layer.get_submodule(path)))
    return f"layer {index + 1}"


def missing_residual(model, index):
    """The sum around the feed-forward network lacks what went into it."""
    layer = layers_of(model)[index]
    seen = []
    part(layer, "linear1", "ffn", "mlp").register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    part(layer, "linear2", "ffn", "mlp").register_forward_hook(lambda _, given, output: output - seen.pop())
    return f"layer {index + 1}"


def layers_in_the_wrong_order(model, index):
    layers = layers_of(model)
    other = (index + 1) % len(layers)
    layers[index], layers[other] = layers[other], layers[index]
    return f"layer {min(index, other) + 1}"


def untied_decoder(model, index):
    decoder = model.get_output_embeddings()
    decoder.weight = nn.Parameter(decoder.weight.detach() * 1.001)
    return "logits"


def wrong_pooled_token(model, index):
    encode = model.trunk.encode

    def second_token(*given, **named):
        output = encode(*given, **named)
        return replace(output, pooler_output=output.last_hidden_state[:, 1])

    model.trunk.encode = second_token
    return "pooler output" if model.trunk is model else "logits"


IN_LAYERS: tuple[Fault, ...] = (
    swapped_query_and_key,
    wrong_norm_epsilon,
    wrong_epsilon_of_the_embeddings,
    missing_scale,
    ignored_mask,
    one_weight_off,
    dropped_bias,
    wrong_activation,
    missing_residual,
    layers_in_the_wrong_order,
)
OF_RELATIVE_POSITIONS: tuple[Fault, ...] = (wrong_buckets, swapped_position_projections)
