"""Does a model give on a device, with any backend and format, what the written-out backend gives on the CPU?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import product

import torch
from torch import Tensor, nn

from benchmarks.cases import Case, Shape
from benchmarks.measure import reason
from benchmarks.peers import ours
from encoders_shared.model import Trunk

TOLERANCES = {  # of states and of gradients, as a share of the length of all of them
    torch.float32: (1e-4, 1e-4),
    torch.bfloat16: (3e-2, 1.5e-1),  # twice what the written-out backend is off on the CPU
}


def check(
    case: Case, shape: Shape, backends: Sequence[str], device: torch.device
) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Compare a family on each backend, padded and packed, in each format.

    Yields:
        Backend, packed or not, format, difference of states and of gradients, verdict; and whether they agree.
    """
    reference = spread(ours(case, attn_implementation="eager"))
    batch = shape.batch(vocab_size=78)
    expected = states_and_gradients(reference, batch, packed=False)
    reference.zero_grad(set_to_none=True)
    for backend, packed, dtype in product(backends, (False, True), TOLERANCES):
        names = (backend, "packed" if packed else "padded", str(dtype).removeprefix("torch."))
        try:
            model = deepcopy(reference)
            assert isinstance(model, Trunk)
            model.set_attn_implementation(backend)
            nn.Module.to(model, device, dtype)
            moved = {name: values.to(device) for name, values in batch.items()}
            found = states_and_gradients(model, moved, packed=packed)
        except Exception as error:
            yield (*names, "", "", reason(error)), False
            continue
        apart = [difference(*pair) for pair in zip(found, expected, strict=True)]
        agrees = all(one <= most for one, most in zip(apart, TOLERANCES[dtype], strict=True))
        yield (*names, *(f"{one:.1e}" for one in apart), "agrees" if agrees else "departs"), agrees


def spread(model: nn.Module) -> nn.Module:
    """Give every weight, norms and biases too, a value of its own, so that a mistake shows."""
    with torch.no_grad():
        for parameter in model.parameters():
            size = 0.2 if parameter.dim() == 1 else parameter[0].numel() ** -0.5
            parameter.add_(size * torch.randn_like(parameter))
    return model


def states_and_gradients(model: nn.Module, batch: dict[str, Tensor], *, packed: bool) -> tuple[Tensor, Tensor]:
    """Return the states of real tokens and the gradients of their weighted sum, each as one float64 row on the CPU."""
    assert isinstance(model, Trunk)
    model.eval()
    model.packing = packed
    states = model(**batch).last_hidden_state[batch["attention_mask"].bool()]
    weights = torch.linspace(-1, 1, states.numel()).reshape(states.shape).to(states)
    (states * weights).sum().backward()
    gradients = [p.grad.flatten() if p.grad is not None else p.new_zeros(p.numel()) for p in model.parameters()]
    return states.detach().flatten().double().cpu(), torch.cat(gradients).double().cpu()


def difference(found: Tensor, expected: Tensor) -> float:
    """Return the length of the difference as a share of the length of what is expected; nan agrees with nothing."""
    return ((found - expected).norm() / expected.norm()).item()
