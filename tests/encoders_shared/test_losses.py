"""Losses against formulas in numpy, float64, and the rules about labels."""

import numpy as np
import pytest
import torch

from encoders_shared.losses import class_loss, sequence_loss, span_loss

MULTI, REGRESSION = "multi_label_classification", "regression"
HALF = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)


def mean(values):
    return np.mean(values) if np.size(values) else 0.0


def cross_entropy(logits, labels):
    logits = logits.detach().double().numpy().reshape(-1, logits.shape[-1])
    labels = labels.flatten().numpy()
    return mean([np.logaddexp.reduce(row) - row[k] for row, k in zip(logits, labels, strict=True) if k != -100])


def binary_cross_entropy(logits, labels):
    x, y = logits.detach().double().numpy(), labels.double().numpy().reshape(logits.shape)
    return mean((np.logaddexp(0, x) - x * y)[y != -100])


def squared_error(logits, labels):
    x, y = logits.detach().double().numpy(), labels.double().numpy().reshape(logits.shape)
    return mean(((x - y) ** 2)[y != -100])


def answer(logits, positions):
    inside = torch.where((positions >= 0) & (positions < logits.shape[1]), positions, -100)
    return cross_entropy(logits, inside)


def random(*shape, dtype=torch.float64):
    generator = torch.Generator().manual_seed(len(shape))
    return (3 * torch.randn(*shape, generator=generator, dtype=torch.float64)).to(dtype).requires_grad_()


def whole(*labels, dtype=torch.int64):
    return torch.tensor(labels, dtype=dtype)


CASES = {  # logits, labels, problem type, formula
    "classes": ((4, 3), whole(2, 0, -100, 1), None, cross_entropy),
    "classes in a column": ((4, 3), whole(2, 0, -100, 1)[:, None], None, cross_entropy),
    "as many rows as classes": ((3, 3), whole(2, -100, 1), None, cross_entropy),
    "several labels": ((2, 3), torch.tensor([[0.0, 1.0, 1.0], [-100.0, 0.25, 0.0]]), None, binary_cross_entropy),
    "several whole labels": ((2, 3), whole([0, 1, 1], [-100, 1, 0]), None, binary_cross_entropy),
    "several labels, one output": ((3, 1), whole(0, 1, -100), MULTI, binary_cross_entropy),
    "several labels as bool": ((2, 3), torch.tensor([[True, False, True]] * 2), None, binary_cross_entropy),
    "one number": ((3, 1), torch.tensor([0.5, -100.0, 2.0]), None, squared_error),
    "one number in a column": ((3, 1), torch.tensor([[0.5], [-100.0], [2.0]]), None, squared_error),
    "one whole number": ((3, 1), whole(5, -100, 2), None, squared_error),
    "one small whole number": ((3, 1), whole(5, 156, 2, dtype=torch.uint8), None, squared_error),
    "several numbers": ((2, 3), torch.tensor([[0.5, 1, -100], [2, 3, 4]]), REGRESSION, squared_error),
    "several whole numbers": ((2, 3), whole([5, -100, 2], [1, 2, 3]), REGRESSION, squared_error),
}


@pytest.mark.parametrize("case", CASES)
def test_sequence_loss(case):
    shape, labels, kind, formula = CASES[case]
    logits, before = random(*shape), labels.clone()
    assert sequence_loss(logits, labels, kind).item() == pytest.approx(formula(logits, labels), rel=1e-12)
    assert torch.equal(labels, before)


@pytest.mark.parametrize("case", [name for name, case in CASES.items() if (case[1].double() == -100).any()])
def test_sequence_loss_without_active_labels(case):
    shape, labels, kind, _ = CASES[case]
    logits = random(*shape)
    loss = sequence_loss(logits, torch.full_like(labels, -100), kind)
    assert loss.item() == 0
    assert (torch.autograd.grad(loss, logits)[0] == 0).all()


@HALF
@pytest.mark.parametrize("case", CASES)
def test_sequence_loss_of_half_precision_logits(case, dtype):
    shape, labels, kind, formula = CASES[case]
    logits = (100 * random(*shape, dtype=dtype)).detach().requires_grad_()  # large: exp and squares would overflow
    loss = sequence_loss(logits, labels, kind)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(formula(logits, labels), rel=1e-5)
    assert torch.isfinite(torch.autograd.grad(loss, logits)[0]).all()


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8], ids=str)
@pytest.mark.parametrize("shape", [(4,), (2, 2)])
def test_class_loss(shape, dtype):
    logits = random(*shape, 200)
    labels = whole(2, 100, 199 if dtype != torch.int8 else 5, 156 if dtype == torch.uint8 else -100, dtype=dtype)
    before = labels.clone()
    loss = class_loss(logits, labels.reshape(shape))
    assert loss.item() == pytest.approx(cross_entropy(logits, labels.long()), rel=1e-12)
    assert torch.equal(labels, before)
    assert torch.autograd.gradcheck(lambda x: class_loss(x, labels.reshape(shape)), logits)


@pytest.mark.parametrize("shape", [(0,), (4,), (2, 3)])
def test_class_loss_without_active_labels(shape):
    logits = random(*shape, 3)
    loss = class_loss(logits, torch.full(shape, -100))
    assert loss.item() == 0
    assert (torch.autograd.grad(loss, logits)[0] == 0).all()


@HALF
def test_reserved_ids_with_a_score_of_minus_infinity(dtype):
    logits = random(2, 4, 6, dtype=dtype)
    masked = logits.masked_fill(torch.arange(6) < 2, float("-inf"))
    labels = whole([2, 5, -100, 3], [-100] * 4)
    loss = class_loss(masked, labels, first_class=2)
    expected = cross_entropy(logits[..., 2:], torch.where(labels == -100, -100, labels - 2))
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert torch.isfinite(gradient).all()
    assert (gradient[..., :2] == 0).all()
    assert class_loss(masked, torch.full_like(labels, -100), first_class=2).item() == 0


@pytest.mark.parametrize("column", [False, True])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8], ids=str)
def test_span_loss(dtype, column):
    start_logits, end_logits = random(5, 6), random(5, 6) * 2
    starts, ends = whole(0, 5, 6, -1, 99, dtype=dtype), whole(3, -7, 5, -100, 1, dtype=dtype)
    expected = (answer(start_logits, starts.long()) + answer(end_logits, ends.long())) / 2
    given = (starts[:, None], ends[:, None]) if column else (starts, ends)
    before = [positions.clone() for positions in given]
    assert span_loss(start_logits, end_logits, *given).item() == pytest.approx(expected, rel=1e-12)
    assert all(torch.equal(a, b) for a, b in zip(given, before, strict=True))


def test_span_loss_of_unsigned_positions():
    logits, positions = random(3, 4), whole(1, 200, 3, dtype=torch.uint8)
    assert span_loss(logits, logits, positions, positions).item() == pytest.approx(answer(logits, positions.long()))


def test_span_loss_without_an_answer():
    logits = random(2, 4)
    loss = span_loss(logits, logits, whole(-1, 4), whole(99, -100))
    assert loss.item() == 0
    assert (torch.autograd.grad(loss, logits)[0] == 0).all()


@HALF
def test_span_loss_of_half_precision_logits(dtype):
    logits = (100 * random(2, 4, dtype=dtype)).detach()
    loss = span_loss(logits, logits, whole(1, 3), whole(1, 3))
    assert loss.item() == pytest.approx(answer(logits, whole(1, 3)), rel=1e-5)


@pytest.mark.parametrize(
    ("loss", "labels"),
    [
        (lambda logits, labels: sequence_loss(logits, labels, None), whole(2, 0, -100, 1)),
        (lambda logits, labels: sequence_loss(logits, labels, REGRESSION), torch.zeros(4, 3)),
        (class_loss, whole(2, 0, -100, 1)),
        (lambda logits, labels: span_loss(logits, logits, labels, labels), whole(2, -5, 9, 1)),
    ],
    ids=["classes", "regression", "class_loss", "span"],
)
def test_compiled(loss, labels):
    logits = random(4, 3, dtype=torch.float32)
    compiled = torch.compile(loss, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(logits, labels), loss(logits, labels))
