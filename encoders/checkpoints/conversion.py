"""Writing a checkpoint in another form."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from safetensors.torch import save_file

from encoders.checkpoints.checkpoint import load_model, open_checkpoint
from encoders.checkpoints.configuration import read_config
from encoders.checkpoints.folder import CheckpointFolder
from encoders.checkpoints.hub import TOKENIZER_FILES
from encoders.checkpoints.inspection import head_of
from encoders.checkpoints.report import LoadReport
from encoders.checkpoints.tokenizers import read_tokenizer
from encoders.family import Family
from encoders_shared.checkpoints import CheckpointError
from encoders_shared.errors import listed
from encoders_shared.model import EncoderPreTrainedModel

FORMS = ("transformers", "upstream")


def convert_checkpoint(
    source: str, target: str | Path, to: str = "transformers", *, revision: str | None = None
) -> tuple[LoadReport, list[str]]:
    """Write a checkpoint, with its head and its tokenizer, in another form.

    Args:
        source: a folder, or the id of a repository on a hub.
        target: a new folder.
        to: "transformers" is what `save_pretrained` writes, with everything that config.json left open settled;
            "upstream" is what the family's own published code reads, to be used with that code.
        revision: branch, tag or commit on the hub.

    Returns:
        What was loaded, and what the user should be warned of.

    Raises:
        CheckpointError: the checkpoint can't be loaded, or there is no such form of it.
        ValueError: the target exists, or the form is unknown.
    """
    if to not in FORMS:
        raise ValueError(f"unknown form {to!r}; allowed: {listed(FORMS)}.")
    target = Path(target)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{target} exists and is not an empty folder; name a new one.")
    checkpoint = open_checkpoint(source, revision)
    recognised = checkpoint.recognised
    config, _ = read_config(checkpoint.folder, recognised, checkpoint.weights, {})
    model, report, warnings = load_model(checkpoint, head_of(checkpoint, config), {})
    if to == "upstream":
        _write_published(model, checkpoint.folder, recognised.family, target)
    else:
        model.save_pretrained(target)
        if any(checkpoint.folder.file(name) for name in TOKENIZER_FILES):
            read_tokenizer(checkpoint.folder, {}).save_pretrained(target)
    return report, warnings


def _write_published(model: EncoderPreTrainedModel, folder: CheckpointFolder, family: Family, target: Path) -> None:
    if family.publish is None:
        raise CheckpointError(f"the family {family.name} has no published form of its own.")
    published = family.publish(model)
    tensors = {name: tensor.contiguous().clone() for name, tensor in model.state_dict().items()}  # tied ones twice
    tensors |= {name: tensor.clone() for name, tensor in published.extra_tensors.items()}
    target.mkdir(parents=True, exist_ok=True)
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
    (target / "config.json").write_text(json.dumps(published.config, indent=2) + "\n", encoding="utf-8")
    for name in TOKENIZER_FILES if published.with_tokenizer else ():
        if (path := folder.file(name)) is not None:
            shutil.copyfile(path, target / name)
