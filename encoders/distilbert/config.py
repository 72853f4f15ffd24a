"""Configuration of DistilBERT."""

import re
from dataclasses import field

from transformers.activations import ACT2FN

from encoders_shared.config import (
    EncoderConfig,
    require_at_least,
    require_between,
    require_choice,
    require_probability,
    require_token_id,
    typed_fields,
)
from encoders_shared.errors import ConfigurationError


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
        self.pruned_heads = _read_pruned_heads(self.pruned_heads)
        super().__post_init__(**kwargs)

    def check(self) -> None:
        super().check()
        require_at_least("max_position_embeddings", self.max_position_embeddings, 1)
        require_at_least("hidden_dim", self.hidden_dim, 1)
        require_choice("activation", self.activation, ACT2FN)
        for name in ("dropout", "attention_dropout", "qa_dropout", "seq_classif_dropout"):
            require_probability(name, getattr(self, name))
        require_between("initializer_range", self.initializer_range, 0, 1)
        require_token_id("pad_token_id", self.pad_token_id, self.vocab_size)
        for layer, heads in self.pruned_heads.items():
            inside = layer < self.n_layers and all(0 <= head < self.n_heads for head in heads)
            if not inside or len(set(heads)) == self.n_heads:
                raise ConfigurationError(
                    f"pruned_heads has the heads {heads} of layer {layer}; there are layers 0 .. {self.n_layers - 1} "
                    f"with heads 0 .. {self.n_heads - 1}, of which at least one must stay."
                )

    def count_parameters(self) -> int:
        """Count the parameters of the bare model, those of pruned heads included."""
        width, norm = self.dim, 2 * self.dim
        attention = 4 * (width + 1) * width
        feed_forward = (2 * width + 1) * self.hidden_dim + width
        embeddings = (self.vocab_size + self.max_position_embeddings) * width + norm
        return embeddings + self.n_layers * (attention + feed_forward + 2 * norm)


def _read_pruned_heads(given: dict) -> dict[int, list[int]]:
    """Return {layer: sorted heads}; the layers are strings where they come from JSON."""
    for layer, heads in given.items():
        numbers = isinstance(heads, list | tuple | set) and all(type(head) is int for head in heads)
        if not numbers or not re.fullmatch(r"[0-9]{1,9}", str(layer)):
            raise ConfigurationError(
                f"pruned_heads has {layer!r}: {heads!r}; needed is the number of a layer with a list of the numbers of "
                "its heads."
            )
    return {int(layer): sorted(heads) for layer, heads in given.items()}
