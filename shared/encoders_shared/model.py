"""What the models of all families have in common."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.utils.generic import ModelOutput

from encoders_shared.attention import read_backend
from encoders_shared.errors import can_read, listed, suggestion
from encoders_shared.inputs import (
    EncoderInputs,
    check_flag,
    check_same_dtype,
    check_tokens,
    read_flag,
    read_head_mask,
    read_integers,
    read_position_ids,
    read_states,
)
from encoders_shared.linear import rows_to_add
from encoders_shared.masks import AttentionMask, first_token, read_attention_mask
from encoders_shared.outputs import EncoderOutput
from encoders_shared.packing import plan_packing
from encoders_shared.pooling import POOLINGS


class EncoderPreTrainedModel(PreTrainedModel):
    """Base of every model of every family, bare or with a head.

    A family sets where its embeddings are, below the bare model: `word_embeddings` and, if it has any,
    `position_embeddings`.
    """

    supports_gradient_checkpointing = True
    _supports_sdpa = True
    accepts_loss_kwargs = False  # a loss is the mean over its own batch

    word_embeddings: ClassVar[str]
    position_embeddings: ClassVar[str | None] = None
    forward_options: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config, *args: Any, **kwargs: Any):
        config.check()
        super().__init__(config, *args, **kwargs)

    @classmethod
    def _can_set_attn_implementation(cls) -> bool:
        return True  # transformers guesses it from the source text of a module, and guesses wrong here

    def get_correct_attn_implementation(self, requested_attention: str | None, is_init_check: bool = False) -> str:
        """Check what transformers is asked for, and return its own name for it: its default is called "sdpa".

        Raises:
            ValueError: there is no such backend.
        """
        backend = read_backend(requested_attention)
        return "sdpa" if backend == "auto" else backend

    @property
    def trunk(self) -> Trunk:
        """What this model's head sits on; a model without a head is its own trunk."""
        return cast(Trunk, self.base_model)

    @property
    def packing(self) -> bool | None:
        """Whether ragged batches run without work on padding: None (where it pays), True or False.

        It is kept by the trunk, so that a model and its head never disagree.

        Raises:
            TypeError: it is set to anything else.
        """
        return self.trunk._packing

    @packing.setter
    def packing(self, value: bool | None) -> None:
        check_flag("packing", value)
        self.trunk._packing = value

    def get_input_embeddings(self) -> nn.Module:
        """Return the word embeddings."""
        return self.base_model.get_submodule(self.word_embeddings)

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace the word embeddings."""
        self.base_model.set_submodule(self.word_embeddings, value)

    def get_position_embeddings(self) -> nn.Embedding:
        """Return the table of absolute positions.

        Raises:
            NotImplementedError: the family has none.
        """
        if self.position_embeddings is None:
            raise NotImplementedError(f"{type(self).__name__} has no absolute positions: it takes any length as it is.")
        return cast(nn.Embedding, self.base_model.get_submodule(self.position_embeddings))

    def resize_position_embeddings(self, new_num_position_embeddings: int) -> None:
        """Lengthen or shorten the table of absolute positions; the rows that remain keep their values.

        Raises:
            NotImplementedError: the family has none.
            ValueError: the new size is not positive.
        """
        old = self.get_position_embeddings()
        if new_num_position_embeddings < 1:
            raise ValueError(f"a position table needs at least 1 row, got {new_num_position_embeddings}.")
        new = type(old)(
            new_num_position_embeddings, old.embedding_dim, device=old.weight.device, dtype=old.weight.dtype
        )
        self.config.max_position_embeddings = new_num_position_embeddings
        assert self.position_embeddings is not None
        self.base_model.set_submodule(self.position_embeddings, new)
        self._init_weights(new)
        kept = min(old.num_embeddings, new_num_position_embeddings)
        with torch.no_grad():
            new.weight[:kept] = old.weight[:kept]

    def check_options(self, options: dict[str, Any]) -> None:
        """Refuse keywords that this model does not know.

        Raises:
            TypeError: naming the keyword, the nearest known one and all that are known.
        """
        for name in options:
            if name not in self.forward_options:
                parameters = inspect.signature(type(self).forward).parameters.values()
                known = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "self"]
                known += self.forward_options
                raise TypeError(
                    f"{type(self).__name__}.forward() got an unknown keyword {name!r}.{suggestion(name, known)} "
                    f"Known: {listed(known)}."
                )

    def finish(self, output: ModelOutput, return_dict: bool | None) -> Any:
        """Return the output as it is or as a tuple, as the caller or else the configuration wants it.

        Raises:
            TypeError: `return_dict` is neither True, False nor None.
        """
        return output if read_flag("return_dict", return_dict, self.config.return_dict) else output.to_tuple()


class Trunk(EncoderPreTrainedModel):
    """Embeddings and layers: from a batch to states.

    A family writes `encode_batch`, from a checked batch to states; all that comes before and after is done here.
    """

    _packing: bool | None = None  # read and set as `packing`

    def encode_batch(self, inputs: EncoderInputs) -> EncoderOutput:
        """Run the layers on a checked batch."""
        raise NotImplementedError

    def encode(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | Sequence[int] | None = None,
        packing: bool | None = None,
        packed_output: bool = False,
        needed: Tensor | None = None,
        **options: Any,
    ) -> EncoderOutput:
        """Check a batch and encode it.

        Args:
            input_ids: token ids [batch, length]; either these or `inputs_embeds`.
            attention_mask: 1 where a token may be attended to; see `encoders_shared.masks`.
            position_ids: absolute positions [batch, length]; what they do is said in the encoder's card.
            head_mask: factors of the attention heads, [heads] or [layers, heads].
            inputs_embeds: word embeddings [batch, length, hidden], to be treated as those of `input_ids` are.
            output_attentions: return the attention weights; default as configured.
            output_hidden_states: return the states of all layers, or those with these numbers; default as configured.
            packing: run without work on padding: True, False, or None for this model's `packing`.
            packed_output: return states of real tokens alone, the sequences behind one another [tokens, hidden].
            needed: True where a state is needed [batch, length]; a batch that needs one at padding is not packed.
            **options: the family's own keywords.

        Raises:
            TypeError: a tensor of the wrong type, or a flag that is none.
            ValueError: a tensor of the wrong shape, or with values out of range.
        """
        config = self.config
        packed_output = read_flag("packed_output", packed_output, False)
        input_ids = read_integers("input_ids", input_ids)
        batch, length = check_tokens(input_ids, inputs_embeds, config.vocab_size, config.hidden_size)
        device = cast(Tensor, input_ids if inputs_embeds is None else inputs_embeds).device
        if inputs_embeds is not None and not torch.is_autocast_enabled(device.type):
            check_same_dtype("inputs_embeds", inputs_embeds, self.dtype)
        mask = read_attention_mask(attention_mask, batch, length, device)
        inputs = EncoderInputs(
            ids=input_ids,
            embeds=inputs_embeds,
            mask=mask,
            position_ids=read_position_ids(read_integers("position_ids", position_ids), batch, length),
            head_mask=read_head_mask(head_mask, config.num_hidden_layers, config.num_attention_heads, self.dtype),
            width=length,
            columns=torch.arange(length, device=device)[None],
            first_columns=first_token(mask.tokens)[:, None],
            lengths=None,
            backend=read_backend(config._attn_implementation),
            keep_states=read_states(output_hidden_states, config.output_hidden_states, config.num_hidden_layers + 1),
            keep_attentions=read_flag("output_attentions", output_attentions, config.output_attentions),
            options=options,
        )
        packing = self._packing if packing is None else packing
        if packing is None and inputs.keep_states and torch.is_grad_enabled():
            packing = False  # states that were put back into padded form lie beside the way of the gradients
        padded_form = inputs.keep_attentions or _at_padding(needed, mask)
        plan = None if padded_form else plan_packing(mask, packing)
        if plan is not None:
            plan = plan.filled(rows_to_add(sum(plan.lengths), config.hidden_size, next(self.parameters())))
        output = self.encode_batch(inputs if plan is None else inputs.packed(plan))
        if plan is not None:
            output = output.map_states(plan.unpack)
        last = output.last_hidden_state
        output = EncoderOutput(  # in the order of its fields, which is that of the tuple
            last_hidden_state=last,
            pooler_output=None if last is None else POOLINGS[config.pooling](last, mask.tokens),
            hidden_states=output.hidden_states,
            attentions=output.attentions,
            prediction_state=output.prediction_state,
        )
        return output.map_states(lambda states: states[mask.tokens]) if packed_output else output


def _at_padding(needed: Tensor | None, mask: AttentionMask) -> bool:
    """Tell whether a state at padding is needed; a wrong shape is refused where the labels are read."""
    if needed is None or not can_read(needed) or needed.shape != mask.tokens.shape:
        return False
    return bool((needed & ~mask.tokens).any())


class BareModel(Trunk):
    """A model without a head: its forward pass is `encode`."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | Sequence[int] | None = None,
        return_dict: bool | None = None,
        packed_output: bool = False,
        **options: Any,
    ) -> EncoderOutput | tuple:
        """Encode a batch; see `encode`. `token_type_ids` are accepted and ignored: no family here has segments."""
        self.check_options(options)
        output = self.encode(
            input_ids,
            attention_mask,
            position_ids,
            head_mask,
            inputs_embeds,
            output_attentions,
            output_hidden_states,
            packed_output=packed_output,
            **options,
        )
        return self.finish(output, return_dict)
