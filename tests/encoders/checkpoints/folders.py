"""Checkpoint folders in the exact forms in which they are published: file names, config.json, names of tensors.

Every folder also holds the .py files that its `auto_map` names; they break when they are run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

GOLDEN = Path(__file__).parents[2] / "golden"
HEADS = ("MaskedLM", "SequenceClassification", "TokenClassification", "QuestionAnswering", "MultipleChoice")
TASK_OF_HEAD = {
    "": None,
    "MaskedLM": "masked-lm",
    "SequenceClassification": "sequence-classification",
    "TokenClassification": "token-classification",
    "QuestionAnswering": "question-answering",
    "MultipleChoice": "multiple-choice",
}


@dataclass(frozen=True)
class Form:
    """One published form.

    Attributes:
        layout: the name under which it should be recognised.
        folder: how the folder is called.
        write: writes config.json and weights, given folder, head ("" for none), config fields and tensors.
    """

    layout: str
    folder: str
    write: Callable[[Path, str, dict[str, Any], dict[str, Tensor]], None]


def write_json(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")


def write_code(folder: Path, *modules: str) -> None:
    """Files of code as on a hub; running one leaves a trace and fails."""
    for module in modules:
        trace = repr(str(folder / "code-was-run"))
        (folder / f"{module}.py").write_text(f"open({trace}, 'w').close()\nraise SystemExit({module!r})\n")


def code_was_run(folder: Path) -> bool:
    return (folder / "code-was-run").exists()


def write_safetensors(folder: Path, tensors: dict[str, Tensor], name: str = "model.safetensors") -> None:
    save_file({key: value.clone().contiguous() for key, value in tensors.items()}, folder / name, {"format": "pt"})


def auto_map(start: str, module: str, heads: tuple[str, ...] = HEADS) -> dict[str, str]:
    return {
        "AutoConfig": f"configuration_{module}.{start}Config",
        "AutoModel": f"modeling_{module}.{start}Model",
        **{f"AutoModelFor{head}": f"modeling_{module}.{start}For{head}" for head in heads},
    }


def class_name(start: str, head: str) -> str:
    return f"{start}For{head}" if head else f"{start}Model"


def labels(fields: dict[str, Any]) -> dict[str, Any]:
    """The labels of a configuration as config.json has them."""
    names = [f"LABEL_{i}" for i in range(fields.get("num_labels", 2))]
    return {"id2label": {str(i): name for i, name in enumerate(names)}, "label2id": {n: i for i, n in enumerate(names)}}


def without(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


def write_helmbert(folder: Path, head: str, fields: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """As transformers 4.57 saved it: safetensors, the tied decoder left out."""
    special = {"bos_token_id": 1, "eos_token_id": 2, "sep_token_id": 2, "mask_token_id": 4}
    config = {
        "architectures": [class_name("HELMBert", head)],
        "auto_map": auto_map("HELMBert", "helmbert", HEADS[:2]),
        "model_type": "helmbert",
        "dtype": "float32",
        "transformers_version": "4.57.3",
        **special,
        **without(fields, "num_labels", "tie_word_embeddings"),
        **(labels(fields) if fields.get("num_labels", 2) != 2 else {}),
    }
    write_json(folder / "config.json", config)
    write_safetensors(folder, without(tensors, "lm_head.decoder.weight"))
    write_code(folder, "configuration_helmbert", "modeling_helmbert", "tokenization_helmbert")


def write_norbert3(folder: Path, head: str, fields: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """A pickle with the index tables and both names of the tied tensor; no model type."""
    config = {
        "architectures": [class_name("Norbert", head)],
        "auto_map": auto_map("Norbert", "norbert"),
        "output_all_encoded_layers": True,
        "torch_dtype": "float32",
        "transformers_version": "4.28.1",
        **without(fields, "num_labels"),
        **(labels(fields) if fields.get("num_labels", 2) != 2 else {}),
    }
    write_json(folder / "config.json", config)
    torch.save(tied(tensors), folder / "pytorch_model.bin")
    write_code(folder, "configuration_norbert", "modeling_norbert")


def write_bnc(folder: Path, head: str, fields: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Calls itself a "bert", with the padding id of [MASK]."""
    write_ltg_bert(folder, head, {**fields, "_name_or_path": "ltg/ltg-bert-bnc"}, tensors)


def write_ltg_bert(folder: Path, head: str, fields: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    config = {
        "architectures": [class_name("LtgBert", head)],
        "auto_map": auto_map("LtgBert", "ltgbert"),
        "model_type": "bert",
        "classifier_dropout": 0.2,
        "pad_token_id": 4,
        "torch_dtype": "float32",
        **without(fields, "num_labels"),
        **(labels(fields) if fields.get("num_labels", 2) != 2 else {}),
    }
    write_json(folder / "config.json", config)
    torch.save(tied(tensors), folder / "pytorch_model.bin")
    write_code(folder, "configuration_ltgbert", "modeling_ltgbert")


def write_babylm(folder: Path, head: str, fields: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Without the index tables, which one copy of the code does not keep."""
    write_ltg_bert(folder, head, fields, {k: v for k, v in tensors.items() if not k.endswith("position_indices")})


def write_hplt(folder: Path, head: str, fields: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Safetensors with both names of the tied tensor; no model type, no special ids."""
    config = {
        "architectures": [class_name("Ltgbert", head)],
        "auto_map": auto_map("Ltgbert", "ltgbert"),
        "torch_dtype": "float32",
        **without(fields, "num_labels"),
        **(labels(fields) if fields.get("num_labels", 2) != 2 else {}),
    }
    write_json(folder / "config.json", config)
    write_safetensors(folder, tensors)
    write_code(folder, "configuration_ltgbert", "modeling_ltgbert")


def write_distilbert(folder: Path, head: str, fields: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """As transformers 4 saved it, safetensors without the tied decoder."""
    config = {
        "architectures": [class_name("DistilBert", head)],
        "model_type": "distilbert",
        "tie_weights_": True,
        "transformers_version": "4.10.0.dev0",
        **without(fields, "num_labels", "tie_word_embeddings", "bos_token_id", "eos_token_id"),
        **(labels(fields) if fields.get("num_labels", 2) != 2 else {}),
    }
    write_json(folder / "config.json", config)
    write_safetensors(folder, without(tensors, "vocab_projector.weight"))


def write_old_distilbert(folder: Path, head: str, fields: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """As transformers 3 saved it: a pickle with everything, and many keys in config.json."""
    config = {
        "architectures": [class_name("DistilBert", head)],
        "model_type": "distilbert",
        "finetuning_task": None,
        "is_decoder": False,
        "output_past": True,
        "pruned_heads": {},
        "tie_weights_": True,
        "torchscript": False,
        "use_bfloat16": False,
        **fields,
        **labels(fields),
    }
    write_json(folder / "config.json", config)
    torch.save(tied(tensors), folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)


FORMS = {
    "helmbert": Form("HELM-BERT", "helm-bert", write_helmbert),
    "norbert3": Form("NorBERT3", "norbert3-tiny", write_norbert3),
    "bnc": Form("LTG-BERT", "copied", write_bnc),
    "babylm": Form("LTG-BERT", "ltg-bert-babylm", write_babylm),
    "hplt": Form("HPLT", "hplt_bert_base_nn", write_hplt),
    "distilbert": Form("DistilBERT", "distilbert-tiny", write_distilbert),
    "distilbert-3": Form("DistilBERT", "distilbert-tiny", write_old_distilbert),
}


def tied(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors, equal ones in one storage, as in a model's own state_dict."""
    result: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        twins = (other for other in result.values() if other.shape == tensor.shape and torch.equal(other, tensor))
        result[name] = tensor if tensor.dim() < 2 else next(twins, tensor)
    return result


def golden(case: str) -> tuple[str, dict[str, Any], dict[str, dict[str, Tensor]]]:
    """Head, configuration, and the tensors by kind ("param", "in", "out") of a golden file."""
    tensors: dict[str, dict[str, Tensor]] = {"param": {}, "in": {}, "out": {}, "grad": {}}
    with safe_open(GOLDEN / f"{case}.safetensors", "pt") as file:
        metadata = file.metadata()
        for key in file.keys():  # noqa: SIM118 - it is not a dictionary
            kind, _, name = key.partition(".")
            tensors[kind][name] = file.get_tensor(key)
    return metadata["class"].partition("For")[2], json.loads(metadata["config"]), tensors


def golden_folder(form: str, case: str, folder: Path) -> tuple[Path, str | None, dict[str, dict[str, Tensor]]]:
    """Write a golden case in a published form; return the folder, the task and the tensors."""
    head, fields, tensors = golden(case)
    path = folder / FORMS[form].folder
    path.mkdir(parents=True)
    FORMS[form].write(path, head, fields, tensors["param"])
    return path, TASK_OF_HEAD[head], tensors
