"""Which labels are refused, and how the kind of a problem is decided."""

import pytest
import torch

from encoders_shared.errors import ConfigurationError
from encoders_shared.losses import check_problem_type, class_loss, resolve_problem_type, sequence_loss, span_loss

SINGLE, MULTI, REGRESSION = "single_label_classification", "multi_label_classification", "regression"


@pytest.mark.parametrize(("label", "first"), [(3, 0), (-1, 0), (-99, 0), (1000, 0), (3, 2), (-1, 2)])
def test_label_out_of_range(label, first):
    with pytest.raises(ValueError, match=rf"label {label} is out of range; allowed: {first} \.\. 2, or -100 to ignore"):
        class_loss(torch.zeros(2, 3), torch.tensor([2, label]), first_class=first)


@pytest.mark.parametrize("label", [0, 1])
def test_a_reserved_label_is_named(label):
    message = rf"label {label} is out of range; allowed: 2 \.\. 5.* ids 0 \.\. 1 are reserved \(num_reserved_ids\)"
    with pytest.raises(ValueError, match=message):
        class_loss(torch.zeros(1, 6), torch.tensor([label]), first_class=2)


@pytest.mark.parametrize("loss", [class_loss, lambda logits, labels: sequence_loss(logits, labels, SINGLE)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_floating_point_classes(loss, dtype):
    with pytest.raises(ValueError, match=f"must be integers, got {dtype}"):
        loss(torch.zeros(2, 3), torch.tensor([0, 1], dtype=dtype))


@pytest.mark.parametrize(
    "positions", [(torch.zeros(2), torch.zeros(2).long()), (torch.zeros(2).long(), torch.zeros(2))]
)
def test_floating_point_positions(positions):
    with pytest.raises(ValueError, match=r"must be integers, got torch\.float32"):
        span_loss(torch.zeros(2, 4), torch.zeros(2, 4), *positions)


@pytest.mark.parametrize(
    ("shape", "kind", "labels"),
    [
        ((4, 1), None, (4, 2)),
        ((4, 1), None, (1, 4)),
        ((4, 1), None, (1,)),
        ((4, 1), None, ()),
        ((4, 1), None, (3,)),
        ((4, 3), REGRESSION, (4,)),
        ((4, 3), REGRESSION, (4, 1)),
        ((4, 3), REGRESSION, (3,)),
        ((3, 3), REGRESSION, (3,)),
        ((4, 3), REGRESSION, (1, 3)),
        ((4, 3), REGRESSION, (4, 3, 1)),
        ((4, 3), MULTI, (4,)),
        ((4, 3), MULTI, (4, 1)),
        ((4, 3), SINGLE, (4, 3)),
        ((4, 3), SINGLE, (4, 2)),
        ((4, 3), SINGLE, (1, 4)),
        ((4, 3), SINGLE, (3,)),
    ],
)
def test_labels_are_never_broadcast(shape, kind, labels):
    found = str(list(labels)).replace("[", r"\[")
    with pytest.raises(ValueError, match=rf"labels for {kind or REGRESSION} have shape {found}; expected \[{shape[0]}"):
        sequence_loss(torch.zeros(*shape), torch.zeros(labels).long(), kind)


@pytest.mark.parametrize("shape", [(2, 4, 1), (8,), (2, 3), (2, 1), (4, 2)])
def test_labels_of_another_shape_than_the_predictions(shape):
    with pytest.raises(ValueError, match=r"labels have shape .*; expected \[2, 4\], one for each prediction"):
        class_loss(torch.zeros(2, 4, 3), torch.zeros(shape).long())


@pytest.mark.parametrize(
    ("configured", "outputs", "labels", "kind"),
    [
        (None, 1, torch.zeros(2), REGRESSION),
        (None, 1, torch.zeros(2, 1).long(), REGRESSION),
        (None, 3, torch.zeros(2).long(), SINGLE),
        (None, 3, torch.zeros(2, 1).long(), SINGLE),
        (None, 3, torch.zeros(2, 3), MULTI),
        (None, 3, torch.zeros(2, 3).long(), MULTI),
        (REGRESSION, 3, torch.zeros(2, 3).long(), REGRESSION),
        (MULTI, 1, torch.zeros(2), MULTI),
        (SINGLE, 3, torch.zeros(2), SINGLE),
    ],
)
def test_problem_type_is_decided_anew_each_time(configured, outputs, labels, kind):
    for _ in range(2):
        assert resolve_problem_type(configured, outputs, labels) == kind
        resolve_problem_type(None, 3, torch.zeros(2, 3))  # of another kind; must leave no trace


@pytest.mark.parametrize(
    "check", [check_problem_type, lambda kind: sequence_loss(torch.zeros(2, 1), torch.zeros(2), kind)]
)
def test_unknown_problem_type(check):
    with pytest.raises(ConfigurationError, match=r"problem_type 'regresion' .* None to decide.* mean 'regression'"):
        check("regresion")
    with pytest.raises(ConfigurationError, match=f"problem_type 'xyz' is not known; allowed: {REGRESSION}, {SINGLE}"):
        check("xyz")


@pytest.mark.parametrize("shape", [(2,), (3, 2), (1, 3), ()])
def test_positions_are_never_broadcast(shape):
    with pytest.raises(ValueError, match=r"labels for question answering have shape .*; expected \[3\]"):
        span_loss(torch.zeros(3, 4), torch.zeros(3, 4), torch.zeros(3).long(), torch.zeros(shape).long())
