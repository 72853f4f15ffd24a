"""Files of small data."""

from pathlib import Path

import pytest

from tests.encoders.experiments.samples import peptide_rows, sentence_rows, write_csv


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    """A classification with named splits."""
    return write_csv(tmp_path / "sentences.csv", sentence_rows())


@pytest.fixture
def peptides(tmp_path: Path) -> Path:
    """A regression over HELM strings."""
    return write_csv(tmp_path / "peptides.csv", peptide_rows())
