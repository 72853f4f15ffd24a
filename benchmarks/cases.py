"""What is measured: the families at their published widths, and batches by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

PRESETS = {
    "helmbert": "helmbert-base",
    "helmbert-unbucketed": "helmbert-base",
    "norbert": "norbert3-base",
    "distilbert": "distilbert-base-uncased",
}
MODES = ("inference", "training", "inference memory", "training memory")
SHORTEST = 4  # tokens of the shortest sequence in a ragged batch


@dataclass(frozen=True)
class Shape:
    """A batch.

    Attributes:
        rows: number of sequences.
        length: tokens of the longest, to which all are padded.
        fill: share of the padded batch that is real tokens.
    """

    rows: int
    length: int
    fill: float = 1.0

    @property
    def lengths(self) -> list[int]:
        """Real tokens of each sequence, longest first: one is full, the others fall off as a power of their rank."""
        candidates = (self._falling(power / 100) for power in range(2_000))
        wanted = self.fill * self.rows * self.length
        return min(candidates, key=lambda lengths: abs(sum(lengths) - wanted))

    def _falling(self, power: float) -> list[int]:
        shares = [((self.rows - row) / self.rows) ** power for row in range(self.rows)]
        return [max(min(SHORTEST, self.length), round(self.length * share)) for share in shares]

    def batch(self, vocab_size: int) -> dict[str, Tensor]:
        """Return random ids and their mask, both [rows, length]."""
        generator = torch.Generator().manual_seed(0)
        lowest = min(110, vocab_size // 2)  # above the reserved ids
        ids = torch.randint(lowest, vocab_size, (self.rows, self.length), generator=generator)
        return {
            "input_ids": ids,
            "attention_mask": (torch.arange(self.length) < torch.tensor(self.lengths)[:, None]).long(),
        }


SETS = {
    "standard": {
        "1 x 32": Shape(1, 32),
        "8 x 128": Shape(8, 128),
        "8 x 128 ragged": Shape(8, 128, 0.4),
        "32 x 128 ragged": Shape(32, 128, 0.3),
        "4 x 512": Shape(4, 512),
    },
    "fill": {
        f"8 x 128 fill {fill}": Shape(8, 128, fill) for fill in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
    },
    "length": {f"1 x {length}": Shape(1, length) for length in (128, 256, 512, 1_024, 2_048)},
    "long": {f"1 x {length}": Shape(1, length) for length in (512, 1_024, 2_048, 4_096, 8_192)},
}
SHAPES = {name: shape for shapes in SETS.values() for name, shape in shapes.items()}


def shape_names(wanted: list[str]) -> list[str]:
    """Return the shapes that names of shapes or of sets stand for, each once."""
    return list(dict.fromkeys(name for one in wanted for name in SETS.get(one, (one,))))


@dataclass(frozen=True)
class Case:
    """What one measuring process does.

    Attributes:
        family: a name in `PRESETS`.
        shape: a name in `SHAPES`.
        mode: a name in `MODES`.
        models: "ours" first, then its peers; timed in turn.
        layers: layers of each model; they are all alike.
        rounds: how often each model runs, after one run to warm up.
        threads: threads of the matrix products.
        folder: where exported models are kept for the next process.
    """

    family: str
    shape: str
    mode: str
    models: list[str]
    layers: int
    rounds: int
    threads: int
    folder: str

    def overrides(self) -> dict[str, Any]:
        """Return the fields of our configuration that differ from the preset's."""
        fields: dict[str, Any] = {"num_hidden_layers": self.layers}
        if self.family == "helmbert-unbucketed":
            fields["position_buckets"] = -1
        if self.family != "norbert":  # which has no absolute positions
            fields["max_position_embeddings"] = max(512, SHAPES[self.shape].length)
        return fields
