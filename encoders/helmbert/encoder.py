"""HELM-BERT: DeBERTa for peptides in HELM notation (Lee et al. 2026).

Disentangled attention with a position table in each layer, n-gram induced encoding after the first layer, and an
enhanced mask decoder that brings in absolute positions only where masked tokens are predicted.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from encoders.helmbert.config import HELMBertConfig
from encoders.helmbert.ngram import NgramLayer
from encoders_shared.attention import AttentionSettings, RelativePositions, attention, split_heads
from encoders_shared.compat import GradientCheckpointingLayer
from encoders_shared.dropout import Dropout
from encoders_shared.initialisation import torch_default_convolution
from encoders_shared.inputs import EncoderInputs, absolute_positions
from encoders_shared.linear import Linear
from encoders_shared.model import BareModel, EncoderPreTrainedModel
from encoders_shared.outputs import EncoderOutput
from encoders_shared.relative_position import (
    ClampedOffsets,
    TableRows,
    TwoSidedLogBuckets,
    reachable_rows,
    relative_offsets,
)


def table_rows(buckets: TwoSidedLogBuckets | ClampedOffsets, span: int, offsets: Tensor) -> Tensor:
    """Row of the position table for each offset.

    The published code counts offsets from zero and then adds the span once more: half of each table is never read,
    and without buckets all keys from one to the left of the query on share the last row. Its weights were trained so.
    """
    return (buckets(offsets) + span).clamp(max=2 * span - 1)


class Embeddings(nn.Module):
    """Words, normalised and zero at padding; and absolute positions, for the enhanced mask decoder."""

    def __init__(self, config: HELMBertConfig):
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=config.pad_token_id)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.layer_norm = nn.LayerNorm(config.hidden_size)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, inputs: EncoderInputs) -> Tensor:
        words = self.word_embeddings(inputs.ids) if inputs.embeds is None else inputs.embeds
        return self.dropout(inputs.mask.clear(self.layer_norm(words)))

    def positions(self, inputs: EncoderInputs) -> Tensor:
        """Embed the absolute positions, counted from the first real token. [1 or batch, length, hidden]."""
        limit = self.position_embeddings.num_embeddings
        return self.position_embeddings(absolute_positions(inputs, limit, from_first_token=True))


class DisentangledSelfAttention(nn.Module):
    """Content-to-content, content-to-position and position-to-content scores (He et al. 2021, section 3.1)."""

    def __init__(self, config: HELMBertConfig):
        super().__init__()
        width = config.hidden_size
        self.heads = config.num_attention_heads
        self.query_proj = Linear(width, width)
        self.key_proj = Linear(width, width)
        self.value_proj = Linear(width, width)
        self.rel_embeddings = nn.Embedding(2 * config.position_span, width)
        self.score_types = config.score_types
        own = frozenset() if config.share_att_key else self.score_types
        self.pos_key_proj = Linear(width, width) if "c2p" in own else None
        self.pos_query_proj = Linear(width, width, bias=False) if "p2c" in own else None
        self.scale = (width // self.heads * (1 + len(self.score_types))) ** -0.5
        self.dropout = Dropout(config.attention_probs_dropout_prob)

    def forward(
        self,
        query_states: Tensor,
        states: Tensor,
        rows: TableRows,
        settings: AttentionSettings,
        table: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from `query_states` to `states`, with the positions of `table` [2 * span, hidden] or of its own."""
        table = self.rel_embeddings.weight if table is None else table
        return attention(
            split_heads(self.query_proj(query_states), self.heads),
            split_heads(self.key_proj(states), self.heads),
            split_heads(self.value_proj(states), self.heads),
            settings,
            scale=self.scale,
            dropout=self.dropout.p if self.training else 0.0,
            positions=self._positions(self.dropout(table[rows.used]), rows.of_offset) if self.score_types else None,
        )

    def _positions(self, table: Tensor, rows: Tensor) -> RelativePositions:
        keys = queries = None
        if "c2p" in self.score_types:
            keys = split_heads((self.pos_key_proj or self.key_proj)(table)[None], self.heads)[0]
        if "p2c" in self.score_types:
            queries = split_heads((self.pos_query_proj or self.query_proj)(table)[None], self.heads)[0]
        return RelativePositions(keys=keys, queries=queries, rows=rows)


class TransformerBlock(GradientCheckpointingLayer):
    """Attention and feed-forward network, each followed by a residual sum and a norm."""

    def __init__(self, config: HELMBertConfig):
        super().__init__()
        self.self_attn = DisentangledSelfAttention(config)
        self.attn_output_dense = Linear(config.hidden_size, config.hidden_size)
        self.norm1 = nn.LayerNorm(config.hidden_size)
        self.linear1 = nn.Sequential(Linear(config.hidden_size, config.intermediate_size), nn.GELU())
        self.linear2 = Linear(config.intermediate_size, config.hidden_size)
        self.norm2 = nn.LayerNorm(config.hidden_size)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(
        self,
        query_states: Tensor,
        states: Tensor,
        rows: TableRows,
        settings: AttentionSettings,
        table: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """As `DisentangledSelfAttention.forward`; the residual sums continue `query_states`."""
        context, weights = self.self_attn(query_states, states, rows, settings, table)
        states = self.norm1(query_states + self.dropout(self.attn_output_dense(context)))
        return self.norm2(states + self.dropout(self.linear2(self.linear1(states)))), weights


class Encoder(nn.Module):
    """The stack of blocks, with the n-gram layer after the first."""

    def __init__(self, config: HELMBertConfig):
        super().__init__()
        self.span = config.position_span
        if config.position_buckets > 0:
            self.buckets = TwoSidedLogBuckets(config.position_buckets, config.max_relative_positions)
        else:
            self.buckets = ClampedOffsets(config.max_relative_positions)
        self.ngie_layer = NgramLayer(config)
        self.layers = nn.ModuleList([TransformerBlock(config) for _ in range(config.num_hidden_layers)])

    def forward(self, embedded: Tensor, inputs: EncoderInputs, absolute: Tensor | None = None) -> EncoderOutput:
        """Encode; or, if `absolute` positions [1 or batch, length, hidden] are given, decode for prediction.

        Then the last layer's ordinary states serve nothing and are left out, unless the caller wants to see all states.
        """
        offsets = relative_offsets(inputs.length, inputs.device)
        rows = reachable_rows(table_rows(self.buckets, self.span, offsets), 2 * self.span)
        trace = inputs.trace()
        trace.add(embedded)
        states, last = embedded, len(self.layers) - 1
        prediction_state = None
        for index, layer in enumerate(self.layers):
            if index == last and absolute is not None and index > 0:
                prediction_state = self.decode(states, states + absolute, rows, inputs)
                if not (inputs.keep_states or inputs.keep_attentions):
                    return EncoderOutput(prediction_state=prediction_state)
            states, weights = layer(states, states, rows, inputs.attention(index))
            if index == 0:
                states = self.ngie_layer(embedded, states, inputs)
            trace.add(states, weights)
        return trace.output(states, prediction_state)

    def decode(self, states: Tensor, queries: Tensor, rows: TableRows, inputs: EncoderInputs) -> Tensor:
        """Enhanced mask decoder (He et al. 2021, section 3.2): the last layer, twice, asked by queries with positions.

        As published, it reads the position table of the first layer, so the last layer's own stays untrained.
        """
        last = len(self.layers) - 1
        table = cast(TransformerBlock, self.layers[0]).self_attn.rel_embeddings.weight
        for _ in range(2):
            queries, _ = self.layers[last](queries, states, rows, inputs.attention(last), table)
        return queries


class HELMBertPreTrainedModel(EncoderPreTrainedModel):
    """Base of all HELM-BERT models."""

    config_class = HELMBertConfig
    config: HELMBertConfig
    base_model_prefix = "helmbert"
    _no_split_modules = ["TransformerBlock"]
    word_embeddings = "embeddings.word_embeddings"
    position_embeddings = "embeddings.position_embeddings"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, nn.Conv1d):
            torch_default_convolution(module)


class HELMBertModel(BareModel, HELMBertPreTrainedModel):
    """HELM-BERT without a head."""

    def __init__(self, config: HELMBertConfig):
        super().__init__(config)
        self.embeddings = Embeddings(config)
        self.encoder = Encoder(config)
        self.post_init()

    def encode_batch(self, inputs: EncoderInputs) -> EncoderOutput:
        absolute = self.embeddings.positions(inputs) if inputs.options.get("use_emd") else None
        return self.encoder(self.embeddings(inputs), inputs, absolute)
