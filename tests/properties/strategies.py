"""What the properties are tried on: tiny encoders of odd sizes in double precision, and ragged batches."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

import encoders
from encoders.registry import family_of
from tests.support import ALL_TASKS, BACKENDS, SMALL, inputs_of, make_batch, make_model, predictions

PER_TOKEN = (None, "masked-lm", "token-classification", "question-answering")
SHAPES = ((5, 1), (6, 3), (4, 4), (9, 3), (8, 2))  # hidden size, heads
VARIATIONS = {  # what a family may have; small enough for short sequences to reach the ends of the position tables
    "activation": ("gelu", "relu"),
    "classifier_num_layers": (0, 2),
    "max_relative_positions": (512, 5),
    "ngie_kernel_size": (3, 1, 5),
    "pooling": ("cls", "mean"),
    "pos_att_type": ("c2p|p2c", "c2p", "p2c", ""),
    "position_bucket_size": (32, 3),
    "position_buckets": (8, 0),
    "position_projection": ("interleaved", "contiguous"),
    "share_att_key": (False, True),
    "sinusoidal_pos_embds": (False, True),
    "tie_word_embeddings": (True, False),
}

tasks = st.sampled_from(ALL_TASKS)
backends = st.sampled_from(["auto", *BACKENDS])
packings = st.sampled_from([None, True, False])
seeds = st.integers(0, 1000)


@st.composite
def fields(draw, name: str) -> dict[str, Any]:
    """A configuration: a few layers, odd widths, and any of the variations that the family has."""
    hidden_size, heads = draw(st.sampled_from(SHAPES))
    known = family_of(name).presets[name].config()
    chosen = {field: draw(st.sampled_from(VARIATIONS[field])) for field in VARIATIONS if hasattr(known, field)}
    return {
        "hidden_size": hidden_size,
        "num_attention_heads": heads,
        "num_hidden_layers": draw(st.integers(1, 3)),
        "intermediate_size": draw(st.sampled_from([7, 1])),
        **chosen,
    }


def make_small(
    name: str, task: str | None, fields: dict[str, Any], backend: str = "eager", packing: bool | None = None
) -> Any:
    """A model in double precision, where a difference beyond 1e-9 is a mistake and not rounding."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*no enhanced mask decoder")  # one layer is meant
        model = make_model(name, task, backend, **fields).double()
    model.trunk.packing = packing
    return model


@st.composite
def batches(draw, task: str | None, longest: int = 6) -> dict[str, Tensor]:
    """Right-padded inputs with labels."""
    lengths = draw(st.lists(st.integers(1, longest), min_size=1, max_size=4))
    return make_batch(task, tuple(lengths), draw(seeds))


@st.composite
def masks(draw, batch: dict[str, Tensor]) -> Tensor | None:
    """Any mask for a batch: none, its own, one with gaps, or one that differs by query; rows may be empty."""
    own = batch["attention_mask"]
    kind = draw(st.sampled_from(["own", "none", "gaps", "by query"]))
    if kind in ("own", "none"):
        return own if kind == "own" else None
    shape = own.shape if kind == "gaps" else (*own.shape, own.shape[-1])
    return torch.rand(shape, generator=torch.Generator().manual_seed(draw(seeds))) < draw(
        st.sampled_from([0.7, 0.3, 0.0])
    )


def any_side(name: str) -> bool:
    """Whether the card promises that tokens may stand anywhere without `position_ids`."""
    return encoders.card(name).padding.startswith("left or right")


def moved(batch: dict[str, Tensor], shifts: list[int], width: int) -> dict[str, Tensor]:
    """The same tokens, each row further right by its shift, with `position_ids`; all else is garbage under the mask."""
    ids = batch["input_ids"]
    lengths = batch["attention_mask"].sum(-1).reshape(len(shifts), -1)[:, 0].tolist()
    garbage = torch.Generator().manual_seed(0)
    result = dict(batch)
    result["input_ids"] = torch.randint(0, SMALL["vocab_size"], (*ids.shape[:-1], width), generator=garbage)
    result["attention_mask"] = torch.zeros_like(result["input_ids"])
    if "labels" in batch and batch["labels"].shape == ids.shape:
        result["labels"] = torch.full_like(result["input_ids"], -100)
    for name in ("input_ids", "attention_mask", "labels"):
        if name in result and result[name] is not batch[name]:
            for row, (shift, length) in enumerate(zip(shifts, lengths, strict=True)):
                result[name][row, ..., shift : shift + length] = batch[name][row, ..., :length]
    result["position_ids"] = (result["attention_mask"].cumsum(-1) - 1).clamp(min=0)
    return result


def at_tokens(task: str | None, values: Tensor, mask: Tensor) -> Tensor:
    """The predictions that count: at real tokens, or for each sequence that has any."""
    return values[mask.bool()] if task in PER_TOKEN else values[mask.bool().any(-1)]


def run(model, batch: dict[str, Tensor]) -> Tensor:
    """Predictions without gradients; labels are left out."""
    names = (*inputs_of(batch), *(name for name in ("position_ids", "inputs_embeds", "head_mask") if name in batch))
    with torch.no_grad():
        return predictions(model(**{name: batch[name] for name in names}))


def gradients(model, loss: Tensor, **others: Tensor) -> dict[str, Tensor]:
    """The gradients of the parameters that have one, and of other tensors; what the model holds is left alone."""
    leaves = {**{name: one for name, one in model.named_parameters() if one.requires_grad}, **others}
    found = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
    return {name: gradient for name, gradient in zip(leaves, found, strict=True) if gradient is not None}


def assert_same_gradients(actual: dict[str, Tensor], expected: dict[str, Tensor], tolerance: float = 1e-9) -> None:
    """Compare gradients relative to the largest of all."""
    assert actual.keys() == expected.keys()
    largest = max(gradient.abs().max().item() for gradient in expected.values())
    for name, gradient in expected.items():
        worst = (actual[name] - gradient).abs().max().item()
        assert worst <= tolerance * largest, f"{name}: {worst:.1e} of {largest:.1e}"
