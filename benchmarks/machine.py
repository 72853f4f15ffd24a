"""What figures depend on besides the code; nothing that names a person or a computer."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

PACKAGES = ("encoder-zoo", "torch", "transformers", "numpy", "onnxruntime")


def machine() -> dict[str, Any]:
    """Return the processor and the versions of the libraries."""
    return {
        "processor": processor_name(),
        "processors": os.cpu_count(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "system": platform.system(),
        "python": platform.python_version(),
        **{package: installed for package in PACKAGES if (installed := installed_version(package))},
    }


def processor_name() -> str:
    """Return what the processor calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def installed_version(package: str) -> str | None:
    """Return the version of a package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
