"""The folder that a checkpoint is in, local or fetched from a hub."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from encoders.checkpoints.hub import fetch
from encoders_shared.checkpoints import CheckpointError
from encoders_shared.errors import listed


@dataclass(frozen=True)
class CheckpointFolder:
    """Files of a checkpoint; all reading goes through `file`, which keeps inside the folder.

    Attributes:
        source: the folder or hub id, as the caller gave it.
        path: where the files are.
    """

    source: str
    path: Path

    def file(self, name: str) -> Path | None:
        """Return the path of a file, or None if there is none.

        Raises:
            CheckpointError: it is a link to somewhere outside. Links to the blobs of a hub's cache are fine.
        """
        path = self.path / name
        if not os.path.isfile(path):  # unlike Path.is_file, it takes names of any length
            return None
        home = self.path.resolve()
        allowed = [home, home.parent.parent / "blobs"] if home.parent.name == "snapshots" else [home]
        if not any(path.resolve().is_relative_to(place) for place in allowed):
            raise CheckpointError(
                f"{path} is a link to {path.resolve()}, outside its folder; it isn't followed. Copy the file into the "
                "folder if it belongs there."
            )
        return path

    def json(self, name: str) -> dict[str, Any] | None:
        """Return the object in a JSON file, or None if there is no such file.

        Raises:
            CheckpointError: the file holds something else.
        """
        path = self.file(name)
        if path is None:
            return None
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise CheckpointError(f"{path} is not readable as JSON: {error}.") from error
        if not isinstance(content, dict):
            raise CheckpointError(f"{path} holds a {type(content).__name__}; a JSON object is needed.")
        return content

    def names(self) -> list[str]:
        """Return the names of all files directly in the folder."""
        return sorted(path.name for path in self.path.iterdir())

    @cached_property
    def config(self) -> dict[str, Any]:
        """What config.json says.

        Raises:
            CheckpointError: there is no such file.
        """
        config = self.json("config.json")
        if config is None:
            found = f"it holds {listed(self.names()[:8])}" if self.names() else "it is empty"
            raise CheckpointError(
                f"{self.path} has no config.json ({found}), so it can't be told what its weights mean. Pass the folder "
                "that `save_pretrained` wrote, or that a hub's repository was copied to."
            )
        return config

    @property
    def name(self) -> str:
        """What the checkpoint is called, here and where it comes from; for layouts that only the name tells apart."""
        origin = self.config.get("_name_or_path")
        here = self.path.resolve() if Path(self.source).exists() else Path(self.source)
        return f"{here.name} {Path(origin).name if isinstance(origin, str) else ''}".strip()

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        """Tokens and their ids, added ones included, as tokenizer.json says; empty if there is no such file."""
        content = self.json("tokenizer.json") or {}
        model, added = content.get("model"), content.get("added_tokens")
        words = model.get("vocab") if isinstance(model, dict) else None
        pairs = words.items() if isinstance(words, dict) else ()
        vocabulary = {word: index for word, index in pairs if isinstance(index, int)}
        for token in added if isinstance(added, list) else ():
            if isinstance(token, dict) and isinstance(token.get("id"), int):
                vocabulary[str(token.get("content"))] = token["id"]
        return vocabulary


def open_folder(
    source: str | os.PathLike[str], *, revision: str | None = None, weights: bool = True
) -> CheckpointFolder:
    """Return the folder of a checkpoint, after fetching it if `source` is the id of one on a hub.

    Args:
        source: a folder or a hub id.
        revision: branch, tag or commit on the hub.
        weights: fetch the weights too.

    Raises:
        CheckpointError: there is no such folder, and it can't be fetched.
    """
    path = Path(os.path.expanduser(source))
    if os.path.isfile(path):
        raise CheckpointError(f"{source} is a file; pass the folder that it is in, with config.json beside it.")
    return CheckpointFolder(str(source), path if os.path.isdir(path) else fetch(str(source), revision, weights))
