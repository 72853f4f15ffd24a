"""How many inputs a fuzz test tries: few, always the same, or many with HYPOTHESIS_PROFILE=full (`make test-full`)."""

import os
from datetime import timedelta

from hypothesis import HealthCheck, Phase, settings

FULL = os.environ.get("HYPOTHESIS_PROFILE") == "full"


def inputs(few: int, many: int) -> settings:
    """Settings for a test; an input that takes more than ten seconds fails it."""
    return settings(
        max_examples=many if FULL else few,
        deadline=timedelta(seconds=10),
        derandomize=not FULL,
        database=None,
        phases=[phase for phase in Phase if phase is not Phase.explain],  # explaining a failure takes a minute
        suppress_health_check=list(HealthCheck),
    )
