"""The reference implementations: the documents that the families come from.

They lie beside the repository or where ENCODERS_REFERENCE says; without them, tests that need them are skipped.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from pathlib import Path

import pytest

REFERENCE = Path(os.environ.get("ENCODERS_REFERENCE", Path(__file__).parents[4] / "shared" / "reference"))


@pytest.fixture(scope="session")
def reference():
    """The three reference modules by family."""
    if not (REFERENCE / "norbert_reference.py").is_file():
        pytest.skip(f"no reference implementations in {REFERENCE}; set ENCODERS_REFERENCE")
    sys.path.insert(0, str(REFERENCE))
    try:
        with warnings.catch_warnings(action="ignore"):
            names = ("helmbert_reference", "norbert_reference", "distilbert_reference")
            return dict(zip(("helmbert", "norbert", "distilbert"), map(importlib.import_module, names), strict=True))
    finally:
        sys.path.remove(str(REFERENCE))
