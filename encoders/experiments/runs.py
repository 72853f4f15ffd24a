"""The finished runs of a comparison, one small file each, so that an interrupted comparison can go on."""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from encoders.experiments.errors import ExperimentError

Scores = dict[str, dict[str, float]]
"""By split and metric."""


@dataclass(frozen=True)
class Run:
    """One backbone, trained with one seed.

    Attributes:
        backbone: its name.
        seed: the seed.
        scores: by split and metric.
        seconds: how long training and scoring took.
        sha256: a fingerprint of what was trained, or for a baseline of the data.
    """

    backbone: str
    seed: int
    scores: Scores
    seconds: float
    sha256: str


class RunFolder:
    """Keeps runs in a folder, all of the same comparison.

    Args:
        folder: where they are kept; made when needed. None keeps nothing.
        circumstances: what holds for every run of the comparison, as JSON.
    """

    def __init__(self, folder: Path | None, circumstances: Mapping[str, Any]):
        self.folder = folder
        self.circumstances = json.loads(json.dumps(circumstances))

    def check(self) -> None:
        """Refuse a folder that cannot be written, or that keeps runs of another comparison.

        Raises:
            ExperimentError: names the folder or file, and the first thing that differs.
        """
        if self.folder is None:
            return
        for path in sorted(self.folder.glob("*.json")):
            found, _ = _read(path)
            for name, wanted in self.circumstances.items():
                if found.get(name) != wanted:
                    raise ExperimentError(
                        f"{path} is of a comparison with other {name}: {found.get(name)} there, {wanted} here; "
                        f"give another --output, or delete {self.folder}"
                    )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise ExperimentError(f"cannot write to {self.folder}: {error.strerror}") from error

    def find(self, backbone: str, seed: int, sha256: str) -> Run | None:
        """Return a finished run, or None if there is none.

        Raises:
            ExperimentError: there is one, but of other weights or another tokenizer.
        """
        if self.folder is None or not (path := self._path(backbone, seed)).exists():
            return None
        _, run = _read(path)
        if run.sha256 != sha256:
            raise ExperimentError(
                f"{path} is of other weights or another tokenizer of {backbone}; "
                f"give another --output, or delete that file"
            )
        return run

    def keep(self, run: Run) -> None:
        """Write a finished run."""
        if self.folder is not None:
            contents = {"circumstances": self.circumstances, "run": asdict(run)}
            write_whole(self._path(run.backbone, run.seed), json.dumps(contents, indent=2).encode())

    def _path(self, backbone: str, seed: int) -> Path:
        assert self.folder is not None
        readable = re.sub(r"[^\w.-]+", "-", backbone).strip("-.")
        if readable != backbone:
            readable += f"-{hashlib.sha256(backbone.encode()).hexdigest()[:8]}"
        return self.folder / f"{readable}-seed{seed}.json"


def _read(path: Path) -> tuple[dict[str, Any], Run]:
    try:
        contents = json.loads(path.read_bytes())
        return dict(contents["circumstances"]), Run(**contents["run"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ExperimentError(f"{path} is no finished run; give another --output, or delete that file") from error


def write_whole(path: Path, contents: bytes) -> None:
    """Write a file so that whoever looks sees the old one or the whole new one."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        unfinished.write_bytes(contents)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
