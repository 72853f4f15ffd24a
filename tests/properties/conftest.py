"""How many inputs a property is tried on: a few, always the same; ten times as many with HYPOTHESIS_PROFILE=full."""

import os

import pytest
from hypothesis import Phase, settings

from encoders_shared.attention import tiling

PHASES = [phase for phase in Phase if phase is not Phase.explain]  # explaining a failure takes a minute

settings.register_profile("ci", deadline=None, derandomize=True, max_examples=6, phases=PHASES)
settings.register_profile("full", settings.get_profile("ci"), max_examples=60)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="module", autouse=True)
def small_tiles():
    """Tiles so small that the short sequences of the properties are cut, by heads and by queries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiling, "TILE", 12)
        patch.setattr(tiling, "FEWEST_QUERIES", 2)
        yield
