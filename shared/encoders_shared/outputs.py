"""What encoders return. The outputs of the task heads are transformers' own classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

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
            them `last_hidden_state`; None unless asked for, and None in the place of those that were not chosen.
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
        states = self.hidden_states
        if states is not None:
            states = tuple(state if state is None else change(state) for state in states)
        last, prediction = self.last_hidden_state, self.prediction_state
        if last is not None:
            last = states[-1] if states and states[-1] is not None else change(last)
        return EncoderOutput(  # in the order of its fields, which is that of the tuple
            last_hidden_state=last,
            pooler_output=self.pooler_output,
            hidden_states=states,
            attentions=self.attentions,
            prediction_state=None if prediction is None else change(prediction),
        )


@dataclass
class LayerTrace:
    """Collects states and attention weights, as far as they are wanted, while an encoder runs through its layers.

    Attributes:
        keep_states: numbers of the states to keep, the embedded input being 0.
        keep_attentions: keep the weights of all layers.
    """

    keep_states: tuple[int, ...]
    keep_attentions: bool
    states: list[Tensor | None] = field(default_factory=list)
    attentions: list[Tensor] = field(default_factory=list)

    def add(self, state: Tensor, weights: Tensor | None = None) -> None:
        """Note the embedded input (without weights), or what a layer gave."""
        if self.keep_states:
            self.states.append(state if len(self.states) in self.keep_states else None)
        if self.keep_attentions and weights is not None:
            self.attentions.append(weights)

    def output(self, last: Tensor, prediction_state: Tensor | None = None) -> EncoderOutput:
        """Return what was collected."""
        return EncoderOutput(
            last_hidden_state=last,
            hidden_states=cast("tuple[Tensor, ...]", tuple(self.states)) if self.keep_states else None,
            attentions=tuple(self.attentions) if self.keep_attentions else None,
            prediction_state=prediction_state,
        )
