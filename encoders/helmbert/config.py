"""Configuration of HELM-BERT."""

from encoders_shared.config import (
    MOST_LAYERS,
    EncoderConfig,
    require_at_least,
    require_at_most,
    require_probability,
    require_token_id,
    typed_fields,
)
from encoders_shared.errors import ConfigurationError, suggestion

SCORE_TYPES = ("c2p", "p2c")
MOST_BUCKETS = 2_048  # the steps between them are found with whole numbers, which takes a second here


@typed_fields
class HELMBertConfig(EncoderConfig):
    """Configuration of HELM-BERT; the defaults are those of the published model.

    Attributes:
        vocab_size: number of tokens.
        hidden_size: width of the states.
        num_hidden_layers: number of layers; the enhanced mask decoder needs at least 2.
        num_attention_heads: attention heads in each layer.
        intermediate_size: width inside the feed-forward network.
        max_position_embeddings: absolute positions, used by the enhanced mask decoder alone.
        max_relative_positions: distance at which the relative positions end.
        position_buckets: number of relative-position buckets; 0 or less: none, each distance has a row of its own.
        pos_att_type: kinds of position scores, joined by "|": "c2p" (content to position), "p2c" (position to content),
            both, or "" for none.
        share_att_key: project the positions with the content's query and key projections instead of their own.
        ngie_kernel_size: tokens that one n-gram spans, an odd number.
        ngie_dropout: dropout of the n-gram features.
        hidden_dropout_prob: dropout of embeddings, attention output and feed-forward network.
        attention_probs_dropout_prob: dropout of attention weights and position tables.
        classifier_num_layers: layers of the head for whole sequences; 0: a single linear layer.
        classifier_dropout: dropout of the task heads.
        pad_token_id: id of the padding token; its embedding starts at zero.
        bos_token_id: id of the first token.
        eos_token_id: id of the last token.
        cls_token_id: as bos_token_id.
        sep_token_id: id between two sequences.
        mask_token_id: id of the masked token.
        tie_word_embeddings: share the word embeddings with the masked-LM decoder.
        pooling: how a sequence becomes one vector, "mean" as published or "cls".
    """

    model_type = "helmbert"

    vocab_size: int = 78
    hidden_size: int = 768
    num_hidden_layers: int = 6
    num_attention_heads: int = 12
    intermediate_size: int = 3_072
    max_position_embeddings: int = 512
    max_relative_positions: int = 512
    position_buckets: int = 256
    pos_att_type: str = "c2p|p2c"
    share_att_key: bool = False
    ngie_kernel_size: int = 3
    ngie_dropout: float | int = 0.1
    hidden_dropout_prob: float | int = 0.1
    attention_probs_dropout_prob: float | int = 0.1
    classifier_num_layers: int = 0
    classifier_dropout: float | int = 0.1
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | None = 2
    cls_token_id: int | None = 1
    sep_token_id: int | None = 2
    mask_token_id: int | None = 4
    tie_word_embeddings: bool = True
    pooling: str = "mean"

    @property
    def score_types(self) -> frozenset[str]:
        """The kinds of position scores as a set."""
        return frozenset(name.strip() for name in self.pos_att_type.lower().split("|") if name.strip())

    @property
    def position_span(self) -> int:
        """Half the number of rows of a relative-position table."""
        return self.position_buckets if self.position_buckets > 0 else self.max_relative_positions

    def check(self) -> None:
        super().check()
        for name in ("intermediate_size", "max_position_embeddings", "max_relative_positions", "ngie_kernel_size"):
            require_at_least(name, getattr(self, name), 1)
        require_at_least("classifier_num_layers", self.classifier_num_layers, 0)
        require_at_most("classifier_num_layers", self.classifier_num_layers, MOST_LAYERS)
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "ngie_dropout", "classifier_dropout"):
            require_probability(name, getattr(self, name))
        if self.ngie_kernel_size % 2 == 0:
            raise ConfigurationError(
                f"ngie_kernel_size is {self.ngie_kernel_size}; it must be odd, so that an n-gram has a middle token."
            )
        for name in self.score_types:
            if name not in SCORE_TYPES:
                raise ConfigurationError(
                    f"pos_att_type {self.pos_att_type!r} names {name!r}; allowed: 'c2p', 'p2c', 'c2p|p2c', or '' for "
                    f"none.{suggestion(name, SCORE_TYPES)}"
                )
        if self.position_buckets > 0:
            require_at_least("position_buckets", self.position_buckets, 4)
            require_at_most("position_buckets", self.position_buckets, MOST_BUCKETS)
            require_at_least(
                "max_relative_positions (with these position_buckets)",
                self.max_relative_positions,
                self.position_buckets // 4,
            )
        require_token_id("pad_token_id", self.pad_token_id, self.vocab_size)

    def count_parameters(self) -> int:
        """Count the parameters of the bare model."""
        width, norm = self.hidden_size, 2 * self.hidden_size
        own = frozenset() if self.share_att_key else self.score_types
        positions = 2 * self.position_span * width + ("c2p" in own) * (width + 1) * width + ("p2c" in own) * width**2
        attention = 4 * (width + 1) * width + positions
        feed_forward = (2 * width + 1) * self.intermediate_size + width
        ngrams = (self.ngie_kernel_size * width + 1) * width + norm
        embeddings = (self.vocab_size + self.max_position_embeddings) * width + norm
        return embeddings + ngrams + self.num_hidden_layers * (attention + feed_forward + 2 * norm)
