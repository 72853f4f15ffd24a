"""Turning the texts of a data set into token ids, with every truncation asked for and counted."""

import warnings
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedTokenizerBase

from encoders.experiments.data import LabelledTexts, counted
from encoders.experiments.errors import ExperimentError


@dataclass(frozen=True)
class EncodedTexts:
    """A data set in token ids.

    Attributes:
        examples: what a model takes, for each row of each split.
        truncated: how many rows of each split were cut short.
        unknown: how many rows of each split hold something that the vocabulary lacks.
    """

    examples: dict[str, list[dict[str, Any]]]
    truncated: dict[str, int]
    unknown: dict[str, int]


def encode(data: LabelledTexts, tokenizer: PreTrainedTokenizerBase, max_length: int | None) -> EncodedTexts:
    """Encode every split, truncated to `max_length` tokens, or whole if that is None."""
    encoded = EncodedTexts({}, {}, {})
    for name, split in data.splits.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # unknown characters are counted instead
            whole, kept = (
                tokenizer(
                    list(split.texts),
                    return_token_type_ids=False,
                    truncation=limit is not None,
                    max_length=limit,
                    verbose=False,
                )["input_ids"]
                for limit in (None, max_length)
            )
        encoded.examples[name] = [
            {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": label}
            for ids, label in zip(kept, data.labels(name), strict=True)
        ]
        encoded.truncated[name] = sum(len(ids) < len(all_ids) for ids, all_ids in zip(kept, whole, strict=True))
        encoded.unknown[name] = sum(tokenizer.unk_token_id in ids for ids in whole)
    return encoded


def refuse_longer_texts(data: LabelledTexts, encoded: EncodedTexts, limit: int, backbone: str) -> None:
    """Refuse texts longer than a backbone was made for.

    Raises:
        ExperimentError: names the longest row, its length, the limit, and the option that allows truncation.
    """
    lengths = {
        (name, row): len(example["input_ids"])
        for name, split in data.splits.items()
        for row, example in zip(split.rows, encoded.examples[name], strict=True)
    }
    too_long = sum(length > limit for length in lengths.values())
    if too_long:
        (split, row), longest = max(lengths.items(), key=lambda item: item[1])
        raise ExperimentError(
            f"{data.name}: {counted(too_long)} over-long for {backbone}, which was made for {limit} tokens; "
            f"the longest is row {row} ({split}) with {longest}; say --max-length {limit} to truncate them"
        )
