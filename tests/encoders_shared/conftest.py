"""Small attention problems, and the double loop that defines what attention gives."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import Tensor

from encoders_shared.attention import AttentionSettings, RelativePositions, attention, tiling

BATCH, HEADS, LENGTH, WIDTH, ROWS = 2, 3, 5, 4, 7
TABLES = {"none": (), "c2p": ("keys",), "p2c": ("queries",), "both": ("keys", "queries")}


@dataclass
class AttentionProblem:
    """Everything that attention takes."""

    query: Tensor
    key: Tensor
    value: Tensor
    allowed: Tensor | None = None
    head_mask: Tensor | None = None
    positions: RelativePositions | None = None
    scale: float = 0.3

    def run(self, backend: str, *, need_weights=False, dropout=0.0, lengths=None) -> tuple[Tensor, Tensor | None]:
        settings = AttentionSettings(backend, self.allowed, self.head_mask, need_weights, lengths)
        tensors = (self.query, self.key, self.value)
        return attention(*tensors, settings, scale=self.scale, dropout=dropout, positions=self.positions)

    def shortened(self, length: int) -> "AttentionProblem":
        """The same without mask, for the first tokens alone; the scores keep the table rows of their offsets."""
        positions, cut = self.positions, self.query.shape[2] - length
        if positions is not None:
            positions = replace(positions, rows=positions.rows[cut : len(positions.rows) - cut])
        query, key, value = (tensor[:, :, :length] for tensor in (self.query, self.key, self.value))
        return replace(self, query=query, key=key, value=value, allowed=None, positions=positions)

    def leaves(self) -> list[Tensor]:
        """All tensors that a gradient flows to."""
        tables = [] if self.positions is None else [self.positions.keys, self.positions.queries]
        found = [self.query, self.key, self.value, self.head_mask, *tables]
        return [tensor for tensor in found if tensor is not None]

    def double_loop(self) -> tuple[np.ndarray, np.ndarray]:
        """The definition, in float64: context [batch, length, heads * width], weights [batch, heads, query, key]."""
        query, key, value = map(_numpy, (self.query, self.key, self.value))
        batch, heads, length, width = query.shape
        allowed = np.broadcast_to(
            True if self.allowed is None else self.allowed.numpy(), (batch, heads, length, length)
        )
        factors = np.ones(heads) if self.head_mask is None else _numpy(self.head_mask)
        keys_at, queries_at = None, None
        if self.positions is not None:
            keys_at, queries_at = _numpy(self.positions.keys), _numpy(self.positions.queries)
        context, weights = np.zeros((batch, length, heads, width)), np.zeros((batch, heads, length, length))
        for b, h, i in np.ndindex(batch, heads, length):
            left = np.flatnonzero(allowed[b, h, i])
            scores = np.array([query[b, h, i] @ key[b, h, j] for j in left])
            for n, j in enumerate(left):
                row = None if self.positions is None else int(self.positions.rows[i - j + length - 1])
                scores[n] += 0 if keys_at is None else query[b, h, i] @ keys_at[h, row]
                scores[n] += 0 if queries_at is None else key[b, h, j] @ queries_at[h, row]
            if len(left):
                powers = np.exp(self.scale * (scores - scores.max()))
                weights[b, h, i, left] = factors[h] * powers / powers.sum()
            context[b, i, h] = weights[b, h, i] @ value[b, h]
        return context.reshape(batch, length, heads * width), weights


def _numpy(tensor: Tensor | None) -> np.ndarray | None:
    return None if tensor is None else tensor.detach().double().numpy()


def attention_masks() -> dict[str, Tensor | None]:
    """Every form that `allowed` can have."""
    generator = torch.Generator().manual_seed(3)
    rows = torch.tensor([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], dtype=torch.bool)
    by_query = torch.rand(BATCH, 1, LENGTH, LENGTH, generator=generator) < 0.6
    by_query[0, 0, 1] = False  # one query that may attend to nothing
    by_query[1, 0, :, 4] = False
    return {
        "no mask": None,
        "padding": rows[:, None, None],
        "one empty row": torch.stack([rows[0], torch.zeros_like(rows[0])])[:, None, None],
        "by query": by_query,
        "for the whole batch": by_query[:1],
        "by head": torch.rand(BATCH, HEADS, LENGTH, LENGTH, generator=generator) < 0.6,
    }


@pytest.fixture(params=["eager", "sdpa", "tiled", "tiled small"])
def backend(request, monkeypatch):
    """The name of a backend; tiled also with tiles so small that heads and queries are cut, and no weights kept."""
    if request.param == "tiled small":
        monkeypatch.setattr(tiling, "TILE", 12)
        monkeypatch.setattr(tiling, "FEWEST_QUERIES", 2)
        monkeypatch.setattr("encoders_shared.attention.tiled.KEPT", 0)
    return request.param.split()[0]


@pytest.fixture(params=list(attention_masks()))
def any_mask(request):
    """The name of a mask: the test runs for each."""
    return request.param


@pytest.fixture(params=list(TABLES))
def any_positions(request):
    """The name of a kind of relative positions: the test runs for each."""
    return request.param


@pytest.fixture
def problem():
    """A function that makes an attention problem with random values."""

    def make(mask="no mask", positions="none", head_mask=False, dtype=torch.float64, batch=BATCH):
        generator = torch.Generator().manual_seed(1)

        def draw(*shape):
            return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

        made = AttentionProblem(*(draw(batch, HEADS, LENGTH, WIDTH) for _ in range(3)), attention_masks()[mask])
        if TABLES[positions]:
            tables = {name: draw(HEADS, ROWS, WIDTH) for name in TABLES[positions]}
            rows = torch.randint(0, ROWS, (2 * LENGTH - 1,), generator=generator)
            made.positions = RelativePositions(tables.get("keys"), tables.get("queries"), rows)
        if head_mask:
            made.head_mask = torch.tensor([0.0, 1.0, 0.7], dtype=dtype)
        return made

    return make
