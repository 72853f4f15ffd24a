"""Fetching a checkpoint from a hub: weights, configuration and tokenizer, never code."""

from __future__ import annotations

import re
from pathlib import Path

from huggingface_hub import snapshot_download

from encoders_shared.checkpoints import CheckpointError

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
)
TEXTS = ("config.json", "1_Pooling/config.json", *TOKENIZER_FILES)
SAFETENSORS = ("model*.safetensors", "model.safetensors.index.json")
PICKLES = ("pytorch_model*.bin", "pytorch_model.bin.index.json")

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)


def fetch(repository: str, revision: str | None, weights: bool) -> Path:
    """Return the local folder of a hub's repository; pickled weights are fetched only where there are no others.

    Raises:
        CheckpointError: the name can't be one, or the repository can't be reached.
    """
    if not _HUB_ID.fullmatch(repository) or repository.startswith("."):
        raise CheckpointError(f"there is no folder {repository!r}, and a hub id looks like 'owner/name'.")
    path = _download(repository, revision, (*TEXTS, *SAFETENSORS) if weights else TEXTS)
    if weights and not any(path.glob(SAFETENSORS[0])):
        path = _download(repository, revision, (*TEXTS, *PICKLES))
    return path


def _download(repository: str, revision: str | None, patterns: tuple[str, ...]) -> Path:
    try:
        return Path(snapshot_download(repository, revision=revision, allow_patterns=list(patterns)))
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CheckpointError(
            f"there is no folder {repository!r}, and it could not be fetched from the hub: {reason.rstrip('.')}. Give "
            "the path of a folder that holds the files, or try again when the hub can be reached."
        ) from error
