"""The encoders of a comparison: a preset starts from fresh weights, a checkpoint from its own."""

import hashlib
import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase, set_seed

import encoders
from encoders.experiments.data import LabelledTexts
from encoders.experiments.encoding import EncodedTexts, encode, refuse_longer_texts
from encoders.experiments.errors import ExperimentError
from encoders.experiments.settings import Settings
from encoders.experiments.tokenizers import shared_tokenizer
from encoders.registry import families
from encoders_shared.config import EncoderConfig

_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")


@dataclass(frozen=True)
class Backbone:
    """One encoder, ready to be trained.

    Attributes:
        name: the preset, folder or hub id, as given.
        pretrained: whether it starts from trained weights.
        tokenizer: the shared one of all fresh encoders, or the checkpoint's own.
        texts: the data in its token ids.
        build: makes the model, with its head.
        remarks: what was warned of when it was made for the first time.
        config: the model's configuration.
        parameters: how many the model has.
        sha256: a fingerprint of the configuration and of the weights that seed 0 gives.
    """

    name: str
    pretrained: bool
    tokenizer: PreTrainedTokenizerBase
    texts: EncodedTexts
    build: Callable[[], PreTrainedModel]
    remarks: tuple[str, ...]
    config: dict[str, Any]
    parameters: int
    sha256: str

    def new_model(self) -> PreTrainedModel:
        """Make the model, without repeating the remarks as warnings."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return self.build()


def prepare_backbones(names: Sequence[str], data: LabelledTexts, settings: Settings) -> list[Backbone]:
    """Resolve every name, encode the data for it, and build its model once to see that it can be built.

    Raises:
        ExperimentError: a name is unknown or given twice, a model refuses an option, or a text is too long for one.
    """
    if not names:
        raise ExperimentError("no backbones are given; `encoders list` names those there are")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ExperimentError(f"backbone {repeated[0]} is given twice")
    presets = [name for name in names if _is_preset(name)]
    options = _head_options(data, settings)

    @cache
    def shared() -> tuple[PreTrainedTokenizerBase, EncodedTexts]:
        tokenizer = shared_tokenizer(data.train.texts)
        return tokenizer, encode(data, tokenizer, settings.max_length)

    backbones: list[Backbone] = []
    for name in names:
        with _refusals_by_name(name):
            if name in presets:
                tokenizer, texts = shared()
                vocabulary = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
                build = partial(encoders.create, name, **options, **vocabulary)
            else:
                tokenizer = encoders.load_tokenizer(name)
                texts = encode(data, tokenizer, settings.max_length)
                build = partial(encoders.load, name, **options, dtype=torch.float32)
            set_seed(0)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = build()
        _check_length(name, model, data, texts, settings.max_length)
        backbones.append(
            Backbone(
                name=name,
                pretrained=name not in presets,
                tokenizer=tokenizer,
                texts=texts,
                build=build,
                remarks=tuple(f"{name}: {warning.message}" for warning in caught),
                config=model.config.to_dict(),
                parameters=sum(parameter.numel() for parameter in model.parameters()),
                sha256=_fingerprint(model, texts),
            )
        )
    return backbones


def _is_preset(name: str) -> bool:
    if name not in encoders.list_encoders():
        if Path(name).is_dir() or _HUB_ID.fullmatch(name):
            return False
        if "/" in name:
            raise ExperimentError(f"backbone {name}: there is no such folder")
        with _refusals_by_name(name):
            encoders.card(name)  # refuses, and names the nearest preset
    return True


def _head_options(data: LabelledTexts, settings: Settings) -> dict[str, Any]:
    options: dict[str, Any] = {"task": "sequence-classification"}
    if data.task == "regression":
        options |= {"num_labels": 1, "problem_type": "regression"}
    else:
        options |= {
            "num_labels": len(data.classes),
            "problem_type": "single_label_classification",
            "id2label": dict(enumerate(data.classes)),
            "label2id": {label: index for index, label in enumerate(data.classes)},
        }
    return options if settings.pooling is None else options | {"pooling": settings.pooling}


@contextmanager
def _refusals_by_name(backbone: str) -> Iterator[None]:
    """Turn what the registry and the loader refuse into one line that names the backbone."""
    try:
        yield
    except (ValueError, OSError, RuntimeError) as error:
        raise ExperimentError(f"backbone {backbone}: {' '.join(str(error).split())}") from error


def _check_length(
    name: str, model: PreTrainedModel, data: LabelledTexts, texts: EncodedTexts, max_length: int | None
) -> None:
    config = cast(EncoderConfig, model.config)
    family = next(family for family in families().values() if isinstance(config, family.config_class))
    limit = family.maximum_length(config, None)  # no comparison predicts masked words
    if max_length is None:
        refuse_longer_texts(data, texts, limit or config.max_position_embeddings, name)
    elif limit is not None and max_length > limit:
        raise ExperimentError(f"backbone {name}: it takes {limit} tokens at most, not --max-length {max_length}")


def _fingerprint(model: PreTrainedModel, texts: EncodedTexts) -> str:
    digest = hashlib.sha256(model.config.to_json_string(use_diff=False).encode())
    for name, tensor in model.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    digest.update(json.dumps(texts.examples).encode())
    return digest.hexdigest()
