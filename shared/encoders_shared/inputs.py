"""Reading what a caller passes to an encoder: checked once, in one place, and never changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from encoders_shared.attention import AttentionSettings
from encoders_shared.errors import can_read, check_tensor
from encoders_shared.masks import AttentionMask
from encoders_shared.outputs import LayerTrace
from encoders_shared.packing import Packing


@dataclass(frozen=True)
class EncoderInputs:
    """One checked batch.

    Attributes:
        ids: token ids [batch, length], or None where embeddings were passed.
        embeds: word embeddings [batch, length, hidden], or None where ids were passed.
        mask: which tokens are real and may be attended to.
        position_ids: absolute positions [batch or 1, length], or None.
        head_mask: factors of the attention heads [layers, heads], or None.
        width: number of tokens of each sequence as it was passed, padding included.
        columns: where each token stands in its sequence, padding included [1 or batch, length].
        first_columns: where the first real token of its sequence stands [batch or 1, 1 or length].
        lengths: lengths of the sequences, if the batch is one packed row; else None.
        backend: name of the attention backend.
        keep_states: numbers of the states that the caller wants, the embedded input being 0.
        keep_attentions: the caller wants the attention weights.
        options: the family's own keywords.
        made: what the attention backend makes of the batch once, for all layers.
    """

    ids: Tensor | None
    embeds: Tensor | None
    mask: AttentionMask
    position_ids: Tensor | None
    head_mask: Tensor | None
    width: int
    columns: Tensor
    first_columns: Tensor
    lengths: list[int] | None
    backend: str
    keep_states: tuple[int, ...]
    keep_attentions: bool
    options: dict[str, Any]
    made: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def length(self) -> int:
        """Number of tokens of the longest sequence; padding included, unless the batch is packed."""
        return self.width if self.lengths is None else max(self.lengths)

    @property
    def device(self) -> torch.device:
        """Where the batch is."""
        return self.mask.tokens.device

    def attention(self, layer: int) -> AttentionSettings:
        """Return what the attention of one layer needs to know."""
        return AttentionSettings(
            backend=self.backend,
            allowed=self.mask.allowed,
            head_mask=None if self.head_mask is None else self.head_mask[layer],
            need_weights=self.keep_attentions,
            lengths=self.lengths,
            made=self.made,
        )

    def packed(self, packing: Packing) -> EncoderInputs:
        """Return the same batch as one row of real tokens."""
        rows, columns = packing.tokens.shape
        position_ids = self.position_ids
        return replace(
            self,
            ids=None if self.ids is None else packing.pack(self.ids),
            embeds=None if self.embeds is None else packing.pack(self.embeds),
            mask=AttentionMask(tokens=packing.pack(packing.tokens), allowed=None),
            position_ids=None if position_ids is None else packing.pack(position_ids.expand(rows, columns)),
            columns=packing.pack(self.columns.expand(rows, columns)),
            first_columns=packing.pack(self.first_columns.expand(rows, columns)),
            lengths=packing.lengths,
        )

    def trace(self) -> LayerTrace:
        """Return a collector that keeps what the caller wants."""
        return LayerTrace(self.keep_states, self.keep_attentions)


def check_tokens(ids: Tensor | None, embeds: Tensor | None, vocab_size: int, hidden_size: int) -> tuple[int, int]:
    """Check that there is exactly one of ids and embeddings, and that it has the right form.

    Returns:
        Batch size and length.

    Raises:
        TypeError: the embeddings are not floating-point numbers.
        ValueError: both or neither were passed, a shape is wrong, the length is zero, or an id is out of range.
    """
    if (ids is None) == (embeds is None):
        raise ValueError(
            f"pass exactly one of input_ids and inputs_embeds; got {'neither' if ids is None else 'both'}."
        )
    if ids is not None:
        if ids.dim() != 2:
            raise ValueError(f"input_ids have shape {list(ids.shape)}; expected [batch, length].")
        if can_read(ids):
            _check_range("input_ids", ids, vocab_size, "the vocabulary size")
        batch, length = ids.shape
    else:
        assert embeds is not None
        check_tensor("inputs_embeds", embeds)
        if embeds.dim() != 3 or embeds.shape[2] != hidden_size:
            raise ValueError(f"inputs_embeds have shape {list(embeds.shape)}; expected [batch, length, {hidden_size}].")
        if not embeds.is_floating_point():
            raise TypeError(f"inputs_embeds must be floating-point numbers, got {embeds.dtype}.")
        batch, length = embeds.shape[:2]
    if length == 0:
        raise ValueError("the sequences have length 0; at least one token is needed.")
    return batch, length


def check_same_dtype(name: str, values: Tensor, dtype: torch.dtype) -> None:
    """Refuse numbers of another type than the model's.

    Raises:
        TypeError: naming both types.
    """
    if values.dtype != dtype:
        raise TypeError(f"{name} are {values.dtype}, but the model is {dtype}: cast one of them with .to(...).")


def read_integers(name: str, values: Tensor | None) -> Tensor | None:
    """Return integers as int64, so that no narrower type can overflow.

    Raises:
        TypeError: these are not integers, or not a tensor.
    """
    if values is None:
        return None
    check_tensor(name, values)
    if values.is_floating_point() or values.is_complex() or values.dtype == torch.bool:
        raise TypeError(f"{name} must be integers, got {values.dtype}.")
    return values.long()


def check_flag(name: str, value: object) -> None:
    """Refuse what is neither True, False nor None, such as a list of layers.

    Raises:
        TypeError: naming the flag and the value.
    """
    if value is not None and not isinstance(value, bool):  # not `bool | None`, which torch 2.6 can't compile
        advice = "choose layers from the result" if isinstance(value, list | tuple) else "pass one of these"
        raise TypeError(f"{name} must be True, False or None, got {value!r}: {advice}.")


def read_flag(name: str, given: bool | None, configured: bool | None) -> bool:
    """Return what the caller or else the configuration wants.

    Raises:
        TypeError: see `check_flag`.
    """
    check_flag(name, given)
    return bool(configured if given is None else given)


def read_states(chosen: bool | Sequence[int] | None, configured: bool | None, states: int) -> tuple[int, ...]:
    """Return the numbers of the hidden states that are wanted; negative ones count from the last, which is -1.

    Raises:
        TypeError: neither a flag nor numbers.
        ValueError: there is no such state.
    """
    chosen = bool(configured) if chosen is None else chosen
    if isinstance(chosen, bool):
        return tuple(range(states)) if chosen else ()
    if not isinstance(chosen, (list, tuple, range)) or not all(type(number) is int for number in chosen):
        raise TypeError(
            f"output_hidden_states must be True, False, None, or a list of numbers such as [0, -1], got {chosen!r}."
        )
    for number in chosen:
        if not -states <= number < states:
            raise ValueError(
                f"output_hidden_states names {number}; the states are 0 .. {states - 1}, or -1 .. -{states}."
            )
    return tuple(sorted({number % states for number in chosen}))


def read_position_ids(position_ids: Tensor | None, batch: int, length: int) -> Tensor | None:
    """Check the shape of position ids: [length], [1, length] or [batch, length] -> [1 or batch, length]."""
    if position_ids is None:
        return None
    if position_ids.dim() == 1:
        position_ids = position_ids[None]
    if tuple(position_ids.shape) not in ((1, length), (batch, length)):
        raise ValueError(f"position_ids have shape {list(position_ids.shape)}; expected [{batch}, {length}].")
    return position_ids


def read_head_mask(head_mask: Tensor | None, layers: int, heads: int, dtype: torch.dtype) -> Tensor | None:
    """Check a head mask: [heads] for all layers alike, or [layers, heads] -> [layers, heads]."""
    if head_mask is None:
        return None
    check_tensor("head_mask", head_mask)
    if tuple(head_mask.shape) not in ((heads,), (layers, heads)):
        raise ValueError(f"head_mask has shape {list(head_mask.shape)}; expected [{heads}] or [{layers}, {heads}].")
    return head_mask.to(dtype).expand(layers, heads)


def absolute_positions(inputs: EncoderInputs, limit: int, *, from_first_token: bool = False) -> Tensor:
    """Return the absolute position of each token [1 or batch, length].

    Args:
        inputs: the batch; its `position_ids` win if there are any. At padding they mean nothing: there, those that
            don't fit the table are replaced by one that does.
        limit: size of the position table.
        from_first_token: count from the first real token, so that left padding changes nothing; else from the start.

    Raises:
        ValueError: the position of a real token does not fit the table.
    """
    if inputs.position_ids is not None:
        given, tokens = inputs.position_ids, inputs.mask.tokens
        if given.shape[0] == 1:  # for all rows alike
            tokens = tokens.any(dim=0, keepdim=True)
        positions = given.where(tokens, given.clamp(0, limit - 1))
        if can_read(positions):
            _check_range("position_ids", positions, limit, "max_position_embeddings", inputs.lengths is None)
        return positions
    if inputs.width > limit:
        raise ValueError(
            f"the sequences have {inputs.width} tokens, but max_position_embeddings is {limit}: truncate them to "
            f"{limit} tokens, or resize the position embeddings."
        )
    return (inputs.columns - inputs.first_columns).clamp(min=0) if from_first_token else inputs.columns


def _check_range(name: str, values: Tensor, limit: int, limit_name: str, padded: bool = True) -> None:
    """Refuse values outside 0 .. limit - 1; in a packed row it can't be said where they stand."""
    outside = (values < 0) | (values >= limit)
    if outside.any():
        row, column = outside.nonzero()[0].tolist()
        place = f"{name}[{row}, {column}] is" if padded else f"one of {name} is"
        raise ValueError(f"{place} {values[row, column].item()}; allowed: 0 .. {limit - 1} ({limit_name} is {limit}).")
