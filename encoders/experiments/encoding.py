"""Turning the texts of a data set into token ids, with every truncation asked for and counted."""

from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedTokenizerBase

from encoders.experiments.data import LabelledTexts, counted
from encoders.experiments.errors import ExperimentError


@dataclass(frozen=True)
class EncodedTexts:
    """The examples of each split, as a model takes them, and how many of them were cut short."""

    examples: dict[str, list[dict[str, Any]]]
    truncated: dict[str, int]


def encode(data: LabelledTexts, tokenizer: PreTrainedTokenizerBase, max_length: int | None) -> EncodedTexts:
    """Encode every split, truncated to `max_length` tokens, or whole if that is None."""
    examples: dict[str, list[dict[str, Any]]] = {}
    truncated: dict[str, int] = {}
    for name, split in data.splits.items():
        whole = tokenizer(list(split.texts), return_token_type_ids=False, verbose=False)["input_ids"]
        encoded = tokenizer(
            list(split.texts), return_token_type_ids=False, truncation=max_length is not None, max_length=max_length
        )
        labels = data.labels(name)
        examples[name] = [
            {"input_ids": ids, "attention_mask": mask, "labels": label}
            for ids, mask, label in zip(encoded["input_ids"], encoded["attention_mask"], labels, strict=True)
        ]
        truncated[name] = sum(len(ids) < len(all_ids) for ids, all_ids in zip(encoded["input_ids"], whole, strict=True))
    return EncodedTexts(examples, truncated)


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
