"""What the tests share: small models with weights that show mistakes, and batches for every task."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import encoders
from encoders.family import TASKS

NANO = encoders.list_encoders("*-nano")
ALL_TASKS = (None, *TASKS)
BACKENDS = ("eager", "sdpa", "tiled")
SMALL = {"vocab_size": 140, "num_labels": 3}
FIRST_ID = 110  # above all reserved ids


def make_model(name: str, task: str | None, backend: str = "sdpa", **overrides: Any):
    """A model in evaluation mode whose weights are spread widely, so that a mistake shows."""
    torch.manual_seed(0)
    model = encoders.create(name, task=task, **{**SMALL, "attn_implementation": backend, **overrides}).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape)
            spread = 0.2 if parameter.dim() == 1 else 2.0 * parameter.shape[-1] ** -0.5
            parameter.add_(spread * noise if parameter.requires_grad else 0.0)
    return model


def make_batch(task: str | None, lengths: tuple[int, ...] = (12, 5, 9), seed: int = 1) -> dict[str, Tensor]:
    """Right-padded inputs with labels; multiple choice gets three choices for each row."""
    generator = torch.Generator().manual_seed(seed)
    rows, longest = len(lengths), max(lengths)
    ids = torch.randint(FIRST_ID, SMALL["vocab_size"], (rows, longest), generator=generator)
    mask = (torch.arange(longest) < torch.tensor(lengths)[:, None]).long()
    batch = {"input_ids": ids, "attention_mask": mask}
    if task == "masked-lm" or task == "token-classification":
        classes = (FIRST_ID, SMALL["vocab_size"]) if task == "masked-lm" else (0, SMALL["num_labels"])
        labels = torch.randint(*classes, (rows, longest), generator=generator)
        batch["labels"] = labels.masked_fill(mask == 0, -100)
    elif task == "sequence-classification":
        batch["labels"] = torch.randint(0, SMALL["num_labels"], (rows,), generator=generator)
    elif task == "question-answering":
        batch["start_positions"] = torch.zeros(rows, dtype=torch.long)
        batch["end_positions"] = torch.tensor(lengths) - 1
    elif task == "multiple-choice":
        choices = torch.randint(FIRST_ID, SMALL["vocab_size"], (rows, 3, longest), generator=generator)
        batch = {"input_ids": choices, "attention_mask": mask[:, None].expand(rows, 3, longest).contiguous()}
        batch["labels"] = torch.randint(0, 3, (rows,), generator=generator)
    return batch


def inputs_of(batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """The batch without its labels."""
    return {name: value for name, value in batch.items() if name in ("input_ids", "attention_mask")}


def predictions(output: Any) -> Tensor:
    """The main result: states of a bare model, logits of a task (start and end stacked)."""
    if "start_logits" in output:
        return torch.stack([output.start_logits, output.end_logits], dim=-1)
    return output.logits if "logits" in output else output.last_hidden_state


def loss_of(output: Any, mask: Tensor) -> Tensor:
    """The loss, or the mean square of the attended states of a bare model."""
    return output.loss if "loss" in output else output.last_hidden_state[mask.bool()].square().mean()


def real(values: Tensor, mask: Tensor) -> Tensor:
    """Values at attended tokens, if there is one for each token."""
    return values[mask.bool()] if values.shape[: mask.dim()] == mask.shape else values


def assert_close(actual: Tensor, expected: Tensor, tolerance: float = 1e-5, message: str = "") -> None:
    """Compare finite entries relative to the largest expected one; infinities must stand in the same places."""
    assert actual.shape == expected.shape, f"{message}: {list(actual.shape)} against {list(expected.shape)}"
    finite = expected.isfinite()
    assert torch.equal(actual.isfinite(), finite), f"{message}: infinities or nan differ"
    if finite.any():
        scale = expected[finite].abs().max().clamp(min=1e-6)
        worst = ((actual.to(expected.dtype) - expected)[finite].abs().max() / scale).item()
        assert worst <= tolerance, f"{message}: relative difference {worst:.2e} exceeds {tolerance:.0e}"


def assert_all_close(actual: Any, expected: Any, **tolerance: float) -> None:
    """Compare lists of tensors of which some may be None, in the precision of the expected ones."""
    for one, other in zip(actual, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one.to(other.dtype), other, **tolerance)


class Watch(TorchDispatchMode):
    """A mode that sees each operation and changes nothing."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))
