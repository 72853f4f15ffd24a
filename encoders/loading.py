"""Trained encoders and their tokenizers, from a folder or a hub."""

from __future__ import annotations

import os
import warnings
from typing import Any, Literal, overload

from transformers import PreTrainedTokenizerBase

from encoders.checkpoints.checkpoint import load_model, open_checkpoint
from encoders.checkpoints.folder import open_folder
from encoders.checkpoints.report import LoadReport
from encoders.checkpoints.tokenizers import read_tokenizer
from encoders.registry import check_task
from encoders_shared.model import EncoderPreTrainedModel


@overload
def load(
    source: str | os.PathLike[str],
    *,
    task: str | None = None,
    revision: str | None = None,
    return_report: Literal[False] = False,
    **overrides: Any,
) -> EncoderPreTrainedModel: ...
@overload
def load(
    source: str | os.PathLike[str],
    *,
    task: str | None = None,
    revision: str | None = None,
    return_report: Literal[True],
    **overrides: Any,
) -> tuple[EncoderPreTrainedModel, LoadReport]: ...
def load(
    source: str | os.PathLike[str],
    *,
    task: str | None = None,
    revision: str | None = None,
    return_report: bool = False,
    **overrides: Any,
) -> EncoderPreTrainedModel | tuple[EncoderPreTrainedModel, LoadReport]:
    """Load a trained encoder, as its authors published it or as `save_pretrained` wrote it.

    Read are config.json, and the weights from model.safetensors, from files with a model.safetensors.index.json, or
    from pytorch_model.bin. Code in the folder is never run. Which layouts are known, and what is decided where
    config.json is silent, is in docs/checkpoints.md.

    A head that the checkpoint lacks is initialised afresh, from torch's random numbers, and one warning lists it. So is
    one that has other labels than those asked for with `num_labels`, `id2label` or `label2id`.

    Args:
        source: a folder, or the id of a repository on a hub.
        task: a name from `encoders.TASKS`, or None for the bare model.
        revision: branch, tag or commit on the hub.
        return_report: also return what was loaded, missing, unexpected, tied and converted.
        **overrides: fields of its configuration, which win over those of config.json. `dtype` is the type of the
            parameters: a torch.dtype or its name; left out or "auto", the one in which the weights are stored (the
            widest, where there are several).

    Returns:
        The model in evaluation mode; with `return_report`, the model and a `LoadReport`.

    Raises:
        CheckpointError: the checkpoint can't be loaded; a ValueError that says what it is and why.
        ValueError: the task is unknown, or an override doesn't exist or is not allowed.
    """
    check_task(task)
    model, report, messages = load_model(open_checkpoint(source, revision), task, overrides)
    for message in messages:
        warnings.warn(message, UserWarning, stacklevel=2)
    return (model, report) if return_report else model


def load_tokenizer(
    source: str | os.PathLike[str], *, revision: str | None = None, **options: Any
) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a trained encoder. Code in the folder is never run.

    Args:
        source: a folder, or the id of a repository on a hub.
        revision: branch, tag or commit on the hub.
        **options: for the tokenizer's class, such as `padding_side`, or `strict` for HELM-BERT's.

    Raises:
        CheckpointError: there is no tokenizer that can be read.
    """
    return read_tokenizer(open_folder(source, revision=revision, weights=False), options)
