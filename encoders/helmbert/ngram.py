"""n-gram induced encoding: what tells HELM-BERT from DeBERTa-v2 inside the stack of layers."""

from __future__ import annotations

from torch import Tensor, nn

from encoders.helmbert import convolution
from encoders.helmbert.config import HELMBertConfig
from encoders_shared.dropout import Dropout
from encoders_shared.inputs import EncoderInputs
from encoders_shared.packing import spread_out


class NgramConvolution(nn.Conv1d):
    """torch's convolution to the same length, in fewer multiplications where that pays."""

    def __init__(self, width: int, tokens: int):
        super().__init__(width, width, tokens, padding=tokens // 2)

    def forward(self, input: Tensor) -> Tensor:
        """[batch, hidden, length] -> the same."""
        states = input.transpose(1, 2)
        if self.kernel_size == (3,) and convolution.pays(states):
            return convolution.convolve(states, self.weight, self.bias).transpose(1, 2)
        return super().forward(input)


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
        return inputs.mask.clear(self.layer_norm(states + features))

    def _convolve(self, embedded: Tensor, lengths: list[int] | None) -> Tensor:
        if lengths is None:
            return self.conv(embedded.transpose(1, 2)).transpose(1, 2)  # [batch, length, hidden]
        spread, place = spread_out(embedded, lengths, self.conv.kernel_size[0] // 2, convolution.TILE)
        return self.conv(spread.transpose(1, 2)).transpose(1, 2)[:, place]  # [1, tokens, hidden]
