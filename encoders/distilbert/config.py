"""Configuration of DistilBERT."""

from dataclasses import field

from transformers.activations import ACT2FN

from encoders_shared.config import EncoderConfig, require_at_least, require_choice, require_probability, typed_fields


@typed_fields
class DistilBertConfig(EncoderConfig):
    """Configuration of DistilBERT (Sanh et al. 2019); the defaults are those of distilbert-base-uncased.

    The fields and their names are those of transformers' own class, so that its files can be read and ours can be read
    there; the two fields at the end are ours. The usual names (`hidden_size`, `intermediate_size`, ...) work too.

    Attributes:
        vocab_size: number of words.
        max_position_embeddings: longest sequence, in tokens.
        sinusoidal_pos_embds: fixed sinusoidal positions instead of learned ones.
        n_layers: number of layers.
        n_heads: attention heads in each layer.
        dim: width of the states.
        hidden_dim: width inside the feed-forward network.
        dropout: dropout of embeddings, feed-forward network and token classification.
        attention_dropout: dropout of the attention weights.
        activation: activation of the feed-forward network and the masked-LM head, a name known to transformers.
        initializer_range: standard deviation of the initial weights.
        qa_dropout: dropout before the question-answering head.
        seq_classif_dropout: dropout inside the heads for whole sequences.
        pad_token_id: id of the padding token; its embedding starts at zero.
        eos_token_id: unused, kept for interchange.
        bos_token_id: unused, kept for interchange.
        tie_word_embeddings: share the word embeddings with the masked-LM decoder.
        pooling: how a sequence becomes one vector, "cls" as published or "mean".
        pruned_heads: heads that were cut out, {layer: [heads]}.
    """

    model_type = "distilbert"
    attribute_map = {
        "hidden_size": "dim",
        "num_attention_heads": "n_heads",
        "num_hidden_layers": "n_layers",
        "intermediate_size": "hidden_dim",
        "hidden_dropout_prob": "dropout",
        "attention_probs_dropout_prob": "attention_dropout",
        "hidden_act": "activation",
    }

    vocab_size: int = 30_522
    max_position_embeddings: int = 512
    sinusoidal_pos_embds: bool = False
    n_layers: int = 6
    n_heads: int = 12
    dim: int = 768
    hidden_dim: int = 3_072
    dropout: float | int = 0.1
    attention_dropout: float | int = 0.1
    activation: str = "gelu"
    initializer_range: float = 0.02
    qa_dropout: float | int = 0.1
    seq_classif_dropout: float | int = 0.2
    pad_token_id: int | None = 0
    eos_token_id: int | list[int] | None = None
    bos_token_id: int | None = None
    tie_word_embeddings: bool = True
    pooling: str = "cls"
    pruned_heads: dict = field(default_factory=dict)

    def __post_init__(self, **kwargs):
        self.pruned_heads = {int(layer): sorted(heads) for layer, heads in self.pruned_heads.items()}
        super().__post_init__(**kwargs)

    def check(self) -> None:
        super().check()
        require_at_least("max_position_embeddings", self.max_position_embeddings, 1)
        require_at_least("hidden_dim", self.hidden_dim, 1)
        require_choice("activation", self.activation, ACT2FN)
        for name in ("dropout", "attention_dropout", "qa_dropout", "seq_classif_dropout"):
            require_probability(name, getattr(self, name))
