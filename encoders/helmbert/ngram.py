"""n-gram induced encoding: what tells HELM-BERT from DeBERTa-v2 inside the stack of layers."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encoders.helmbert.config import HELMBertConfig
from encoders_shared.dropout import Dropout
from encoders_shared.inputs import EncoderInputs
from encoders_shared.linear import linear, suits_onednn
from encoders_shared.packing import spread_out


class NgramConvolution(nn.Conv1d):
    """A convolution over neighbouring tokens, whose gradients are products. [batch, length, hidden], same shape."""

    def __init__(self, width: int, tokens: int):
        super().__init__(width, width, tokens, padding=tokens // 2)

    def forward(self, input: Tensor) -> Tensor:
        convolve = _Convolution.apply if suits_onednn(input, self.weight) else _convolve
        return convolve(input, self.weight, self.bias)


def _convolve(states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Convolve states [batch, length, hidden] with weights [hidden, hidden, tokens]."""
    return F.conv1d(states.transpose(1, 2), weight, bias, padding=weight.shape[2] // 2).transpose(1, 2)


class _Convolution(torch.autograd.Function):
    """`_convolve`; as products, its gradients take less time than as the convolutions that torch makes of them."""

    @staticmethod
    def forward(*tensors: Any) -> Tensor:
        return _convolve(*tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        states, weight, _ = inputs
        for_states, for_weight, _ = ctx.needs_input_grad
        ctx.tokens = weight.shape[2]
        ctx.save_for_backward(states if for_weight else None, weight if for_states else None)

    @staticmethod
    def backward(ctx: Any, d_output: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        states, weight = ctx.saved_tensors
        for_states, for_weight, for_bias = ctx.needs_input_grad
        reach = ctx.tokens // 2
        d_states = d_weight = None
        if for_states:
            d_states = F.conv_transpose1d(d_output.transpose(1, 2), weight, padding=reach).transpose(1, 2)
        if for_weight:
            padded = F.pad(states, (0, 0, reach, reach))
            shifted = [padded[:, first : first + states.shape[1]] for first in range(ctx.tokens)]
            neighbours = torch.cat(shifted, dim=-1).flatten(0, 1)  # [batch * length, tokens * hidden]
            products = linear(d_output.flatten(0, 1).t(), neighbours.t(), None)  # [hidden, tokens * hidden]
            d_weight = products.unflatten(1, (-1, states.shape[2])).transpose(1, 2)
        return d_states, d_weight, d_output.sum((0, 1)) if for_bias else None


class NgramLayer(nn.Module):
    """Add features of neighbouring tokens, found by a convolution over the embeddings (nGiE, as in DeBERTa-v2).

    The embeddings of padding are zero, as is what the convolution sees beyond the ends, so padding changes nothing.
    """

    def __init__(self, config: HELMBertConfig):
        super().__init__()
        self.conv = NgramConvolution(config.hidden_size, config.ngie_kernel_size)
        self.dropout = Dropout(config.ngie_dropout)
        self.activation = nn.Tanh()
        self.layer_norm = nn.LayerNorm(config.hidden_size)

    def forward(self, embedded: Tensor, states: Tensor, inputs: EncoderInputs) -> Tensor:
        """Return the enriched states.

        Args:
            embedded: the embedded input, zero at padding [batch, length, hidden].
            states: the states to add the features to [batch, length, hidden].
            inputs: the batch; the result is zero at its padding.
        """
        features = self.activation(self.dropout(self._convolve(embedded, inputs.lengths)))
        return self.layer_norm(states + features).masked_fill(~inputs.mask.tokens[:, :, None], 0.0)

    def _convolve(self, embedded: Tensor, lengths: list[int] | None) -> Tensor:
        if lengths is None:
            return self.conv(embedded)
        spread, place = spread_out(embedded, lengths, gap=self.conv.kernel_size[0] // 2)
        return self.conv(spread)[:, place]  # [1, tokens, hidden]
