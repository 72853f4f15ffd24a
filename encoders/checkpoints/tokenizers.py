"""Tokenizers from the files of a checkpoint."""

from __future__ import annotations

import warnings
from typing import Any

from transformers import DistilBertTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from encoders.checkpoints.folder import CheckpointFolder
from encoders.checkpoints.hub import TOKENIZER_FILES
from encoders.registry import families
from encoders_shared.checkpoints import CheckpointError
from encoders_shared.errors import listed

_LISTED = 4


def read_tokenizer(folder: CheckpointFolder, options: dict[str, Any]) -> PreTrainedTokenizerBase:
    """Return the tokenizer of a checkpoint.

    A family's own class is taken where tokenizer_config.json names it. Otherwise tokenizer.json says all that is
    needed, whatever class is named; and a vocab.txt alone is BERT's.

    Raises:
        CheckpointError: there are no files of a tokenizer, or they can't be read.
    """
    for name in TOKENIZER_FILES:
        folder.file(name)  # refuses links that lead out of the folder
    named = (folder.json("tokenizer_config.json") or {}).get("tokenizer_class")
    own = {cls.__name__: cls for family in families().values() if (cls := family.tokenizer_class) is not None}
    if isinstance(named, str) and named in own and own[named] is not PreTrainedTokenizerFast:
        tokenizer_class = own[named]
    elif folder.file("tokenizer.json") is not None:
        tokenizer_class = PreTrainedTokenizerFast
    elif folder.file("vocab.txt") is not None:
        tokenizer_class = DistilBertTokenizer
    else:
        raise CheckpointError(
            f"{folder.path} holds no tokenizer that can be read: needed is tokenizer.json, vocab.txt, or a "
            f"tokenizer_config.json that names one of {listed(own)}."
        )
    try:
        tokenizer = tokenizer_class.from_pretrained(folder.path, **options)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the reader of tokenizer.json raises bare Exceptions, and panics, which are none
        raise CheckpointError(f"{folder.path}: the tokenizer can't be read: {error}") from error
    tokenizer.init_kwargs.pop("auto_map", None)
    _warn_of_ids_outside(folder, tokenizer)
    return tokenizer


def _warn_of_ids_outside(folder: CheckpointFolder, tokenizer: PreTrainedTokenizerBase) -> None:
    """Warn of tokens that the model has no embedding for; the model refuses a batch that holds one."""
    rows = (folder.json("config.json") or {}).get("vocab_size")
    if not isinstance(rows, int):
        return
    outside = sorted((index, token) for token, index in tokenizer.get_vocab().items() if index >= rows)
    if outside:
        tokens = listed(f"{token!r} ({index})" for index, token in outside[:_LISTED])
        more = f" and {len(outside) - _LISTED} more" if len(outside) > _LISTED else ""
        warnings.warn(
            f"{folder.source}: the tokenizer has tokens that the model has no embedding for ({rows} rows): {tokens}"
            f"{more}. A batch that holds one of these ids is refused.",
            UserWarning,
            stacklevel=4,
        )
