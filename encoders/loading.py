"""Trained encoders and their tokenizers, from a folder or a hub."""

from __future__ import annotations

from typing import Any

from transformers import AutoTokenizer, PreTrainedConfig, PreTrainedTokenizerBase

from encoders.family import Family
from encoders.registry import check_task, families
from encoders_shared.model import EncoderPreTrainedModel


def load(source: str, *, task: str | None = None, **overrides: Any) -> EncoderPreTrainedModel:
    """Load a trained encoder.

    Args:
        source: a folder as written by `save_pretrained`, or the id of one on a hub.
        task: a name from `encoders.TASKS`, or None for the bare model. A head that the checkpoint lacks is initialised
            afresh.
        **overrides: fields of its configuration.

    Raises:
        ValueError: the task is unknown, or the checkpoint is of no family here.
    """
    check_task(task)
    return _family_of_checkpoint(source).tasks[task].from_pretrained(source, trust_remote_code=False, **overrides)


def load_tokenizer(source: str) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a trained encoder, from a folder or a hub."""
    families()
    return AutoTokenizer.from_pretrained(source, trust_remote_code=False)


def _family_of_checkpoint(source: str) -> Family:
    config, _ = PreTrainedConfig.get_config_dict(source)
    by_type = {family.config_class.model_type: family for family in families().values()}
    model_type = config.get("model_type")
    if model_type not in by_type:
        raise ValueError(f"{source} holds a model of type {model_type!r}; these can be loaded: {', '.join(by_type)}.")
    return by_type[model_type]
