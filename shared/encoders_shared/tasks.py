"""The forward pass of each task, written once for all families.

A family's task class names its parts in the constructor and lists those of the head, in order, in `head_parts`:

    class XForTokenClassification(TokenClassification, XPreTrainedModel):
        head_parts = ("dropout", "classifier")

The signature is the same everywhere; `token_type_ids` are accepted and ignored, since no family here has segments. The
losses are those of `encoders_shared.losses`: a label of -100 is ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor, nn
from transformers.modeling_outputs import (
    MaskedLMOutput,
    MultipleChoiceModelOutput,
    QuestionAnsweringModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)

from encoders_shared.errors import check_tensor
from encoders_shared.losses import IGNORED, check_label_shape, class_loss, sequence_loss, span_loss
from encoders_shared.model import EncoderPreTrainedModel
from encoders_shared.outputs import EncoderOutput


class TaskModel(EncoderPreTrainedModel):
    """A bare encoder with a head."""

    head_parts: ClassVar[tuple[str, ...]]
    encode_defaults: ClassVar[dict[str, Any]] = {}

    def encode_for_task(
        self, options: dict[str, Any], *inputs: Any, packing: bool | None = None, labels: Tensor | None = None
    ) -> EncoderOutput:
        """Run the bare encoder; `inputs` are those of `Trunk.encode`, in its order, `labels` those of tokens."""
        self.check_options(options)
        if labels is not None:
            check_tensor("labels", labels)
        needed = None if labels is None else labels != IGNORED
        return self.trunk.encode(*inputs, packing=packing, needed=needed, **{**self.encode_defaults, **options})

    def apply_head(self, states: Tensor | None) -> Tensor:
        """Run states through the parts of the head. [..., hidden] -> [..., outputs]."""
        for part in self.head_parts:
            states = getattr(self, part)(states)
        assert states is not None
        return states


class MaskedLM(TaskModel):
    """Predict the words behind masked tokens.

    The decoder is tied to the word embeddings; a family declares that in `_tied_weights_keys`, {decoder: embeddings}.
    Words with an id below `num_reserved_ids` are never predicted.
    """

    num_reserved_ids = 0

    def get_output_embeddings(self) -> nn.Module:
        """Return the decoder."""
        return self.get_submodule(self._decoder_path())

    def set_output_embeddings(self, new_embeddings: nn.Module) -> None:
        """Replace the decoder."""
        self.set_submodule(self._decoder_path(), new_embeddings)

    def _decoder_path(self) -> str:
        assert self._tied_weights_keys is not None
        return next(iter(self._tied_weights_keys)).removesuffix(".weight")

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | Sequence[int] | None = None,
        return_dict: bool | None = None,
        logits_for: str = "all",
        **options: Any,
    ) -> MaskedLMOutput | tuple:
        """Score every word at every token; `labels` hold the right words [batch, length].

        With `logits_for="labelled"` only the tokens that have a label are scored, which is most of the work of this
        head and most of its memory: the same loss, and logits [labelled tokens, vocabulary] in the order of the batch.

        Raises:
            ValueError: `logits_for` is neither "all" nor "labelled", or it is "labelled" and there are no labels.
        """
        if logits_for not in ("all", "labelled"):
            raise ValueError(f"logits_for is {logits_for!r}; allowed: 'all', 'labelled'.")
        encoded = self.encode_for_task(
            options,
            input_ids,
            attention_mask,
            position_ids,
            head_mask,
            inputs_embeds,
            output_attentions,
            output_hidden_states,
            labels=labels,
        )
        states = encoded.last_hidden_state if encoded.prediction_state is None else encoded.prediction_state
        assert states is not None
        if logits_for == "labelled":
            states, labels = _labelled(states, labels)
        logits = self.apply_head(states)
        output = MaskedLMOutput(
            loss=None if labels is None else class_loss(logits, labels, first_class=self.num_reserved_ids),
            logits=logits,
            hidden_states=encoded.hidden_states,
            attentions=encoded.attentions,
        )
        return self.finish(output, return_dict)


def _labelled(states: Tensor, labels: Tensor | None) -> tuple[Tensor, Tensor]:
    """Keep the tokens that have a label. [batch, length, hidden] -> [labelled, hidden] and [labelled]."""
    if labels is None:
        raise ValueError("logits_for='labelled' needs labels: pass them, or leave logits_for out.")
    check_label_shape(labels, states)
    active = labels != IGNORED
    return states[active], labels[active]


class SequenceClassification(TaskModel):
    """Predict classes of, or numbers for, a whole sequence."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | Sequence[int] | None = None,
        return_dict: bool | None = None,
        **options: Any,
    ) -> SequenceClassifierOutput | tuple:
        """Score a sequence; `labels` are [batch] or [batch, outputs], see `encoders_shared.losses.sequence_loss`."""
        encoded = self.encode_for_task(
            options,
            input_ids,
            attention_mask,
            position_ids,
            head_mask,
            inputs_embeds,
            output_attentions,
            output_hidden_states,
        )
        logits = self.apply_head(encoded.pooler_output)
        output = SequenceClassifierOutput(
            loss=None if labels is None else sequence_loss(logits, labels, self.config.problem_type),
            logits=logits,
            hidden_states=encoded.hidden_states,
            attentions=encoded.attentions,
        )
        return self.finish(output, return_dict)


class TokenClassification(TaskModel):
    """Predict a class for each token."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | Sequence[int] | None = None,
        return_dict: bool | None = None,
        **options: Any,
    ) -> TokenClassifierOutput | tuple:
        """Score each token; `labels` are [batch, length]."""
        encoded = self.encode_for_task(
            options,
            input_ids,
            attention_mask,
            position_ids,
            head_mask,
            inputs_embeds,
            output_attentions,
            output_hidden_states,
            labels=labels,
        )
        logits = self.apply_head(encoded.last_hidden_state)
        output = TokenClassifierOutput(
            loss=None if labels is None else class_loss(logits, labels),
            logits=logits,
            hidden_states=encoded.hidden_states,
            attentions=encoded.attentions,
        )
        return self.finish(output, return_dict)


class QuestionAnswering(TaskModel):
    """Predict where in the sequence an answer begins and ends. The head has two outputs.

    The published losses normalise over all positions, padding included, so states at padding count in training: a batch
    with positions is not packed.
    """

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | Sequence[int] | None = None,
        return_dict: bool | None = None,
        **options: Any,
    ) -> QuestionAnsweringModelOutput | tuple:
        """Score each token as first and last of the answer; positions [batch] outside the sequence are ignored.

        Raises:
            ValueError: only one of `start_positions` and `end_positions` was passed.
        """
        if (start_positions is None) != (end_positions is None):
            missing = "start_positions" if start_positions is None else "end_positions"
            raise ValueError(f"the loss needs start_positions and end_positions; {missing} is missing.")
        encoded = self.encode_for_task(
            options,
            input_ids,
            attention_mask,
            position_ids,
            head_mask,
            inputs_embeds,
            output_attentions,
            output_hidden_states,
            packing=None if start_positions is None else False,
        )
        start_logits, end_logits = self.apply_head(encoded.last_hidden_state).unbind(dim=-1)  # [batch, length]
        loss = None
        if start_positions is not None and end_positions is not None:
            loss = span_loss(start_logits, end_logits, start_positions, end_positions)
        output = QuestionAnsweringModelOutput(
            loss=loss,
            start_logits=start_logits.contiguous(),
            end_logits=end_logits.contiguous(),
            hidden_states=encoded.hidden_states,
            attentions=encoded.attentions,
        )
        return self.finish(output, return_dict)


class MultipleChoice(TaskModel):
    """Choose between several sequences. The head has one output; inputs have an axis more: [batch, choices, length]."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | Sequence[int] | None = None,
        return_dict: bool | None = None,
        **options: Any,
    ) -> MultipleChoiceModelOutput | tuple:
        """Score each choice [batch, choices]; `labels` are the numbers of the right ones [batch]."""
        given = input_ids if inputs_embeds is None else inputs_embeds
        encoded = self.encode_for_task(
            options,
            _flatten_choices("input_ids", input_ids),
            _flatten_choices("attention_mask", attention_mask),
            _flatten_choices("position_ids", position_ids, for_all_rows=True),
            head_mask,
            _flatten_choices("inputs_embeds", inputs_embeds),
            output_attentions,
            output_hidden_states,
        )
        assert given is not None
        logits = self.apply_head(encoded.pooler_output).reshape(given.shape[:2])  # [batch, choices]
        output = MultipleChoiceModelOutput(
            loss=None if labels is None else class_loss(logits, labels),
            logits=logits,
            hidden_states=encoded.hidden_states,
            attentions=encoded.attentions,
        )
        return self.finish(output, return_dict)


def _flatten_choices(name: str, tensor: Tensor | None, *, for_all_rows: bool = False) -> Tensor | None:
    """[batch, choices, ...] -> [batch * choices, ...]; what may be the same `for_all_rows` can lack these axes."""
    if tensor is None:
        return None
    check_tensor(name, tensor)
    if tensor.dim() >= 3:
        return tensor.flatten(0, 1)
    if for_all_rows:
        return tensor
    raise ValueError(f"multiple choice takes {name} of [batch, choices, length], got shape {list(tensor.shape)}.")
