"""What a file of torch.save asks for, told without loading it.

The first of two fences: torch's own reader (weights_only=True), which comes after it, runs no foreign code either, but
lets a file of 200 bytes make objects of any size, and inflates compressed parts.
"""

from __future__ import annotations

import io
import os
import pickletools
import re
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

from encoders_shared.checkpoints import CheckpointError

_NAMES_OF_TENSORS = re.compile(
    r"collections\.OrderedDict|torch\.(?:"
    r"_utils\._rebuild_(?:tensor(?:_v[23])?|parameter(?:_with_state)?|sparse_tensor|meta_tensor_no_storage)"
    r"|nn\.parameter\.Parameter|serialization\._get_layout|Size|device|[a-z]+[0-9]\w*|bool"
    r"|(?:storage\.|cuda\.)?\w*Storage)"
)
_ZIP = b"PK\x03\x04"
_LONGEST_PICKLE = 64 * 1024**2
_PICKLES = 5  # in the older format: a magic number, a version, the system, the object, the keys of its data


def check_pickle(path: Path) -> bool:
    """Refuse a file that needs more than tensors, or takes more memory than its own length.

    Returns:
        Whether it is in the newer format, a zip.

    Raises:
        CheckpointError: naming what it asks for.
        Exception: the file is damaged.
    """
    with open(path, "rb") as file:
        zipped = file.read(len(_ZIP)) == _ZIP
        file.seek(0)
        pickles = _pickles_of_zip(path) if zipped else [file.read(_LONGEST_PICKLE)]
    for content in pickles:
        for name in _names(io.BytesIO(content), 1 if zipped else _PICKLES):
            if not _NAMES_OF_TENSORS.fullmatch(name):
                raise CheckpointError(
                    f"{path} is a pickle that would run {name} when loaded; it was not run, and the file is refused. "
                    "Ask its author for model.safetensors."
                )
    return zipped


def is_plain(value: object) -> bool:
    """Tell whether this is a dense tensor on the CPU, with as much data as it has values."""
    if not isinstance(value, Tensor) or value.layout is not torch.strided or value.device.type != "cpu":
        return False
    return value.numel() * value.element_size() <= value.untyped_storage().nbytes()


def _pickles_of_zip(path: Path) -> list[bytes]:
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
        stored = all(part.compress_type == zipfile.ZIP_STORED for part in parts)
        if not stored or sum(part.file_size for part in parts) > path.stat().st_size:
            raise CheckpointError(
                f"{path} is a zip with compressed or overlapping parts, which torch.save never writes; it isn't "
                "unpacked."
            )
    with open(path, "rb") as file:
        return [_content(file, part) for part in parts if part.filename.endswith(".pkl")]


def _content(file: BinaryIO, part: zipfile.ZipInfo) -> bytes:
    """Read a part that is stored as it is; torch may leave out the check sums that zipfile asks for."""
    file.seek(part.header_offset)
    name, extra = struct.unpack("<26xHH", file.read(30))
    file.seek(name + extra, os.SEEK_CUR)
    return file.read(part.file_size)


def _names(stream: io.BytesIO, pickles: int) -> Iterator[str]:
    """Yield the classes and functions that the first pickles of a stream name."""
    for _ in range(pickles):
        texts = ["", ""]
        for opcode, argument, _ in pickletools.genops(stream):
            if opcode.name in ("GLOBAL", "INST"):
                yield str(argument).replace(" ", ".")
            elif opcode.name == "STACK_GLOBAL":
                yield ".".join(texts[-2:])
            elif isinstance(argument, str):
                texts.append(argument)
