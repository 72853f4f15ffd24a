"""The floating-point operations that a batch needs, whoever computes it.

Counted are products alone, two operations for each multiplication and addition, at real tokens: linear layers, content
scores and contexts, position scores with the table rows that a sequence can reach, n-grams (of three tokens by minimal
filtering). Norms, activations and softmax, and the projection of the position tables, which could be kept between
batches, are not.
"""

from __future__ import annotations

from typing import Any

import torch

from encoders.helmbert.encoder import table_rows
from encoders_shared.relative_position import ClampedOffsets, SymmetricLogBuckets, TwoSidedLogBuckets, relative_offsets

BACKWARD = 2  # the backward pass has two products for each one of the forward pass


def attention_operations(lengths: list[int], width: int) -> int:
    """Scores and contexts of one layer."""
    return sum(4 * length * length * width for length in lengths)


def distilbert(config: Any, lengths: list[int]) -> int:
    """Return the operations of DistilBERT's layers."""
    width = config.dim
    linear = 8 * width * width + 4 * width * config.hidden_dim  # for each token
    return config.n_layers * (linear * sum(lengths) + attention_operations(lengths, width))


def norbert(config: Any, lengths: list[int]) -> int:
    """Return the operations of NorBERT's layers; the feed-forward network is gated."""
    width = config.hidden_size
    linear = 8 * width * width + 6 * width * config.intermediate_size
    buckets = SymmetricLogBuckets(config.position_bucket_size, config.max_position_embeddings)
    positions = sum(
        4 * length * width * len(buckets(relative_offsets(length, torch.device("cpu"))).unique()) for length in lengths
    )
    return config.num_hidden_layers * (linear * sum(lengths) + attention_operations(lengths, width) + positions)


def helmbert(config: Any, lengths: list[int]) -> int:
    """Return the operations of HELM-BERT's layers and of its n-gram layer."""
    width = config.hidden_size
    linear = 8 * width * width + 4 * width * config.intermediate_size
    if config.position_buckets > 0:
        buckets = TwoSidedLogBuckets(config.position_buckets, config.max_relative_positions)
    else:
        buckets = ClampedOffsets(config.max_relative_positions)
    positions = 0
    for length in lengths:
        rows = table_rows(buckets, config.position_span, relative_offsets(length, torch.device("cpu"))).unique()
        positions += 2 * len(config.score_types) * length * width * len(rows)
    for_token = 1.5 if config.ngie_kernel_size == 3 else config.ngie_kernel_size  # products of weights and one token
    ngrams = round(2 * for_token * width * width * sum(lengths))
    layers = config.num_hidden_layers
    return layers * (linear * sum(lengths) + attention_operations(lengths, width) + positions) + ngrams


COUNTS = {"helmbert": helmbert, "norbert": norbert, "distilbert": distilbert}


def necessary_operations(config: Any, lengths: list[int], *, training: bool) -> int:
    """Return the operations that sequences of these lengths need, for inference or for a training step."""
    forward = COUNTS[config.model_type](config, lengths)
    return forward * (1 + BACKWARD) if training else forward
