"""A GPU that isn't one: tensors that say they are on "cuda" and are computed on the CPU.

As on a real one, an operation refuses tensors of both devices, and what is made without a device stays on the CPU. It
shows where the code forgets the device. Of a GPU's kernels it says nothing, and nested tensors, flex, compiled code and
`torch.inference_mode` are beyond it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

GPU = torch.device("cuda")
STAND_IN = torch.device("meta")  # what torch's own code sees in its place, since it has no such device
MOVES = ("_to_copy", "copy_")  # the operations that may take tensors of both devices


class OnGPU(Tensor):
    """A tensor on the simulated GPU."""

    held: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # pyright: ignore[reportAssignmentType]

    @staticmethod
    def __new__(cls, held: Tensor):
        self = Tensor._make_wrapper_subclass(  # pyright: ignore[reportAttributeAccessIssue]
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=STAND_IN,
            requires_grad=held.requires_grad,
        )
        self.held = held
        return self

    device = property(lambda self: GPU)  # pyright: ignore[reportAssignmentType]
    is_cuda = property(lambda self: True)  # pyright: ignore[reportAssignmentType]
    is_meta = property(lambda self: False)  # pyright: ignore[reportAssignmentType]

    def tolist(self) -> Any:
        return self.held.tolist()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})


def compute(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run an operation on the CPU and put its results where they belong."""
    name = func.__name__.split(".")[0]
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    there = [tensor for tensor in tensors if isinstance(tensor, OnGPU)]
    strangers = [tensor for tensor in tensors if tensor.dim() and not isinstance(tensor, OnGPU)]
    if there and strangers and name not in MOVES:
        raise RuntimeError(f"expected all tensors to be on the same device, but {func} got cuda and cpu.")
    wanted = kwargs.get("device")
    on_gpu = bool(there) if wanted is None else torch.device(wanted) in (GPU, STAND_IN)
    args, kwargs = tree_map_only(OnGPU, lambda tensor: tensor.held, (args, kwargs))
    result = func(*args, **(kwargs if wanted is None else {**kwargs, "device": torch.device("cpu")}))
    known = {id(tensor.held): tensor for tensor in there}  # an operation in place returns what it was given

    def placed(tensor: Tensor) -> Tensor:
        if id(tensor) in known:
            return known[id(tensor)]
        return OnGPU(tensor) if on_gpu and not isinstance(tensor, OnGPU) else tensor

    return tree_map_only(Tensor, placed, result)


class Operations(TorchDispatchMode):
    """Also what takes no tensor, such as `torch.arange`, may be made on the simulated GPU."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})


class Names(TorchFunctionMode):
    """Hides the name of the GPU from torch's own code, which would look for its driver."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.tensor and _is_gpu(kwargs.get("device")):  # made on the CPU and moved, below what can be seen
            return OnGPU(func(*args, **{**kwargs, "device": "cpu"}))
        args = [STAND_IN if _is_gpu(value) else value for value in args]
        return func(*args, **{name: STAND_IN if _is_gpu(value) else value for name, value in kwargs.items()})


def _is_gpu(value: object) -> bool:
    return isinstance(value, str | torch.device) and str(value) == "cuda"


@contextmanager
def simulated_gpu() -> Iterator[torch.device]:
    """Give a device that tensors and models can be moved to. A parameter that moves is a new one there."""
    generator = torch.Generator  # of random numbers; it knows no modes
    with (
        Names(),
        Operations(),
        patch("torch.Generator", lambda device=None: generator()),
        patch("torch.cuda._lazy_init", lambda: None),
        patch("torch.__future__.get_overwrite_module_params_on_conversion", lambda: True),
    ):
        yield GPU
