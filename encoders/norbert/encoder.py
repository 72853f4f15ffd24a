"""NorBERT3 and LTG-BERT: disentangled attention between norms, gated feed-forward networks (Samuel et al. 2023)."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encoders.norbert.config import NorbertConfig
from encoders_shared.attention import AttentionSettings, RelativePositions, attention, split_heads
from encoders_shared.compat import GradientCheckpointingLayer
from encoders_shared.dropout import Dropout
from encoders_shared.initialisation import ltg_normal
from encoders_shared.inputs import EncoderInputs
from encoders_shared.linear import Linear
from encoders_shared.model import BareModel, EncoderPreTrainedModel, Trunk
from encoders_shared.outputs import EncoderOutput
from encoders_shared.relative_position import SymmetricLogBuckets, reachable_rows, relative_offsets


def interleaved_projection(projected: Tensor, heads: int) -> tuple[Tensor, Tensor]:
    """Split [rows, 2 * hidden] head by head: query, key, query, key ... -> two of [heads, rows, head size]."""
    query, key = projected.unflatten(-1, (heads, 2, -1)).unbind(dim=-2)  # [rows, heads, head size]
    return query.transpose(0, 1), key.transpose(0, 1)


def contiguous_projection(projected: Tensor, heads: int) -> tuple[Tensor, Tensor]:
    """Split [rows, 2 * hidden] into all queries, then all keys -> two of [heads, rows, head size]."""
    query, key = projected.unflatten(-1, (2, heads, -1)).unbind(dim=-3)  # [rows, heads, head size]
    return query.transpose(0, 1), key.transpose(0, 1)


PROJECTIONS = {"interleaved": interleaved_projection, "contiguous": contiguous_projection}


def layer_differences(hidden_states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """What each layer adds: the embedded input, then the differences between successive states.

    This is what the published NorBERT3 code returns as `hidden_states`; the sum of them is the last state.
    """
    return (
        hidden_states[0],
        *(after - before for before, after in pairwise(hidden_states)),
    )


class Embedding(nn.Module):
    """Words, and the table of relative positions that all layers share; each is normalised."""

    def __init__(self, config: NorbertConfig):
        super().__init__()
        rows = 2 * config.position_bucket_size - 1
        self.word_embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.word_layer_norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps, elementwise_affine=False)
        self.relative_embedding = nn.Parameter(torch.empty(rows, config.hidden_size))
        self.relative_layer_norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, inputs: EncoderInputs) -> tuple[Tensor, Tensor]:
        words = self.word_embedding(inputs.ids) if inputs.embeds is None else inputs.embeds
        return self.dropout(self.word_layer_norm(words)), self.relative_layer_norm(self.relative_embedding)


class Attention(nn.Module):
    """Disentangled attention between two norms, with all three kinds of scores (He et al. 2021, section 3.1)."""

    def __init__(self, config: NorbertConfig):
        super().__init__()
        width = config.hidden_size
        self.heads = config.num_attention_heads
        self.split_positions = PROJECTIONS[config.position_projection]
        self.scale = 1 / math.sqrt(3 * width // config.num_attention_heads)
        self.pre_layer_norm = nn.LayerNorm(width, config.layer_norm_eps, elementwise_affine=False)
        self.in_proj_qk = Linear(width, 2 * width)
        self.in_proj_v = Linear(width, width)
        self.out_proj = Linear(width, width)
        self.post_layer_norm = nn.LayerNorm(width, config.layer_norm_eps)
        self.dropout = Dropout(config.attention_probs_dropout_prob)

    def forward(
        self, states: Tensor, relative: Tensor, rows: Tensor, settings: AttentionSettings
    ) -> tuple[Tensor, Tensor | None]:
        states = self.pre_layer_norm(states)
        query, key = self.in_proj_qk(states).chunk(2, dim=-1)
        position_queries, position_keys = self.split_positions(self.in_proj_qk(self.dropout(relative)), self.heads)
        context, weights = attention(
            split_heads(query, self.heads),
            split_heads(key, self.heads),
            split_heads(self.in_proj_v(states), self.heads),
            settings,
            scale=self.scale,
            dropout=self.dropout.p if self.training else 0.0,
            positions=RelativePositions(keys=position_keys, queries=position_queries, rows=rows),
        )
        return self.dropout(self.post_layer_norm(self.out_proj(context))), weights

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        state_dict.pop(f"{prefix}position_indices", None)  # upstream's table: computed here
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


class GatedGELU(nn.Module):
    """x * GELU(gate), the gate being the second half of the input (Shazeer 2020), with the tanh form of GELU."""

    def forward(self, states: Tensor) -> Tensor:
        states, gate = states.chunk(2, dim=-1)
        return states * F.gelu(gate, approximate="tanh")


class DepthScaledLinear(Linear):
    """A linear layer without bias whose initial weights are the smaller, the deeper it stands."""

    def __init__(self, inputs: int, outputs: int, layer: int):
        super().__init__(inputs, outputs, bias=False)
        self.initial_gain = math.sqrt(1 / (2 * (1 + layer)))


class FeedForward(nn.Module):
    """Gated feed-forward network with a norm before each of its linear layers."""

    def __init__(self, config: NorbertConfig, layer: int):
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.mlp = nn.Sequential(
            nn.LayerNorm(width, config.layer_norm_eps, elementwise_affine=False),
            DepthScaledLinear(width, 2 * inner, layer),
            GatedGELU(),
            nn.LayerNorm(inner, config.layer_norm_eps, elementwise_affine=False),
            DepthScaledLinear(inner, width, layer),
            Dropout(config.hidden_dropout_prob),
        )

    def forward(self, states: Tensor) -> Tensor:
        return self.mlp(states)


class EncoderLayer(GradientCheckpointingLayer):
    """Attention and feed-forward network, each added to the states."""

    def __init__(self, config: NorbertConfig, layer: int):
        super().__init__()
        self.attention = Attention(config)
        self.mlp = FeedForward(config, layer)

    def forward(
        self, states: Tensor, relative: Tensor, rows: Tensor, settings: AttentionSettings
    ) -> tuple[Tensor, Tensor | None]:
        context, weights = self.attention(states, relative, rows, settings)
        states = states + context
        return states + self.mlp(states), weights


class Encoder(nn.Module):
    """The stack of layers."""

    def __init__(self, config: NorbertConfig):
        super().__init__()
        self.buckets = SymmetricLogBuckets(config.position_bucket_size, config.max_position_embeddings)
        self.layers = nn.ModuleList([EncoderLayer(config, layer) for layer in range(config.num_hidden_layers)])

    def forward(self, states: Tensor, relative: Tensor, inputs: EncoderInputs) -> EncoderOutput:
        middle = self.buckets.bucket_size - 1
        offsets = relative_offsets(inputs.length, inputs.device)
        rows = reachable_rows(self.buckets(offsets) + middle, table_size=len(relative))
        relative = relative[rows.used]
        trace = inputs.trace()
        trace.add(states)
        for index, layer in enumerate(self.layers):
            states, weights = layer(states, relative, rows.of_offset, inputs.attention(index))
            trace.add(states, weights)
        return trace.output(states)


class NorbertPreTrainedModel(EncoderPreTrainedModel):
    """Base of all NorBERT models."""

    config_class = NorbertConfig
    config: NorbertConfig
    base_model_prefix = "norbert3"
    _no_split_modules = ["EncoderLayer"]
    _keys_to_ignore_on_load_unexpected = [r"position_indices$"]  # as in Attention._load_from_state_dict
    word_embeddings = "embedding.word_embedding"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        width = self.config.hidden_size
        if isinstance(module, DepthScaledLinear):
            ltg_normal(module.weight, width, module.initial_gain)
        elif isinstance(module, (nn.Linear, nn.Embedding)):
            ltg_normal(module.weight, width)
        elif isinstance(module, Embedding):
            ltg_normal(module.relative_embedding, width)


class NorbertTrunk(Trunk, NorbertPreTrainedModel):
    """Embeddings and layers: all of the bare model, and what a model with a head adds its head to."""

    def __init__(self, config: NorbertConfig):
        super().__init__(config)
        self.embedding = Embedding(config)
        self.transformer = Encoder(config)

    def encode_batch(self, inputs: EncoderInputs) -> EncoderOutput:
        states, relative = self.embedding(inputs)
        return self.transformer(states, relative, inputs)


class NorbertModel(BareModel, NorbertTrunk):
    """NorBERT3 or LTG-BERT without a head."""

    def __init__(self, config: NorbertConfig):
        super().__init__(config)
        self.post_init()
