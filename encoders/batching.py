"""Batches of sequences of like length, under a budget of tokens.

    vectors = encode_in_batches(model, tokenizer(texts)["input_ids"], max_tokens=8_192)

A budget of tokens keeps memory and time of a batch even where a number of rows does not: many short sequences, or a few
long ones. It counts padding: rows times the longest. That is what a padded batch needs, and no less than what a packed
one does; as a batch is of like lengths, there is little padding in either.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch
from torch import Tensor
from torch.utils.data import Sampler
from tqdm import tqdm

from encoders_shared.errors import listed, suggestion
from encoders_shared.evaluation import evaluating
from encoders_shared.model import EncoderPreTrainedModel

Row = TypeVar("Row")
Result = TypeVar("Result")
BY_TOKEN = ("start_logits", "end_logits")  # [rows, length], where other two-dimensional outputs are [rows, classes]


def batches_by_length(lengths: Sequence[int], max_tokens: int, *, shuffle_seed: int | None = None) -> list[list[int]]:
    """Group sequences of like length.

    Args:
        lengths: tokens of each sequence.
        max_tokens: the most that a batch may hold, padding included: rows times the longest.
        shuffle_seed: put the batches, and sequences of one length, in an order drawn from this seed, for training; None
            keeps them in order, the longest first, so that a batch too large for the memory shows at once.

    Returns:
        The indices of each batch; every index stands in one. Their number does not depend on the seed.

    Raises:
        ValueError: a sequence is empty, or longer than the budget.
    """
    for index, length in enumerate(lengths):
        if not 1 <= length <= max_tokens:
            raise ValueError(
                f"sequence {index} has {length} tokens; allowed: 1 .. {max_tokens} (max_tokens). "
                f"{'Raise max_tokens or truncate it.' if length > 0 else 'Leave it out.'}"
            )
    order = list(range(len(lengths)))
    drawn = None if shuffle_seed is None else random.Random(shuffle_seed)
    if drawn is not None:
        drawn.shuffle(order)
    order.sort(key=lambda index: lengths[index], reverse=True)  # stable: equal lengths stay as they are
    batches: list[list[int]] = []
    for index in order:
        if batches and (len(batches[-1]) + 1) * lengths[batches[-1][0]] <= max_tokens:
            batches[-1].append(index)
        else:
            batches.append([index])
    if drawn is not None:
        drawn.shuffle(batches)
    return batches


class TokenBudgetSampler(Sampler[list[int]]):
    """`batches_by_length` as the `batch_sampler` of a DataLoader; each pass over it has an order of its own.

    Args:
        lengths: tokens of each sequence.
        max_tokens: the most that a batch may hold, padding included.
        seed: of the order of the first pass; the next passes count on from it.

    Raises:
        ValueError: as for `batches_by_length`.
    """

    def __init__(self, lengths: Sequence[int], max_tokens: int, *, seed: int = 0):
        self.lengths, self.max_tokens, self.seed = list(lengths), max_tokens, seed
        self.epoch = 0
        self._number = len(batches_by_length(self.lengths, max_tokens))

    def __len__(self) -> int:
        return self._number

    def __iter__(self) -> Iterator[list[int]]:
        self.epoch += 1
        return iter(batches_by_length(self.lengths, self.max_tokens, shuffle_seed=self.seed + self.epoch - 1))

    def set_epoch(self, epoch: int) -> None:
        """Let the next pass be that of a given epoch; accelerate calls this."""
        self.epoch = epoch


def map_in_batches(
    function: Callable[[list[Row]], Sequence[Result]], rows: Sequence[Row], lengths: Sequence[int], max_tokens: int
) -> list[Result]:
    """Apply a function to batches of rows of like length, with a progress bar on a terminal.

    Args:
        function: from the rows of a batch to one result for each.
        rows: what to work on.
        lengths: tokens of each row.
        max_tokens: the most that a batch may hold, padding included.

    Returns:
        The results in the order of `rows`.

    Raises:
        ValueError: as for `batches_by_length`; or the function returned more or fewer results than it got rows.
    """
    if len(rows) != len(lengths):
        raise ValueError(f"there must be one length for each row; got {len(rows)} rows and {len(lengths)} lengths.")
    results: dict[int, Result] = {}
    with tqdm(total=len(rows), unit="rows", delay=2, disable=None) as bar:
        for batch in batches_by_length(lengths, max_tokens):
            returned = function([rows[index] for index in batch])
            if len(returned) != len(batch):
                raise ValueError(f"the function must return one result for each row: {len(returned)} for {len(batch)}.")
            results.update(zip(batch, returned, strict=True))
            bar.update(len(batch))
    return [results[index] for index in range(len(rows))]


def encode_in_batches(
    model: EncoderPreTrainedModel, token_ids: Sequence[Sequence[int]], max_tokens: int, *, field: str = "pooler_output"
) -> list[Tensor]:
    """Run a model over many sequences in evaluation mode, without gradients; it is left in the mode it was in.

    Args:
        model: any model of this library, on any device, but not one for multiple choice.
        token_ids: the ids of each sequence, as `tokenizer(texts)["input_ids"]` gives them.
        max_tokens: the most that a batch may hold, padding included.
        field: which output to return, such as "pooler_output" or "last_hidden_state" of a bare model, or "logits".

    Returns:
        One tensor for each sequence, in the order given, on the CPU: [hidden] or [classes] where the output has a
        vector for each sequence, [length, ...] where it has values for each token.

    Raises:
        ValueError: as for `batches_by_length`; or the model has no such output.
    """

    def run(rows: list[Sequence[int]]) -> list[Tensor]:
        lengths = torch.tensor([len(row) for row in rows])
        ids = torch.full((len(rows), int(lengths.max())), model.config.pad_token_id or 0)
        mask = torch.arange(ids.shape[1]) < lengths[:, None]
        ids[mask] = torch.tensor([one for row in rows for one in row])
        output = model(input_ids=ids.to(model.device), attention_mask=mask.to(model.device), return_dict=True)
        if not isinstance(output.get(field), Tensor):
            raise ValueError(
                f"{type(model).__name__} returns no {field!r}.{suggestion(field, output)} It returns: {listed(output)}."
            )
        values = output[field].cpu()
        if values.dim() == 3 or field in BY_TOKEN:
            return [one[:length] for one, length in zip(values, lengths.tolist(), strict=True)]
        return list(values)

    with evaluating(model):
        return map_in_batches(run, token_ids, [len(row) for row in token_ids], max_tokens)
