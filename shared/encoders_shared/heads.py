"""Prediction heads that are more than one linear layer."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from encoders_shared.dropout import Dropout
from encoders_shared.linear import Linear


class LTGHead(nn.Module):
    """Head of LTG-BERT and NorBERT3, for tokens, sequences and vocabulary alike (Samuel et al. 2023).

    Norm, linear, GELU, norm, dropout, linear; the norms have no parameters. [..., hidden] -> [..., outputs].
    """

    def __init__(self, *, hidden_size: int, outputs: int, dropout: float, layer_norm_eps: float):
        super().__init__()
        self.nonlinearity = nn.Sequential(
            nn.LayerNorm(hidden_size, layer_norm_eps, elementwise_affine=False),
            Linear(hidden_size, hidden_size),
            nn.GELU(),
            nn.LayerNorm(hidden_size, layer_norm_eps, elementwise_affine=False),
            Dropout(dropout),
            Linear(hidden_size, outputs),
        )

    def forward(self, states: Tensor) -> Tensor:
        return self.nonlinearity(states)


class TransformHead(nn.Module):
    """BERT's head for the vocabulary: dense, GELU, norm, decoder (Devlin et al. 2019, in the order of its code).

    [..., hidden] -> [..., vocabulary].
    """

    def __init__(self, *, hidden_size: int, outputs: int):
        super().__init__()
        self.dense = Linear(hidden_size, hidden_size)
        self.activation = nn.GELU()
        self.layer_norm = nn.LayerNorm(hidden_size)
        self.decoder = Linear(hidden_size, outputs)

    def forward(self, states: Tensor) -> Tensor:
        return self.decoder(self.layer_norm(self.activation(self.dense(states))))


class SkipMLPHead(nn.Module):
    """Multi-layer perceptron with a skip connection round each linear layer (HELM-BERT).

    Each layer: linear, plus its input, GELU, norm, dropout; then a linear layer to the outputs.
    [..., hidden] -> [..., outputs].
    """

    def __init__(self, *, hidden_size: int, outputs: int, layers: int, dropout: float):
        super().__init__()
        self.layers = nn.ModuleList([Linear(hidden_size, hidden_size) for _ in range(layers)])
        self.norms = nn.ModuleList([nn.LayerNorm(hidden_size) for _ in range(layers)])
        self.activation = nn.GELU()
        self.dropout = Dropout(dropout)
        self.output_layer = Linear(hidden_size, outputs)

    def forward(self, states: Tensor) -> Tensor:
        for layer, norm in zip(self.layers, self.norms, strict=True):
            states = self.dropout(norm(self.activation(layer(states) + states)))
        return self.output_layer(states)


class ReservedIds(nn.Module):
    """Give the first ids of the vocabulary a score of -inf: they are never predicted. [..., vocabulary], same shape."""

    def __init__(self, count: int):
        super().__init__()
        self.count = count

    def forward(self, logits: Tensor) -> Tensor:
        reserved = torch.arange(logits.shape[-1], device=logits.device) < self.count
        return logits.masked_fill(reserved, float("-inf"))
