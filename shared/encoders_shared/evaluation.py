"""Running a model for its results alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch to evaluation mode and no gradients; afterwards every module is in the mode it was in.

    Modules may differ in that: a frozen part often stays in evaluation mode while the rest is trained.
    """
    in_training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module in in_training:
            module.training = True
