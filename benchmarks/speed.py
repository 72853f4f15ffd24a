"""How fast the encoders are, next to others on the same batches.

    python -m benchmarks.speed [--rounds 5] [--layers 2] [--families helmbert norbert distilbert]

Every figure is a ratio: processor time of the other model divided by ours, both run in turn in one process on one
thread, the median over rounds. Above 1, ours is faster. The others are transformers' own classes and, where the folder
named by ENCODERS_REFERENCE holds them, the published implementations that the families come from. Models have the
published widths and few layers, since all layers are alike.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import transformers
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from tqdm import tqdm

import encoders

PRESETS = {"helmbert": "helmbert-base", "norbert": "norbert3-base", "distilbert": "distilbert-base-uncased"}
SHAPES = {
    "1 x 32": (1, 32),
    "8 x 128": (8, 128),
    "8 x 128 ragged": (8, 128),
    "32 x 128 ragged": (32, 128),
    "4 x 512": (4, 512),
}


def main() -> None:
    """Time every family on every shape and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--families", nargs="+", default=list(PRESETS), choices=list(PRESETS))
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    table = Table("family", "batch x length", "compared with", "inference", "training step")
    cases = [(family, shape) for family in arguments.families for shape in arguments.shapes]
    for family, shape in tqdm(cases, disable=not sys.stderr.isatty()):
        ours = encoders.create(PRESETS[family], num_hidden_layers=arguments.layers)
        batch = make_batch(*SHAPES[shape], ours.config.vocab_size, ragged="ragged" in shape)
        for name, other in peers(family, arguments.layers).items():
            inference = ratio(ours, other, batch, arguments.rounds, infer)
            training = ratio(ours, other, batch, arguments.rounds, train)
            table.add_row(family, shape, name, f"{inference:.2f}", f"{training:.2f}")
    Console().print(table)


def make_batch(rows: int, length: int, vocab_size: int, ragged: bool) -> dict[str, Tensor]:
    """Random ids; a ragged batch is about 30 % full, with one row of full length."""
    generator = torch.Generator().manual_seed(0)
    lengths = torch.full((rows,), length)
    if ragged:
        lengths = (length * torch.rand(rows, generator=generator) ** 2.2).long().clamp(min=4)
        lengths[0] = length
    low = min(110, vocab_size // 2)
    ids = torch.randint(low, vocab_size, (rows, length), generator=generator)
    return {"input_ids": ids, "attention_mask": (torch.arange(length) < lengths[:, None]).long()}


def peers(family: str, layers: int) -> dict[str, nn.Module]:
    """What to compare a family with."""
    found: dict[str, nn.Module] = {}
    if family == "distilbert":
        found["transformers"] = transformers.DistilBertModel(transformers.DistilBertConfig(n_layers=layers))
    if family == "helmbert":
        config = transformers.DebertaV2Config(
            vocab_size=78,
            hidden_size=768,
            num_hidden_layers=layers,
            num_attention_heads=12,
            intermediate_size=3072,
            relative_attention=True,
            position_buckets=256,
            pos_att_type=["c2p", "p2c"],
            type_vocab_size=0,
        )
        found["transformers' DeBERTa-v2"] = transformers.DebertaV2Model(config)
    folder = os.environ.get("ENCODERS_REFERENCE")
    if folder and Path(folder).is_dir():
        found["published code"] = reference(folder, family, layers)
    return found


def reference(folder: str, family: str, layers: int) -> nn.Module:
    """The published implementation of a family, with the same sizes."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    if family == "helmbert":
        import helmbert_reference as module

        return module.HELMBertModel(module.HELMBertConfig(num_hidden_layers=layers))
    if family == "norbert":
        import norbert_reference as module

        return module.NorbertModel(module.NorbertConfig(num_hidden_layers=layers))
    import distilbert_reference as module

    return module.DistilBertModel(module.DistilBertConfig(n_layers=layers))


def infer(model: nn.Module, batch: dict[str, Tensor]) -> None:
    """One forward pass in evaluation mode."""
    model.eval()
    with torch.inference_mode():
        model(**batch)


def train(model: nn.Module, batch: dict[str, Tensor]) -> None:
    """One forward and backward pass in training mode."""
    model.train()
    model.zero_grad(set_to_none=True)
    model(**batch)[0].square().mean().backward()


def ratio(ours: nn.Module, other: nn.Module, batch: dict[str, Tensor], rounds: int, step: Callable) -> float:
    """Median over rounds of the other's processor time divided by ours."""
    ratios = []
    for round_number in range(rounds + 1):
        spent = []
        for model in (ours, other):
            start = time.process_time()
            step(model, batch)
            spent.append(time.process_time() - start)
        if round_number:  # the first warms up
            ratios.append(spent[1] / spent[0])
    return statistics.median(ratios)


if __name__ == "__main__":
    main()
