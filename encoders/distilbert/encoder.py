"""DistilBERT: BERT with half the layers, without segments and without a pooler (Sanh et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers.activations import get_activation

from encoders.distilbert.config import DistilBertConfig
from encoders.distilbert.pruning import prune_columns, prune_rows, remaining_heads
from encoders_shared.attention import AttentionSettings, attention, split_heads
from encoders_shared.compat import GradientCheckpointingLayer
from encoders_shared.compat import initialization as init
from encoders_shared.dropout import Dropout
from encoders_shared.inputs import EncoderInputs, absolute_positions
from encoders_shared.linear import Linear
from encoders_shared.model import BareModel, EncoderPreTrainedModel
from encoders_shared.outputs import EncoderOutput

LAYER_NORM_EPS = 1e-12


def sinusoidal_positions(length: int, dim: int) -> Tensor:
    """Sines in the even columns, cosines in the odd ones (Vaswani et al. 2017, section 3.5). float32 [length, dim]."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    pair = torch.arange(dim) // 2
    angle = position / 10_000 ** (2 * pair / dim).double()  # [length, dim]
    return torch.where(torch.arange(dim) % 2 == 0, angle.sin(), angle.cos()).float()


class SinusoidalEmbedding(nn.Embedding):
    """A table of sinusoidal positions. It is never trained, whatever a loader makes of its parameter."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.weight.requires_grad_(False)

    def forward(self, input: Tensor) -> Tensor:
        return nn.functional.embedding(input, self.weight.detach())


class Embeddings(nn.Module):
    """Words plus positions, normalised."""

    def __init__(self, config: DistilBertConfig):
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.dim, padding_idx=config.pad_token_id)
        position_table = SinusoidalEmbedding if config.sinusoidal_pos_embds else nn.Embedding
        self.position_embeddings = position_table(config.max_position_embeddings, config.dim)
        self.LayerNorm = nn.LayerNorm(config.dim, eps=LAYER_NORM_EPS)
        self.dropout = Dropout(config.dropout)

    def forward(self, inputs: EncoderInputs) -> Tensor:
        words = self.word_embeddings(inputs.ids) if inputs.embeds is None else inputs.embeds
        positions = absolute_positions(inputs, limit=self.position_embeddings.num_embeddings)
        return self.dropout(self.LayerNorm(words + self.position_embeddings(positions)))


class MultiHeadSelfAttention(nn.Module):
    """Scaled dot-product attention, some of whose heads may have been cut out."""

    def __init__(self, config: DistilBertConfig, pruned: Iterable[int]):
        super().__init__()
        self.head_size = config.dim // config.n_heads
        self.heads = remaining_heads(range(config.n_heads), pruned)
        width = len(self.heads) * self.head_size
        self.q_lin = Linear(config.dim, width)
        self.k_lin = Linear(config.dim, width)
        self.v_lin = Linear(config.dim, width)
        self.out_lin = Linear(width, config.dim)
        self.dropout = config.attention_dropout

    def prune_heads(self, pruned: Iterable[int]) -> None:
        """Cut heads out; they are named by their numbers before any pruning."""
        remaining = remaining_heads(self.heads, pruned)
        kept = torch.tensor([self.heads.index(head) for head in remaining])
        rows = (kept[:, None] * self.head_size + torch.arange(self.head_size)).flatten()
        for linear in (self.q_lin, self.k_lin, self.v_lin):
            prune_rows(linear, rows)
        prune_columns(self.out_lin, rows)
        self.heads = remaining

    def forward(self, states: Tensor, settings: AttentionSettings) -> tuple[Tensor, Tensor | None]:
        context, weights = attention(
            split_heads(self.q_lin(states), len(self.heads)),
            split_heads(self.k_lin(states), len(self.heads)),
            split_heads(self.v_lin(states), len(self.heads)),
            settings.for_heads(self.heads),
            scale=self.head_size**-0.5,
            dropout=self.dropout if self.training else 0.0,
        )
        return self.out_lin(context), weights


class FeedForward(nn.Module):
    """Two linear layers with an activation between them."""

    def __init__(self, config: DistilBertConfig):
        super().__init__()
        self.lin1 = Linear(config.dim, config.hidden_dim)
        self.activation = get_activation(config.activation)
        self.lin2 = Linear(config.hidden_dim, config.dim)
        self.dropout = Dropout(config.dropout)

    def forward(self, states: Tensor) -> Tensor:
        return self.dropout(self.lin2(self.activation(self.lin1(states))))


class TransformerBlock(GradientCheckpointingLayer):
    """Attention and feed-forward network, each followed by a residual sum and a norm."""

    def __init__(self, config: DistilBertConfig, pruned: Iterable[int]):
        super().__init__()
        self.attention = MultiHeadSelfAttention(config, pruned)
        self.sa_layer_norm = nn.LayerNorm(config.dim, eps=LAYER_NORM_EPS)
        self.ffn = FeedForward(config)
        self.output_layer_norm = nn.LayerNorm(config.dim, eps=LAYER_NORM_EPS)

    def forward(self, states: Tensor, settings: AttentionSettings) -> tuple[Tensor, Tensor | None]:
        context, weights = self.attention(states, settings)
        states = self.sa_layer_norm(states + context)
        return self.output_layer_norm(states + self.ffn(states)), weights


class Transformer(nn.Module):
    """The stack of blocks."""

    def __init__(self, config: DistilBertConfig):
        super().__init__()
        pruned = config.pruned_heads
        self.layer = nn.ModuleList([TransformerBlock(config, pruned.get(i, ())) for i in range(config.n_layers)])

    def forward(self, states: Tensor, inputs: EncoderInputs) -> EncoderOutput:
        trace = inputs.trace()
        trace.add(states)
        for index, block in enumerate(self.layer):
            states, weights = block(states, inputs.attention(index))
            trace.add(states, weights)
        return trace.output(states)


class DistilBertPreTrainedModel(EncoderPreTrainedModel):
    """Base of all DistilBERT models."""

    config_class = DistilBertConfig
    config: DistilBertConfig
    base_model_prefix = "distilbert"
    _no_split_modules = ["TransformerBlock"]
    word_embeddings = "embeddings.word_embeddings"
    position_embeddings = "embeddings.position_embeddings"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, SinusoidalEmbedding):
            init.copy_(module.weight, sinusoidal_positions(*module.weight.shape))

    def prune_heads(self, heads_to_prune: dict[int, list[int]]) -> None:
        """Cut attention heads out, {layer: [heads]}, named by their numbers before any pruning (Michel et al. 2019).

        Raises:
            ValueError: a layer or head does not exist, or no head of a layer would be left.
        """
        blocks = self.base_model.get_submodule("transformer.layer")
        pruned = dict(self.config.pruned_heads)
        for layer, heads in heads_to_prune.items():
            if not 0 <= layer < self.config.n_layers:
                raise ValueError(f"there is no layer {layer} to prune; layers: 0 .. {self.config.n_layers - 1}.")
            cast(MultiHeadSelfAttention, blocks.get_submodule(f"{layer}.attention")).prune_heads(heads)
            pruned[layer] = sorted({*pruned.get(layer, ()), *heads})
        self.config.pruned_heads = pruned


class DistilBertModel(BareModel, DistilBertPreTrainedModel):
    """DistilBERT without a head."""

    def __init__(self, config: DistilBertConfig):
        super().__init__(config)
        self.embeddings = Embeddings(config)
        self.transformer = Transformer(config)
        self.post_init()

    def encode_batch(self, inputs: EncoderInputs) -> EncoderOutput:
        return self.transformer(self.embeddings(inputs), inputs)
