"""Write what the reference's own bucket functions give, as integers.

    python make_relative_positions.py REFERENCE_FOLDER

The folder holds `helmbert_reference.py` and `norbert_reference.py`. One int16 tensor a case, `family.size.limit`:
the value at each offset -(length - 1) .. length - 1 of the longest length. The functions are called for every length,
on the whole matrix of offsets, and must give the same value wherever an offset appears.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import save_file

LENGTHS = (1, 2, 3, 16, 31, 32, 33, 511, 512, 513, 1000)
HELMBERT = ((256, 512), (16, 64), (32, 512), (64, 512), (10, 40), (8, 64))
CLAMPED = (512, 24)
NORBERT = ((32, 512), (8, 64), (16, 64), (64, 512), (32, 1024))
NORBERT_SHORT = (
    32,
    16,
)  # fewer positions than buckets: the reference is right up to 16 tokens, out of the table beyond


def offsets(length: int) -> torch.Tensor:
    """Offset of each pair of tokens [query, key]."""
    position = torch.arange(length)
    return position[:, None] - position[None, :]


def by_offset(matrix_of: Callable[[int], torch.Tensor], lengths: tuple[int, ...]) -> torch.Tensor:
    """Values by offset, from the matrices of all lengths."""
    longest = max(lengths)
    matrix = matrix_of(longest)
    values = torch.cat([matrix[0].flip(0), matrix[1:, 0]])  # the first row holds offsets <= 0, the first column >= 0
    for length in lengths:
        expected = values[offsets(length) + longest - 1]
        if not torch.equal(matrix_of(length), expected):
            raise SystemExit(f"length {length}: the value is not a function of the offset alone")
    return values.to(torch.int16)


def main(folder: Path) -> None:
    sys.path.insert(0, str(folder))
    import helmbert_reference
    import norbert_reference

    def helmbert(buckets: int, max_position: int) -> Callable[[int], torch.Tensor]:
        return lambda length: helmbert_reference.build_relative_position(length, length, buckets, max_position)

    def norbert(buckets: int, max_position: int) -> Callable[[int], torch.Tensor]:
        bucketing = norbert_reference.Attention.make_log_bucket_position
        return lambda length: bucketing(None, offsets(length), buckets, max_position)

    tensors = {f"helmbert.{b}.{m}": by_offset(helmbert(b, m), LENGTHS) for b, m in HELMBERT}
    tensors |= {f"clamped.0.{m}": by_offset(helmbert(-1, m), LENGTHS) for m in CLAMPED}
    tensors |= {f"norbert.{b}.{m}": by_offset(norbert(b, m), LENGTHS) for b, m in NORBERT}
    tensors["norbert.{}.{}".format(*NORBERT_SHORT)] = by_offset(norbert(*NORBERT_SHORT), (1, 2, 3, 16))
    save_file(tensors, Path(__file__).with_name("relative_positions.safetensors"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
