"""n-gram induced encoding: what tells HELM-BERT from DeBERTa-v2 inside the stack of layers."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encoders.helmbert.config import HELMBertConfig
from encoders_shared.dropout import Dropout
from encoders_shared.inputs import EncoderInputs
from encoders_shared.linear import suits_onednn, weight_gradient
from encoders_shared.packing import spread_out


class NgramConvolution(nn.Conv1d):
    """torch's convolution; on a CPU its gradients are products, which take less time than those of torch."""

    def forward(self, input: Tensor) -> Tensor:
        form = (self.padding, self.stride, self.dilation, self.groups)
        if form == ((self.kernel_size[0] // 2,), (1,), (1,), 1) and suits_onednn(input, self.weight):
            return _Convolution.apply(input, self.weight, self.bias)
        return super().forward(input)


class _Convolution(torch.autograd.Function):
    """Convolve [batch, hidden, length] with [hidden, hidden, tokens], an odd number of tokens, to the same length."""

    @staticmethod
    def forward(*tensors: Any) -> Tensor:
        input, weight, bias = tensors
        return F.conv1d(input, weight, bias, padding=weight.shape[2] // 2)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        input, weight, _ = inputs
        for_input, for_weight, _ = ctx.needs_input_grad
        ctx.tokens = weight.shape[2]
        ctx.save_for_backward(input if for_weight else None, weight if for_input else None)

    @staticmethod
    def backward(ctx: Any, d_output: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        input, weight = ctx.saved_tensors
        for_input, for_weight, for_bias = ctx.needs_input_grad
        reach = ctx.tokens // 2
        d_weight = None
        if for_weight:
            padded = F.pad(input, (reach, reach)).transpose(1, 2)
            shifted = [padded[:, first : first + input.shape[2]] for first in range(ctx.tokens)]
            neighbours = torch.cat(shifted, dim=-1).flatten(0, 1)  # [batch * length, tokens * hidden]
            products = weight_gradient(d_output.transpose(0, 1).flatten(1).t(), neighbours)
            d_weight = products.unflatten(1, (ctx.tokens, -1)).transpose(1, 2)
        return (
            F.conv_transpose1d(d_output, weight, padding=reach) if for_input else None,
            d_weight,
            d_output.sum((0, 2)) if for_bias else None,
        )


class NgramLayer(nn.Module):
    """Add features of neighbouring tokens, found by a convolution over the embeddings (nGiE, as in DeBERTa-v2).

    The embeddings of padding are zero, as is what the convolution sees beyond the ends, so padding changes nothing.
    """

    def __init__(self, config: HELMBertConfig):
        super().__init__()
        self.conv = NgramConvolution(
            config.hidden_size, config.hidden_size, config.ngie_kernel_size, padding=config.ngie_kernel_size // 2
        )
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
        return inputs.mask.clear(self.layer_norm(states + features))

    def _convolve(self, embedded: Tensor, lengths: list[int] | None) -> Tensor:
        if lengths is None:
            return self.conv(embedded.transpose(1, 2)).transpose(1, 2)  # [batch, length, hidden]
        spread, place = spread_out(embedded, lengths, gap=self.conv.kernel_size[0] // 2)
        return self.conv(spread.transpose(1, 2)).transpose(1, 2)[:, place]  # [1, tokens, hidden]
