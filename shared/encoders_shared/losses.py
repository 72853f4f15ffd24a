"""Losses of the task heads.

One rule for all: a label of -100 is ignored, a batch in which nothing is labelled has a loss of zero with zero
gradients, and no label is ever changed or silently broadcast. Losses are computed in at least float32.
"""

from __future__ import annotations

from math import inf

import torch
import torch.nn.functional as F
from torch import Tensor

from encoders_shared.errors import ConfigurationError, can_read, check_tensor, listed, suggestion

IGNORED = -100
PROBLEM_TYPES = ("regression", "single_label_classification", "multi_label_classification")


def check_problem_type(problem_type: str | None) -> None:
    """Refuse a `problem_type` that no loss is written for.

    Raises:
        ConfigurationError: it is neither None nor one of `PROBLEM_TYPES`.
    """
    if problem_type is not None and problem_type not in PROBLEM_TYPES:
        raise ConfigurationError(
            f"problem_type {problem_type!r} is not known; allowed: {listed(PROBLEM_TYPES)}, or None to decide by the "
            f"labels.{suggestion(problem_type, PROBLEM_TYPES)}"
        )


def resolve_problem_type(problem_type: str | None, num_labels: int, labels: Tensor) -> str:
    """Decide what kind of problem these labels pose; nothing is remembered for the next call.

    Args:
        problem_type: the configured one, which wins, or None.
        num_labels: number of outputs.
        labels: one output means regression; floating-point labels, or one label for each output, mean several labels
            at once; else each row has one class.
    """
    check_problem_type(problem_type)
    if problem_type is not None:
        return problem_type
    if num_labels == 1:
        return "regression"
    if labels.is_floating_point() or (labels.dim() == 2 and labels.shape[1] == num_labels):
        return "multi_label_classification"
    return "single_label_classification"


def sequence_loss(logits: Tensor, labels: Tensor, problem_type: str | None) -> Tensor:
    """Loss of one prediction for each sequence.

    Args:
        logits: [batch, outputs].
        labels: class numbers [batch]; or one number for each output [batch, outputs]; with a single output [batch] and
            [batch, 1] are the same. Integers are cast where numbers are due.
        problem_type: see `resolve_problem_type`.

    Raises:
        TypeError: the labels are not a tensor.
        ValueError: the labels have another shape, name a class that does not exist, or are not numbers (several labels
            at once: numbers from 0 to 1).
    """
    check_tensor("labels", labels)
    kind = resolve_problem_type(problem_type, logits.shape[-1], labels)
    if kind == "single_label_classification":
        return class_loss(logits, _flat(labels, logits.shape[0], kind))
    targets = _one_for_each_output(labels, logits, kind).to(_working_dtype(logits))
    active = targets != IGNORED
    _check_targets(targets[active] if can_read(targets) else None, kind)
    safe = targets.masked_fill(~active, 0)
    loss_of = F.mse_loss if kind == "regression" else F.binary_cross_entropy_with_logits
    losses = loss_of(logits.to(safe.dtype), safe, reduction="none")
    return _mean(losses.masked_fill(~active, 0.0).sum(), active.sum())


def class_loss(logits: Tensor, labels: Tensor, first_class: int = 0) -> Tensor:
    """Cross-entropy over the last axis of the logits, averaged over the labels that count.

    Args:
        logits: [..., classes].
        labels: class numbers [...].
        first_class: the lowest number that may be a label; those below it are never predicted.

    Raises:
        TypeError: the labels are not a tensor.
        ValueError: the labels have another shape, are not integers, or one lies outside first_class .. classes - 1.
    """
    check_tensor("labels", labels)
    check_label_shape(labels, logits)
    _require_integers(labels)
    classes = logits.shape[-1]
    labels = labels.reshape(-1).long()
    active = labels != IGNORED
    if can_read(labels):
        wrong = labels[active & ((labels < first_class) | (labels >= classes))]
        if wrong.numel():
            raise ValueError(_wrong_class(int(wrong[0]), first_class, classes))
    total = F.cross_entropy(
        logits.reshape(-1, classes).to(_working_dtype(logits)), labels, ignore_index=IGNORED, reduction="sum"
    )
    return _mean(total, active.sum())


def check_label_shape(labels: Tensor, predictions: Tensor) -> None:
    """Refuse labels that are not one for each prediction: [...] for [..., outputs].

    Raises:
        ValueError: the labels have another shape.
    """
    if labels.shape != predictions.shape[:-1]:
        raise ValueError(
            f"labels have shape {list(labels.shape)}; expected {list(predictions.shape[:-1])}, one for each prediction."
        )


def span_loss(start_logits: Tensor, end_logits: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
    """Mean of the losses of the first and the last token of an answer.

    Positions outside the sequence, negative ones too, are answers that are not there: they are ignored.

    Args:
        start_logits: [batch, length].
        end_logits: [batch, length].
        starts: position of the answer's first token [batch] or [batch, 1].
        ends: position of its last token, likewise.

    Raises:
        TypeError: the positions are not a tensor.
        ValueError: they have another shape, or are not integers.
    """
    check_tensor("start_positions", starts)
    check_tensor("end_positions", ends)
    return (_position_loss(start_logits, starts) + _position_loss(end_logits, ends)) / 2


def _position_loss(logits: Tensor, positions: Tensor) -> Tensor:
    _require_integers(positions)
    positions = _flat(positions, logits.shape[0], "question answering").long()
    inside = (positions >= 0) & (positions < logits.shape[1])
    return class_loss(logits, positions.masked_fill(~inside, IGNORED))


def _require_integers(labels: Tensor) -> None:
    if labels.is_floating_point() or labels.is_complex():
        raise ValueError(f"labels that name a class or a position must be integers, got {labels.dtype}.")


def _flat(labels: Tensor, batch: int, kind: str) -> Tensor:
    if labels.shape not in ((batch,), (batch, 1)):
        raise ValueError(f"labels for {kind} have shape {list(labels.shape)}; expected [{batch}], one for each row.")
    return labels.reshape(batch)


def _one_for_each_output(labels: Tensor, logits: Tensor, kind: str) -> Tensor:
    if labels.shape == logits.shape or (logits.shape[1] == 1 and labels.shape == logits.shape[:1]):
        return labels.reshape(logits.shape)
    raise ValueError(
        f"labels for {kind} have shape {list(labels.shape)}; expected {list(logits.shape)}, one for each output."
    )


def _check_targets(targets: Tensor | None, kind: str) -> None:
    """Refuse targets that are no numbers, and chances outside 0 .. 1; None can't be read."""
    if targets is None:
        return
    least, most = (-inf, inf) if kind == "regression" else (0, 1)
    wrong = targets[~((targets >= least) & (targets <= most) & targets.isfinite())]
    if wrong.numel():
        allowed = "finite numbers" if kind == "regression" else "0 .. 1"
        raise ValueError(f"labels for {kind} hold {wrong[0].item()}; allowed: {allowed}, or {IGNORED} to ignore.")


def _working_dtype(logits: Tensor) -> torch.dtype:
    return torch.promote_types(logits.dtype, torch.float32)


def _mean(total: Tensor, count: Tensor) -> Tensor:
    return total / count.clamp(min=1)


def _wrong_class(label: int, first_class: int, classes: int) -> str:
    message = f"label {label} is out of range; allowed: {first_class} .. {classes - 1}, or {IGNORED} to ignore."
    if 0 <= label < first_class:
        message += f" The ids 0 .. {first_class - 1} are reserved (num_reserved_ids) and never predicted."
    return message
