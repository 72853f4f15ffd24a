"""Nothing here may complain, neither by a warning nor in transformers' log."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


class Complaints(logging.Handler):
    """Keeps what is logged as a warning or worse."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@pytest.fixture(autouse=True)
def no_complaints() -> Iterator[None]:
    """Fail a test during which transformers logged a warning."""
    handler, logger = Complaints(), logging.getLogger("transformers")
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)
    assert handler.messages == []
