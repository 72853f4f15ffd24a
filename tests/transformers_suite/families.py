"""The families as transformers' test suite wants them: small, and known by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers.models.auto import modeling_auto

from encoders.family import Family
from encoders_shared.config import EncoderConfig

BATCH = 13
LENGTH = 7
CHOICES = 4

NAMES_BY_TASK = {
    None: modeling_auto.MODEL_MAPPING_NAMES,
    "masked-lm": modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    "sequence-classification": modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
    "token-classification": modeling_auto.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES,
    "question-answering": modeling_auto.MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES,
    "multiple-choice": modeling_auto.MODEL_FOR_MULTIPLE_CHOICE_MAPPING_NAMES,
}


def announce(family: Family) -> None:
    """Enter a family's classes in the tables by which the suite picks inputs and labels for a class."""
    for task, names in NAMES_BY_TASK.items():
        names[family.config_class.model_type] = family.tasks[task].__name__


@dataclass
class SmallModel:
    """What the suite asks of a "model tester": sizes, a configuration and a batch."""

    family: Family
    sizes: dict[str, Any]

    batch_size: int = BATCH
    seq_length: int = LENGTH
    num_choices: int = CHOICES
    is_training: bool = True

    def __getattr__(self, name: str) -> Any:
        """Look a size up by its usual name, as the suite does (`hidden_size`, ...)."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.get_config(), name)

    def get_config(self) -> EncoderConfig:
        return self.family.config_class(**self.sizes)

    def prepare_config_and_inputs_for_common(self) -> tuple[EncoderConfig, dict[str, torch.Tensor]]:
        config = self.get_config()
        ids = torch.randint(config.vocab_size, (BATCH, LENGTH))
        mask = torch.randint(2, (BATCH, LENGTH))
        mask[:, 0] = 1
        return config, {"input_ids": ids, "attention_mask": mask}
