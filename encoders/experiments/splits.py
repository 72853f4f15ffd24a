"""The three splits: the names accepted for them, and a reproducible split where the data has none."""

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Sequence

from encoders.experiments.errors import ExperimentError

SPLITS = ("train", "dev", "test")
HELD_OUT = ("dev", "test")
HELD_OUT_FRACTION = 0.1
"""The part of the rows that goes to each of dev and test where the data names no splits."""

_ALIASES = {"validation": "dev", "valid": "dev", "val": "dev"}


def split_name(cell: str, row: int, column: str) -> str:
    """Return the split that a cell of the split column names.

    Raises:
        ExperimentError: the cell names none of the three splits.
    """
    name = _ALIASES.get(cell.strip().lower(), cell.strip().lower())
    if name not in SPLITS:
        raise ExperimentError(
            f"row {row}: '{cell}' in column '{column}' is no split; "
            f"allowed are {', '.join(SPLITS)} and, for dev, {', '.join(_ALIASES)}"
        )
    return name


def stratified_split(texts: Sequence[str], strata: Sequence[Hashable]) -> list[str]:
    """Assign each text to a split: 80 % train, 10 % dev and 10 % test of every stratum.

    The order within a stratum is that of the texts' SHA-256, so the split depends on nothing but the rows. Equal texts
    always share a split; they belong to the stratum of the first of them. A stratum of one or two texts goes to train.
    """
    members: dict[Hashable, list[str]] = defaultdict(list)
    for text, stratum in dict(zip(reversed(texts), reversed(strata), strict=True)).items():
        members[stratum].append(text)
    assigned: dict[str, str] = {}
    for distinct in members.values():
        held_out = max(1, round(HELD_OUT_FRACTION * len(distinct))) if len(distinct) >= len(SPLITS) else 0
        for rank, text in enumerate(sorted(distinct, key=_digest)):
            assigned[text] = "dev" if rank < held_out else "test" if rank < 2 * held_out else "train"
    return [assigned[text] for text in texts]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
