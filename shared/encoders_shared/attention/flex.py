"""Attention by torch's FlexAttention (Dong et al. 2024): on a GPU one fused kernel that looks positions up by itself.

It is there to be asked for: it has not been measured on a GPU, so "auto" does not take it. On a CPU it runs unfused,
for checking, and torch has no gradients for it there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from encoders_shared.attention.interface import AttentionInputs, AttentionSettings, RelativePositions, mask_heads
from encoders_shared.errors import ConfigurationError

# torch's own limit is 8; with and without mask and gradients, for few and many blocks, a model may need more
KERNELS = 64


def flex(inputs: AttentionInputs) -> tuple[Tensor, None]:
    """Use torch's FlexAttention; position scores are looked up as the kernel meets each pair.

    Raises:
        ConfigurationError: there is dropout, which FlexAttention does not have.
        ValueError: gradients are wanted on a CPU, where it has none.
    """
    settings, positions, key, value = inputs.settings, inputs.positions, inputs.key, inputs.value
    _check((inputs.query, key, value), inputs.dropout)
    if not len(value):
        return torch.empty_like(value), None
    query = inputs.query * inputs.scale  # before the products, so that half precision does not overflow
    block_mask = settings.once(_block_mask, query)
    score = None if positions is None else _with_positions(query, key, positions, inputs.scale)
    context: Tensor = _kernel(query.is_cuda and not torch.compiler.is_compiling())(
        query, key, value, score_mod=score, block_mask=block_mask, scale=1.0
    )
    if settings.allowed is not None:
        context = context.masked_fill(~settings.allowed.any(dim=-1, keepdim=True), 0.0)
    return mask_heads(context, settings.head_mask), None


def _check(tensors: tuple[Tensor, ...], dropout: float) -> None:
    if dropout:
        raise ConfigurationError(
            f"the flex attention backend has no dropout, got {dropout}: set the attention dropout of the configuration "
            "to 0, or choose another backend with model.set_attn_implementation('auto')."
        )
    wanted = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    if wanted and tensors[0].device.type == "cpu":
        raise ValueError(
            "the flex attention backend has no gradients on a CPU: run it under torch.no_grad(), or choose another "
            "backend with model.set_attn_implementation('auto')."
        )


@cache
def _kernel(compiled: bool) -> Callable[..., Any]:
    from torch.nn.attention.flex_attention import flex_attention

    if not compiled:
        return flex_attention
    fused = torch.compile(flex_attention, dynamic=True)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        config = torch._dynamo.config
        with config.patch(cache_size_limit=max(KERNELS, config.cache_size_limit)):  # later called recompile_limit, too
            return fused(*args, **kwargs)

    return kernel


def _block_mask(settings: AttentionSettings, query: Tensor) -> Any:
    """Return torch's mask, which knows the blocks that are wholly masked; None if all may attend to all."""
    from torch.nn.attention.flex_attention import create_block_mask

    visible = _visible(settings, query.device)
    if visible is None:
        return None
    batch, heads, length, _ = query.shape
    heads = None if settings.allowed is None or settings.allowed.shape[1] == 1 else heads
    return create_block_mask(visible, batch, heads, length, length, device=str(query.device))


def _visible(settings: AttentionSettings, device: torch.device) -> Callable | None:
    """Return a function that tells whether a query may attend to a key; None if all may attend to all."""
    if settings.lengths is not None:
        sizes = torch.tensor(settings.lengths)
        sequence = torch.repeat_interleave(torch.arange(len(sizes)), sizes).to(device)  # [tokens]
        return lambda b, h, q, k: sequence[q] == sequence[k]
    if settings.allowed is None:
        return None
    allowed = settings.allowed
    rows, heads, queries, _ = (min(size, 2) - 1 for size in allowed.shape)  # 0 where one serves all
    return lambda b, h, q, k: allowed[b * rows, h * heads, q * queries, k]


def _with_positions(query: Tensor, key: Tensor, positions: RelativePositions, scale: float) -> Callable:
    """Return a function that adds the position scores of a pair to its score."""
    rows, middle = positions.rows, len(positions.rows) // 2
    by_query = None if positions.keys is None else query @ positions.keys.transpose(-1, -2)  # [.., query, rows]
    by_key = (
        None if positions.queries is None else (positions.queries * scale) @ key.transpose(-1, -2)
    )  # [.., rows, key]

    def add(score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        row = rows[(q - k).clamp(-middle, middle) + middle]  # two packed sequences may be farther apart: masked
        if by_query is not None:
            score = score + by_query[b, h, q, row]
        if by_key is not None:
            score = score + by_key[b, h, row, k]
        return score

    return add
