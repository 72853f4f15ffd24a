"""The tensors of a checkpoint: names, shapes and types at once, values when they are asked for."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from encoders.checkpoints.folder import CheckpointFolder
from encoders.checkpoints.pickles import check_pickle, is_plain
from encoders_shared.checkpoints import CheckpointError
from encoders_shared.errors import listed

FLOATING = ("float64", "float32", "bfloat16", "float16")

_SAFETENSORS_TYPES = {"F64": "float64", "F32": "float32", "BF16": "bfloat16", "F16": "float16", "I64": "int64"}
_FORMATS = (("model", ".safetensors"), ("pytorch_model", ".bin"))
_FOREIGN = ("tf_model.h5", "flax_model.msgpack", "model.onnx", "adapter_model.safetensors", "model.gguf")


@dataclass(frozen=True)
class TensorFacts:
    """What a file's header says of one tensor.

    Attributes:
        shape: its sizes.
        dtype: as torch calls it ("float32"); other types by the file's own name.
    """

    shape: tuple[int, ...]
    dtype: str


class WeightFile(Protocol):
    """One file of tensors."""

    facts: dict[str, TensorFacts]

    def read(self, name: str) -> Tensor:
        """Return the values of a tensor; they may be backed by the file, so copy what is to stay."""
        ...


class SafetensorsFile:
    """A file in the safetensors format."""

    def __init__(self, path: Path):
        try:
            self._file = safe_open(path, framework="pt")
            self.facts = {name: self._facts(name) for name in self._file.keys()}  # noqa: SIM118 - not a dictionary
        except (SafetensorError, OSError) as error:
            raise CheckpointError(f"{path} is truncated or corrupt: {error}. Fetch it again.") from error

    def _facts(self, name: str) -> TensorFacts:
        header = self._file.get_slice(name)
        dtype = str(header.get_dtype())
        return TensorFacts(tuple(header.get_shape()), _SAFETENSORS_TYPES.get(dtype, dtype))

    def read(self, name: str) -> Tensor:
        return self._file.get_tensor(name)


class PickledFile:
    """A file as torch.save writes it, of which nothing but tensors is read."""

    def __init__(self, path: Path):
        try:
            zipped = check_pickle(path)
            with warnings.catch_warnings(action="ignore"):
                content = torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
        except CheckpointError:
            raise
        except pickle.UnpicklingError as error:
            raise CheckpointError(
                f"{path} is a pickle of more than tensors, or a truncated one; it was not run. Fetch it again, or ask "
                "its author for model.safetensors."
            ) from error
        except Exception as error:  # a damaged file is met with any error
            raise CheckpointError(f"{path} is truncated or corrupt: {_first_line(error)}. Fetch it again.") from error
        others = [key for key, value in content.items() if not is_plain(value)] if _is_dict(content) else None
        if others is None or others:
            what = f"under {listed(map(repr, others[:3]))}" if others else f"a {type(content).__name__}"
            raise CheckpointError(
                f"{path} holds more than plain tensors by name ({what}). Save the model's state_dict() alone, or use "
                "save_pretrained."
            )
        self._content: dict[str, Tensor] = content
        self.facts = {
            name: TensorFacts(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
            for name, tensor in content.items()
        }

    def read(self, name: str) -> Tensor:
        return self._content[name].detach()


class Weights:
    """All tensors of a checkpoint, whatever files they are spread over.

    Attributes:
        facts: shape and type of each tensor, by its published name.
        size: length of the files, in bytes.
    """

    def __init__(self, folder: CheckpointFolder):
        files, promised = _weight_files(folder)
        self.size = sum(path.stat().st_size for path in files)
        self.facts: dict[str, TensorFacts] = {}
        self._homes: dict[str, WeightFile] = {}
        for path in files:
            file = SafetensorsFile(path) if path.suffix == ".safetensors" else PickledFile(path)
            self.facts.update(file.facts)
            self._homes.update(dict.fromkeys(file.facts, file))
        if absent := sorted(promised - self.facts.keys()):
            raise CheckpointError(
                f"{folder.path}: the index lists tensors that no file holds: {listed(absent[:5])}"
                f"{f' and {len(absent) - 5} more' if len(absent) > 5 else ''}. Fetch the files again."
            )

    def read(self, name: str) -> Tensor:
        """Return the values of a tensor; they may be backed by a file, so copy what is to stay."""
        return self._homes[name].read(name)


def _weight_files(folder: CheckpointFolder) -> tuple[list[Path], set[str]]:
    """Return the files to read, and the names of the tensors that an index promises."""
    for stem, suffix in _FORMATS:
        if (path := folder.file(stem + suffix)) is not None:
            return [path], set()
        if (index := folder.json(f"{stem}{suffix}.index.json")) is not None:
            return _shards(folder, f"{stem}{suffix}.index.json", index.get("weight_map"), suffix)
    foreign = [name for name in _FOREIGN if folder.file(name) is not None]
    why = f"{listed(foreign)} can't be read" if foreign else "none was found"
    raise CheckpointError(
        f"{folder.path} holds no weights ({why}). Needed: model.safetensors, pytorch_model.bin, or a "
        "model.safetensors.index.json with its files."
    )


def _shards(folder: CheckpointFolder, index: str, weight_map: object, suffix: str) -> tuple[list[Path], set[str]]:
    if not isinstance(weight_map, dict) or not all(isinstance(name, str) for name in weight_map.values()):
        raise CheckpointError(f"{folder.path / index} has no weight_map from tensors to files.")
    files, absent = [], []
    for name in sorted(set(weight_map.values())):
        if Path(name).name != name or "\\" in name or not name.endswith(suffix):
            raise CheckpointError(
                f"{folder.path / index} names the file {name!r}; only {suffix} files in the same folder are read."
            )
        path = folder.file(name)
        files.append(path) if path is not None else absent.append(name)
    if absent:
        raise CheckpointError(f"{folder.path}: {listed(absent)} of {index} is missing. Fetch it.")
    return files, set(weight_map)


def _is_dict(content: object) -> bool:
    return isinstance(content, dict) and all(isinstance(key, str) for key in content)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
