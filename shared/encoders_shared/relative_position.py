"""From the offset between two tokens to a row of a relative-position table.

An offset is `query - key`: positive where the key stands to the left of the query. The bucketings are exact step
functions. Their steps are found with whole numbers, so they do not depend on the default dtype, on the device or on the
length, and they equal the floating-point formulas of the published code wherever that code is right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from encoders_shared.errors import can_read

ROUND = 8  # the rows that are read are a multiple of this: such matrix products are faster


def relative_offsets(length: int, device: torch.device) -> Tensor:
    """Return every offset that `length` tokens can have, from -(length - 1) to length - 1. int64 [2 * length - 1]."""
    return torch.arange(2 * length - 1, device=device) - (length - 1)


def pair_index(length: int, device: torch.device) -> Tensor:
    """Return for each pair of tokens where its offset stands in `relative_offsets(length)`. int64 [query, key]."""
    position = torch.arange(length, device=device)
    return position[:, None] - position[None, :] + (length - 1)  # [query, key]


@dataclass(frozen=True)
class TableRows:
    """Which rows of a position table a forward pass reads; the others need not be projected.

    Attributes:
        used: the rows that are read, and the last of them again up to a round number, int64 [rows].
        of_offset: for each offset -(length - 1) .. length - 1, where its row stands in `used`, int64 [2 * length - 1].
    """

    used: Tensor
    of_offset: Tensor


def reachable_rows(of_offset: Tensor, table_size: int) -> TableRows:
    """Keep the rows that these offsets reach; all of them where values may not be read, as no shape may vary there."""
    if not can_read(of_offset):
        return TableRows(torch.arange(table_size, device=of_offset.device), of_offset)
    used, inverse = torch.unique(of_offset, return_inverse=True)
    return TableRows(torch.cat((used, used[-1:].expand(-len(used) % ROUND))), inverse)


@dataclass(frozen=True)
class ClampedOffsets:
    """Offsets cut to +-max_position and counted from zero: 0 .. 2 * max_position (He et al. 2021, DeBERTa, eq. 3)."""

    max_position: int

    def __call__(self, offsets: Tensor) -> Tensor:
        """Map integer offsets of any shape to integers of the same shape."""
        return offsets.clamp(-self.max_position, self.max_position) + self.max_position


@dataclass(frozen=True)
class TwoSidedLogBuckets:
    """HELM-BERT's buckets: one half of the numbers for each side, each half first exact, then logarithmic.

    As in T5 (Raffel et al. 2020, section 2.1): distances below `buckets // 4` have a bucket each, farther ones share
    the rest of their half in logarithmic steps that end at `max_position` (exactly so if `buckets` is a multiple of 4);
    all beyond share the last. The query itself
    and keys to its right use 0 .. buckets // 2 - 1; keys to its left use the numbers from buckets // 2 on.

    Attributes:
        buckets: number of buckets in all, at least 4.
        max_position: distance at which the last bucket begins, at least buckets // 4.
    """

    buckets: int
    max_position: int
    steps: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self):
        object.__setattr__(self, "steps", _two_sided_steps(self.buckets, self.max_position))

    def __call__(self, offsets: Tensor) -> Tensor:
        """Map integer offsets of any shape to integers of the same shape."""
        side = (offsets > 0) * (self.buckets // 2)
        return side + _steps_reached(offsets.abs(), self.steps)


@dataclass(frozen=True)
class SymmetricLogBuckets:
    """Buckets of LTG-BERT and NorBERT3 (Samuel et al. 2023, section 3.1; from He et al. 2023, DeBERTaV3).

    Offsets up to `bucket_size // 2` keep their value; farther ones lie on a logarithmic scale that reaches its end,
    `bucket_size - 1` for even sizes, at `max_position - 1` and stays there. The sign is kept: the function is odd.

    Attributes:
        bucket_size: one more than the largest bucket, at least 2.
        max_position: the length at which the scale ends.
    """

    bucket_size: int
    max_position: int
    steps: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self):
        object.__setattr__(self, "steps", _symmetric_steps(self.bucket_size, self.max_position))

    def __call__(self, offsets: Tensor) -> Tensor:
        """Map integer offsets of any shape to integers of the same shape."""
        return offsets.sign() * _steps_reached(offsets.abs(), self.steps)


def _steps_reached(distances: Tensor, steps: tuple[int, ...]) -> Tensor:
    """Count, for each distance, how many of the ascending steps it has reached."""
    return torch.bucketize(distances, torch.tensor(steps, dtype=torch.int64, device=distances.device), right=True)


def _two_sided_steps(buckets: int, max_position: int) -> tuple[int, ...]:
    """Return the distance at which each bucket of one side begins, bucket 1 first.

    Bucket `exact + k` begins at the smallest d with log(d / exact) / log(max_position / exact) * (exact - 1) >= k.
    """
    exact = buckets // 4
    last = buckets // 2 - 1
    steps = list(range(1, min(exact, last) + 1))
    if exact == 1:  # the factor (exact - 1) keeps every farther distance in bucket 1
        return tuple(steps)
    for k in range(1, last - exact + 1):
        steps.append(_first(lambda d, k=k: _power_reaches(d, exact - 1, max_position, k, exact), start=steps[-1]))
    return tuple(steps)


def _symmetric_steps(bucket_size: int, max_position: int) -> tuple[int, ...]:
    """Return the distance at which each positive bucket begins, bucket 1 first.

    Bucket `middle + k` holds the d with ceil(log(d / middle) / log(farthest / middle) * (middle - 1)) = k: it begins
    where that value first exceeds k - 1.
    """
    middle = bucket_size // 2
    farthest = max_position - 1
    if farthest <= middle:  # no room for a logarithmic part
        return tuple(range(1, bucket_size))
    steps = list(range(1, middle + 1))
    for k in range(1, middle):
        steps.append(_first(lambda d, k=k: not _power_reaches(farthest, k - 1, d, middle - 1, middle), start=steps[-1]))
    return tuple(steps)


def _power_reaches(left: int, left_power: int, right: int, right_power: int, base: int) -> bool:
    """Tell whether (left / base) ** left_power >= (right / base) ** right_power, in whole numbers."""
    return left**left_power * base**right_power >= right**right_power * base**left_power


def _first(condition: Callable[[int], bool], start: int) -> int:
    """Return the smallest whole number from `start` on that meets a condition which, once met, stays met."""
    high = start
    while not condition(high):
        high *= 2
    low = max(start, high // 2)
    while low < high:
        between = (low + high) // 2
        low, high = (low, between) if condition(between) else (between + 1, high)
    return low
