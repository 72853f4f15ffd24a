"""Random configurations of every family: they train for a step, or are refused by the name of a field."""

from __future__ import annotations

import warnings
from dataclasses import fields as fields_of
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.activations import ACT2FN

from encoders import ConfigurationError
from encoders.family import TASKS
from encoders.registry import families
from encoders_shared import config as shared_config
from tests.fuzz.budget import inputs
from tests.support import BACKENDS, loss_of

TINY = {
    "vocab_size": 11,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 6,
    "max_position_embeddings": 9,
    "max_relative_positions": 9,
    "position_buckets": 8,
    "position_bucket_size": 4,
    "num_reserved_ids": 3,
}
ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.sampled_from([2**33, 10**12, 2**70, -(2**70)]),
    st.floats(),
    st.floats(0, 1),
    st.text(max_size=4),
    st.lists(st.integers(0, 3) | st.text(max_size=2), max_size=3),
    st.dictionaries(st.integers(-1, 3) | st.sampled_from("0123x"), st.text(max_size=2) | st.integers(0, 3), max_size=3),
)
LIKELY = {  # what is allowed, where chance alone would hardly find it
    "activation": st.sampled_from(sorted(ACT2FN)),
    "attn_implementation": st.sampled_from(["auto", *BACKENDS, "flash_attention_2"]),
    "dtype": st.sampled_from([torch.float32, torch.int8, "bfloat16", "float16", "torch.float32", "nn", "auto"]),
    "id2label": st.dictionaries(st.integers(0, 3), st.text(max_size=2), max_size=3),
    "pooling": st.sampled_from(["cls", "mean", "max"]),
    "pos_att_type": st.sampled_from(["c2p", "p2c", "p2c|c2p", "", "C2P | c2p", "p2p"]),
    "position_projection": st.sampled_from(["interleaved", "contiguous"]),
    "problem_type": st.sampled_from(["regression", "single_label_classification", "multi_label_classification"]),
    "pruned_heads": st.dictionaries(st.integers(0, 2), st.lists(st.integers(0, 2), max_size=3), max_size=2),
}
OTHER_KEYS = (  # unknown ones, those that transformers gives a meaning, and names of parts of the class
    *("attn_implementation", "num_labels", "output_attentions", "name_or_path", "torch_dtype", "model_type"),
    *("embed_dim", "head_dim", "num_heads", "is_decoder", "layer_types", "mtp_layer_types", "per_layer_config"),
    *("quantization_config", "rope_scaling", "rope_theta", "text_config", "use_bfloat16", "auto_map", "max_length"),
    *("attribute_map", "check", "count_parameters", "to_dict", "num_outputs", "sub_configs", "__class__"),
)


def tiny(config_class) -> dict[str, Any]:
    """Small values for the fields that a class has, under its own names."""
    own = {field.name for field in fields_of(config_class)}
    named = {config_class.attribute_map.get(name, name): value for name, value in TINY.items()}
    return {name: value for name, value in named.items() if name in own}


@st.composite
def changes(draw, config_class) -> dict[str, Any]:
    names = [*(field.name for field in fields_of(config_class)), *config_class.attribute_map]
    chosen = draw(st.lists(st.sampled_from(names), max_size=4, unique=True))
    chosen += draw(st.lists(st.sampled_from(OTHER_KEYS), max_size=1))
    return {name: draw(likely(config_class, name) if draw(st.integers(0, 7)) else ANYTHING) for name in chosen}


def likely(config_class, name: str) -> st.SearchStrategy:
    """Values that are allowed, or nearly."""
    if name in LIKELY:
        return LIKELY[name]
    default = getattr(config_class, config_class.attribute_map.get(name, name), None)
    by_type = {bool: st.booleans(), int: st.integers(0, 12), float: st.floats(0, 1), str: st.text(max_size=4)}
    return by_type.get(type(default), st.none() | st.integers(0, 4))


def batch_for(task: str, config, length: int) -> dict[str, Any]:
    ids = torch.randint(config.vocab_size, (2, 3, length) if task == "multiple-choice" else (2, length))
    if task == "masked-lm":
        reserved = getattr(config, "num_reserved_ids", 0)
        return {"input_ids": ids, "labels": torch.where(ids < reserved, -100, ids)}
    if task == "token-classification":
        return {"input_ids": ids, "labels": torch.randint(config.num_labels, ids.shape)}
    if task == "question-answering":
        return {"input_ids": ids, "start_positions": torch.zeros(2).long(), "end_positions": torch.zeros(2).long()}
    if task == "multiple-choice":
        return {"input_ids": ids, "labels": torch.tensor([0, 2])}
    if config.problem_type == "single_label_classification":
        return {"input_ids": ids, "labels": torch.randint(config.num_labels, (2,))}
    return {"input_ids": ids, "labels": torch.rand(2, config.num_labels)}


def train_one_step(family, task: str, config) -> None:
    model = family.tasks[task](config).train()
    longest = family.maximum_length(config, task)
    output = model(**batch_for(task, config, 5 if longest is None else min(5, longest)))
    loss = output[0] if isinstance(output, tuple) else loss_of(output, torch.ones(2))
    assert loss.isfinite(), f"the loss is {loss.item()}"
    loss.backward()
    torch.optim.SGD(model.parameters(), lr=0.01).step()


@pytest.mark.parametrize("name", families())
@inputs(few=70, many=700)
@given(data=st.data())
def test_a_configuration_trains_or_is_refused(name, data):
    family = families()[name]
    config_class = family.config_class
    changed = data.draw(changes(config_class))
    task = data.draw(st.sampled_from(TASKS))
    aliases = {**config_class.attribute_map, **{own: alias for alias, own in config_class.attribute_map.items()}}
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        patch.setattr(shared_config, "memory_limit", lambda: 10**7)
        try:
            config = config_class(**{**tiny(config_class), **changed})
            train_one_step(family, task, config)
            return
        except ConfigurationError as error:
            refusal = str(error)
    names = [*changed, *(aliases[name] for name in changed if name in aliases)]
    assert any(name in refusal for name in names), f"no field is named: {refusal}"
