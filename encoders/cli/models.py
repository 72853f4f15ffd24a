"""Models and inputs for `encoders parity`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
import typer
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import encoders
from encoders.checkpoints.checkpoint import open_checkpoint
from encoders.checkpoints.recognition import layouts_of
from encoders.checkpoints.weights import FLOATING
from encoders.family import AUTO_CLASSES
from encoders.registry import check_task, families
from encoders.sides import Side, open_side
from encoders_shared.attention import read_backend
from encoders_shared.checkpoints import CheckpointError
from encoders_shared.config import EncoderConfig
from encoders_shared.errors import listed, suggestion
from encoders_shared.model import EncoderPreTrainedModel

THEIRS = "transformers:"
LINES, LONGEST, RANDOM_LENGTHS = 32, 512, (32, 19, 9, 3)
_NOT_OF_THE_MODEL = (  # keys of config.json that make transformers fetch code, read other files or change the numbers
    *("_attn_implementation", "attn_implementation", "auto_map", "dtype", "torch_dtype"),
    *("quantization_config", "transformers_weights"),
)


def open_named(name: str, revision: str | None) -> Side:
    """Tell what is known of one side; see `open_side`."""
    return open_side(name.removeprefix(THEIRS), revision)


def load_side(
    name: str, side: Side, task: str | None, seed: int, dtype: str | None, backend: str | None, device: str
) -> PreTrainedModel:
    """Return the model of one side; what it warns of is printed on standard error.

    A preset gets random weights from the seed.

    Raises:
        ValueError: it can't be had as asked, or parts of it would be random.
    """
    check_task(task)
    if dtype is not None and dtype not in FLOATING:
        raise ValueError(f"dtype is {dtype!r}; allowed: {listed(FLOATING)}.{suggestion(dtype, FLOATING)}")
    options = {} if backend is None else {"attn_implementation": backend}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        if name.startswith(THEIRS):
            model, missing = _load_theirs(side, task, options)
        elif side.preset is not None:
            torch.manual_seed(seed)
            model, missing = encoders.create(name, task=task, **options), ()
        else:
            model, report = encoders.load(name, task=task, revision=side.revision, return_report=True, **options)
            missing = report.missing
    if missing:
        raise ValueError(
            f"{name} lacks {listed(missing)}: these would be random, so there is nothing to compare. Choose another "
            "--task, such as bare."
        )
    for warning in caught:
        typer.echo(f"warning: {warning.message}", err=True)
    nn.Module.to(model, _usable(device), None if dtype is None else getattr(torch, dtype))
    return model


def make_inputs(sides: Sequence[Side], file: Path | None, task: str | None, seed: int) -> tuple[dict[str, Tensor], str]:
    """Return a batch that both sides can take, right-padded, and a few words on where it comes from.

    For multiple choice, all its rows are the choices of one question.

    Raises:
        ValueError: the file holds no text, or there is no tokenizer for it.
    """
    longest = min([LONGEST, *(side.family.maximum_length(side.config, task) or LONGEST for side in sides)])
    if file is None:
        batch = _random_batch(min(side.config.vocab_size for side in sides), longest, seed)
        origin = f"random ids (seed {seed})"
    else:
        batch = _text_batch(sides, file, longest)
        origin = f"{file.name}"
    lengths = batch["attention_mask"].sum(dim=1)
    origin = f"{len(lengths)} rows of {int(lengths.min())} to {int(lengths.max())} tokens from {origin}"
    return {n: rows[None] for n, rows in batch.items()} if task == "multiple-choice" else batch, origin


def describe(name: str, side: Side, model: PreTrainedModel) -> dict[str, str]:
    """Say what a side is. What transformers calls sdpa is "auto" in this library's models; see `read_backend`."""
    implementation = model.config._attn_implementation
    note = side.revision if side.preset is None else "random weights"
    return {
        "source": name if note is None else f"{name} ({note})",
        "class": f"{type(model).__module__.partition('.')[0]}.{type(model).__name__}",
        "dtype": str(model.dtype).removeprefix("torch."),
        "backend": read_backend(implementation) if isinstance(model, EncoderPreTrainedModel) else str(implementation),
        "device": str(model.device),
    }


def _load_theirs(side: Side, task: str | None, options: dict[str, str]) -> tuple[PreTrainedModel, list[str]]:
    """Load a folder with transformers' own class, found by its model type; no code of the folder is run.

    Our reader opens it first: it refuses pickles with code, links that leave the folder and headers that lie. Keys of
    config.json that say how to run a model, not what it is, are left out: one may name a kernel on a hub. As in
    `encoders.load`, the type of the parameters is the stored one.
    """
    checkpoint = open_checkpoint(side.source, side.revision)
    folder = checkpoint.folder
    known = _their_configs()
    model_type = folder.config.get("model_type")
    if model_type not in known or model_type not in checkpoint.recognised.layout.model_types:
        raise CheckpointError(
            f"{side.source} is a {checkpoint.recognised.layout.name} with model_type {model_type!r}, for which "
            f"transformers has no class of its own. It has some for: {listed(known)}."
        )
    fields = {key: value for key, value in folder.config.items() if key not in _NOT_OF_THE_MODEL}
    config = known[model_type].from_dict(fields)
    model, info = AUTO_CLASSES[task].from_pretrained(
        folder.path,
        config=config,
        dtype="auto",
        trust_remote_code=False,
        output_loading_info=True,
        **{"attn_implementation": "sdpa", **options},
    )
    compared = (name for name in info["missing_keys"] if "pooler" not in name.split("."))  # its vector is left out
    return model, list(compared)


def _their_configs() -> dict[str, type[PreTrainedConfig]]:
    types = {name for family in families().values() for layout in layouts_of(family) for name in layout.model_types}
    found = {name: CONFIG_MAPPING[name] for name in sorted(types) if name in CONFIG_MAPPING}
    return {name: config for name, config in found.items() if not issubclass(config, EncoderConfig)}


def _random_batch(vocab_size: int, longest: int, seed: int) -> dict[str, Tensor]:
    lengths = torch.tensor([min(length, longest) for length in RANDOM_LENGTHS])
    shape = (len(lengths), int(lengths.max()))
    ids = torch.randint(0, vocab_size, shape, generator=torch.Generator().manual_seed(seed))
    return {"input_ids": ids, "attention_mask": (torch.arange(shape[1]) < lengths[:, None]).long()}


def _text_batch(sides: Sequence[Side], file: Path, longest: int) -> dict[str, Tensor]:
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()][:LINES]
    if not lines:
        raise ValueError(f"{file} holds no text.")
    refusals = []
    for side in sides:
        try:
            tokenizer = side.tokenizer()
            break
        except ValueError as error:
            refusals.append(str(error))
    else:
        raise ValueError(f"there is no tokenizer to read {file} with. {' '.join(refusals)}")
    tokenizer.padding_side = "right"  # what every family takes
    encoded = tokenizer(
        lines,
        padding=True,
        truncation=True,
        max_length=longest,
        return_tensors="pt",
        return_token_type_ids=False,
        return_attention_mask=True,
    )
    return {"input_ids": encoded["input_ids"], "attention_mask": encoded["attention_mask"]}


def _usable(device: str) -> torch.device:
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(f"device {device!r} can't be used: {str(error).splitlines()[0]}") from error
