"""Configuration of NorBERT3 and its siblings."""

from encoders_shared.config import (
    EncoderConfig,
    require_at_least,
    require_at_most,
    require_between,
    require_choice,
    require_probability,
    require_token_id,
    typed_fields,
)

POSITION_PROJECTIONS = ("interleaved", "contiguous")
MOST_BUCKETS = 1_024  # the steps between them are found with whole numbers, which takes a second here


@typed_fields
class NorbertConfig(EncoderConfig):
    """Configuration of NorBERT3, LTG-BERT and HPLT encoders; the defaults are those of norbert3-base.

    Attributes:
        vocab_size: number of words.
        hidden_size: width of the states.
        num_hidden_layers: number of layers.
        num_attention_heads: attention heads in each layer.
        intermediate_size: width inside the gated feed-forward network.
        max_position_embeddings: distance at which the scale of relative positions ends; sequences may be longer.
        position_bucket_size: one more than the largest relative-position bucket; the table has twice that, less one.
        position_projection: how the projected position table is split into queries, keys and heads. Two layouts were
            published under identical tensor names, so the checkpoint can't tell: "interleaved" (NorBERT3, BNC) gives
            each head a run of rows for its query and its key in turn, "contiguous" (BabyLM, HPLT) first has the queries
            of all heads, then the keys.
        num_reserved_ids: word ids below this number are never predicted: 107 for NorBERT3, 105 for HPLT, 0 for BNC and
            BabyLM.
        hidden_dropout_prob: dropout of embeddings and feed-forward network.
        attention_probs_dropout_prob: dropout of attention weights, attention output and position table.
        classifier_dropout: dropout of the task heads, hidden_dropout_prob if None. Upstream's name is `cls_dropout`.
        layer_norm_eps: epsilon of all norms.
        pad_token_id: id of the padding token.
        cls_token_id: id of the first token of a sequence.
        sep_token_id: id of the last token of a sequence.
        mask_token_id: id of the masked token.
        tie_word_embeddings: share the word embeddings with the masked-LM decoder.
        pooling: how a sequence becomes one vector, "cls" as published or "mean".
    """

    model_type = "norbert"
    attribute_map = {"cls_dropout": "classifier_dropout"}

    vocab_size: int = 50_000
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 2_048
    max_position_embeddings: int = 512
    position_bucket_size: int = 32
    position_projection: str = "interleaved"
    num_reserved_ids: int = 107
    hidden_dropout_prob: float | int = 0.1
    attention_probs_dropout_prob: float | int = 0.1
    classifier_dropout: float | int | None = None
    layer_norm_eps: float = 1e-7
    pad_token_id: int | None = 3
    cls_token_id: int | None = 1
    sep_token_id: int | None = 2
    mask_token_id: int | None = 4
    tie_word_embeddings: bool = True
    pooling: str = "cls"

    def check(self) -> None:
        super().check()
        require_choice("position_projection", self.position_projection, POSITION_PROJECTIONS)
        require_at_least("intermediate_size", self.intermediate_size, 1)
        require_at_least("max_position_embeddings", self.max_position_embeddings, 2)
        require_at_least("position_bucket_size", self.position_bucket_size, 2)
        require_at_most("position_bucket_size", self.position_bucket_size, MOST_BUCKETS)
        require_at_least("num_reserved_ids", self.num_reserved_ids, 0)
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"):
            require_probability(name, getattr(self, name))
        require_between("layer_norm_eps", self.layer_norm_eps, 1e-12, 1)
        require_token_id("pad_token_id", self.pad_token_id, self.vocab_size)

    def count_parameters(self) -> int:
        """Count the parameters of the bare model; three of its norms in a layer have none."""
        width, norm = self.hidden_size, 2 * self.hidden_size
        attention = 4 * (width + 1) * width + norm
        feed_forward = 3 * width * self.intermediate_size
        embeddings = (self.vocab_size + 2 * self.position_bucket_size - 1) * width + norm
        return embeddings + self.num_hidden_layers * (attention + feed_forward)
