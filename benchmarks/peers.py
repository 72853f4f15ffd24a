"""The models that are measured: ours, and those it is compared with."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import transformers
from torch import Tensor, nn

import encoders
import encoders_shared.attention as attention
import encoders_shared.linear as linear
from benchmarks.cases import PRESETS, SHAPES, Case
from encoders.helmbert import convolution
from encoders_shared.attention import BACKENDS
from encoders_shared.model import Trunk

Model = Callable[..., Any]
PUBLISHED = {  # module, class, configuration class
    "helmbert": ("helmbert_reference", "HELMBertModel", "HELMBertConfig"),
    "helmbert-unbucketed": ("helmbert_reference", "HELMBertModel", "HELMBertConfig"),
    "norbert": ("norbert_reference", "NorbertModel", "NorbertConfig"),
    "distilbert": ("distilbert_reference", "DistilBertModel", "DistilBertConfig"),
}


def ours(case: Case, **overrides: Any) -> nn.Module:
    """Our model, with the backend that it chooses itself."""
    return encoders.create(PRESETS[case.family], **case.overrides(), **overrides)


def ours_packing(case: Case, packing: bool) -> nn.Module:
    """Our model, always or never packed where there is padding."""
    model = ours(case)
    assert isinstance(model, Trunk)
    model.packing = packing
    return model


def ours_patched(case: Case, module: Any, name: str, value: Any) -> nn.Module:
    """Our model with something in one of our modules replaced while it runs forward."""
    model = ours(case)
    replaced = patch.object(module, name, value)

    def start(*_: Any) -> None:
        replaced.start()

    def stop(*_: Any) -> None:
        replaced.stop()

    model.register_forward_pre_hook(start)
    model.register_forward_hook(stop)
    return model


def published(case: Case) -> nn.Module:
    """The published implementation that the family comes from."""
    folder = os.environ["ENCODERS_REFERENCE"]
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module, model, config = PUBLISHED[case.family]
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):  # it leaves files open
        classes = importlib.import_module(module)
    return getattr(classes, model)(getattr(classes, config)(**case.overrides()))


def transformers_distilbert(case: Case, attention: str = "sdpa") -> nn.Module:
    """The DistilBERT that comes with transformers."""
    config = transformers.DistilBertConfig(**{**case.overrides(), "attn_implementation": attention})
    return transformers.DistilBertModel(config)


def transformers_deberta(case: Case) -> nn.Module:
    """The DeBERTa-v2 that comes with transformers, at HELM-BERT's sizes."""
    config = transformers.DebertaV2Config(
        vocab_size=78,
        hidden_size=768,
        num_attention_heads=12,
        intermediate_size=3_072,
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
        type_vocab_size=0,
        **{"position_buckets": 256, **case.overrides()},
    )
    return transformers.DebertaV2Model(config)


class OnnxModel:
    """Our model, exported and run by onnxruntime."""

    def __init__(self, case: Case):
        import onnxruntime

        file = Path(case.folder) / f"{case.family}-{case.layers}-{case.overrides().get('max_position_embeddings')}.onnx"
        if not file.exists():
            export_onnx(ours(case).eval(), file)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = case.threads
        self.session = onnxruntime.InferenceSession(file, options)

    def __call__(self, **batch: Tensor) -> Any:
        return self.session.run(None, {name: values.numpy() for name, values in batch.items()})


def export_onnx(model: nn.Module, file: Path) -> None:
    """Write a model with a dynamic batch and length."""
    example = SHAPES["8 x 128 ragged"].batch(vocab_size=64)
    rows, length = torch.export.Dim("batch"), torch.export.Dim("length", min=2, max=512)
    with warnings.catch_warnings(action="ignore"):  # of the exporter
        program = torch.onnx.export(
            model,
            (),
            kwargs=example,
            dynamic_shapes={name: {0: rows, 1: length} for name in example},
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    program.save(file)


PEERS: dict[str, tuple[Callable[[Case], Model], tuple[str, ...]]] = {  # how to build, for which families
    "published": (published, tuple(PUBLISHED)),
    "transformers": (transformers_distilbert, ("distilbert",)),
    "transformers-eager": (lambda case: transformers_distilbert(case, "eager"), ("distilbert",)),
    "debertav2": (transformers_deberta, ("helmbert", "helmbert-unbucketed")),
    "onnxruntime": (OnnxModel, tuple(PRESETS)),
    "ours-packed": (lambda case: ours_packing(case, True), tuple(PRESETS)),
    "ours-sdpa": (lambda case: ours_patched(case, attention, "choose", lambda *_, **__: "sdpa"), tuple(PRESETS)),
    "ours-without-onednn": (lambda case: ours_patched(case, linear, "HAS_ONEDNN", False), tuple(PRESETS)),
    "ours-without-filtering": (
        lambda case: ours_patched(case, convolution, "FEWEST_TOKENS", sys.maxsize),
        ("helmbert", "helmbert-unbucketed"),
    ),
    "ours-padded": (lambda case: ours_packing(case, False), tuple(PRESETS)),
    **{
        f"ours-{name}": (lambda case, name=name: ours(case, attn_implementation=name), tuple(PRESETS))
        for name in BACKENDS
        if name != "sdpa"  # as a name in a configuration it stands for the automatic choice, "ours"
    },
}
STANDARD_PEERS = ["published", "transformers", "transformers-eager", "debertav2", "onnxruntime"]


def build(name: str, case: Case) -> Model:
    """Build a model by its name, "ours" or one of `PEERS`."""
    return ours(case) if name == "ours" else PEERS[name][0](case)


def build_module(name: str, case: Case) -> nn.Module:
    """Build a model that torch runs."""
    model = build(name, case)
    assert isinstance(model, nn.Module)
    return model


def missing(peer: str) -> str | None:
    """Say why a peer can't be measured here, or return None if it can."""
    folder = os.environ.get("ENCODERS_REFERENCE")
    if peer == "published" and not (folder and Path(folder).is_dir()):
        return "published is left out: ENCODERS_REFERENCE does not name a folder with the published implementations."
    if peer == "onnxruntime" and not all(map(importlib.util.find_spec, ("onnxruntime", "onnxscript"))):
        return "onnxruntime is left out: it is not installed (pip install 'encoder-zoo[export]')."
    return None


def fits(peer: str, family: str, mode: str) -> bool:
    """Tell whether a peer computes what the family does, in this mode."""
    return family in PEERS[peer][1] and not (peer == "onnxruntime" and mode.startswith("training"))
