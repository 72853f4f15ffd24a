"""Run transformers' common tests on our classes: `python -m tests.transformers_suite.run [pytest options]`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.transformers_suite.fetch import Unavailable, fetch

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# The same tests are run, and the same are skipped, whatever the machine has.
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_TEST_DEVICE": "cpu", "RUN_SLOW": "0"}


def main(arguments: list[str]) -> int:
    """Fetch and run the tests; return the exit status."""
    try:
        folder = fetch()
    except Unavailable as reason:
        print(f"transformers' test suite was skipped: {reason}.")
        return 0
    os.environ.update(ENVIRONMENT)
    settings = {
        "addopts": "",
        "pythonpath": f"{ROOT} {ROOT / 'shared'} {folder}",
        "verbosity_subtests": "0",
    }
    options = [option for name, value in settings.items() for option in ("-o", f"{name}={value}")]
    options += ["-p", "tests.transformers_suite.plugin", "-p", "no:cacheprovider"]
    options += ["-W", "ignore", "--import-mode=importlib"]
    tests = [str(HERE / name) for name in ("suite.py", "tokenizer.py", "own.py")]
    return pytest.main([*tests, *options, *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
