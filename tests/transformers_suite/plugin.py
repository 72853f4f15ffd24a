"""Fail the run for a skip that `skips.toml` does not list, and for a listed skip that no longer happens."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("skips.toml")


@dataclass(frozen=True)
class Skip:
    """A skip that is allowed: of which test, for which reason of transformers' (a regular expression), and why."""

    test: str
    says: str
    why: str


def read_list() -> Iterator[Skip]:
    """Read the list; a group without families is meant for all of them."""
    content = tomllib.loads(LIST.read_text())
    for group in content["skip"]:
        for family in group.get("families", content["families"]):
            for test in group["tests"]:
                yield Skip(f"{family}Test::{test}", group["says"], group["why"])


class SkipCheck:
    """Compares the skips of a run with the list."""

    def __init__(self, complete: bool):
        self.complete = complete
        self.count = 0
        self.unlisted: list[str] = []
        self.missing = set(read_list())
        self.allowed: dict[str, list[Skip]] = {}
        for skip in sorted(self.missing, key=repr):
            self.allowed.setdefault(skip.test, []).append(skip)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Look a skipped test, or a skipped part of one, up in the list."""
        if not report.skipped:
            return
        self.count += 1
        test = report.nodeid.partition("::")[2]
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = reason.removeprefix("Skipped: ")
        found = [skip for skip in self.allowed.get(test, ()) if re.fullmatch(skip.says, reason)]
        self.missing.difference_update(found)
        if not found:
            self.unlisted.append(f"{test}: {reason}")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run if it departs from the list; what did not happen counts only if everything was run."""
        if not self.complete:
            self.missing.clear()
        if session.exitstatus == pytest.ExitCode.OK and (self.unlisted or self.missing):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what departs from the list."""
        gone = [f"{skip.test}: {skip.why}" for skip in self.missing]
        for title, lines in (("not listed", self.unlisted), ("listed, but did not happen", gone)):
            if lines:
                terminalreporter.section(f"{len(lines)} skips {title} ({LIST.name})", red=True)
                for line in sorted(lines):
                    terminalreporter.write_line(line)
        if self.count and not (self.unlisted or gone):
            terminalreporter.write_line(f"{self.count} skips of tests or of parts of them, all listed in {LIST.name}")


def pytest_configure(config: pytest.Config) -> None:
    """Check in the process that hears of all tests, not in pytest-xdist's workers."""
    if not hasattr(config, "workerinput"):
        option = config.option
        complete = not (option.keyword or option.markexpr or option.maxfail or option.collectonly)
        config.pluginmanager.register(SkipCheck(complete))
