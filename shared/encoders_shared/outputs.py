"""What encoders return. The outputs of the task heads are transformers' own classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor
from transformers.utils.generic import ModelOutput


@dataclass
class EncoderOutput(ModelOutput):
    """States of a sequence.

    Attributes:
        last_hidden_state: [batch, length, hidden]; None where a family's own decoder made the states of the last layer
            needless.
        pooler_output: one vector for each sequence, by the `pooling` of the configuration [batch, hidden].
        hidden_states: the embedded input and the states after each layer, `num_hidden_layers + 1` tensors, the last of
            them `last_hidden_state`; None unless asked for.
        attentions: the weights of each layer [batch, heads, query, key]; None unless asked for.
        prediction_state: states for predicting masked tokens, where the family has a decoder of its own for them and
            it was asked for [batch, length, hidden].
    """

    last_hidden_state: Tensor | None = None
    pooler_output: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    prediction_state: Tensor | None = None

    def map_states(self, change: Callable[[Tensor], Tensor]) -> EncoderOutput:
        """Return an output with every state of tokens changed in the same way."""
        states = None if self.hidden_states is None else tuple(change(state) for state in self.hidden_states)
        last, prediction = self.last_hidden_state, self.prediction_state
        return EncoderOutput(  # in the order of its fields, which is that of the tuple
            last_hidden_state=states[-1] if states else None if last is None else change(last),
            pooler_output=self.pooler_output,
            hidden_states=states,
            attentions=self.attentions,
            prediction_state=None if prediction is None else change(prediction),
        )


@dataclass
class LayerTrace:
    """Collects states and attention weights, as far as they are wanted, while an encoder runs through its layers."""

    keep_states: bool
    keep_attentions: bool
    states: list[Tensor] = field(default_factory=list)
    attentions: list[Tensor] = field(default_factory=list)

    def add(self, state: Tensor, weights: Tensor | None = None) -> None:
        """Note the embedded input (without weights), or what a layer gave."""
        if self.keep_states:
            self.states.append(state)
        if self.keep_attentions and weights is not None:
            self.attentions.append(weights)

    def output(self, last: Tensor, prediction_state: Tensor | None = None) -> EncoderOutput:
        """Return what was collected."""
        return EncoderOutput(
            last_hidden_state=last,
            hidden_states=tuple(self.states) if self.keep_states else None,
            attentions=tuple(self.attentions) if self.keep_attentions else None,
            prediction_state=prediction_state,
        )
