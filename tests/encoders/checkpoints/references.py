"""Models of other implementations, to write checkpoints from and to compare with."""

from __future__ import annotations

import torch
from transformers import BertConfig, BertModel

HELM = {
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 80,
    "position_buckets": 64,
    "max_relative_positions": 128,
    "max_position_embeddings": 128,
}
LTG = {
    "vocab_size": 200,
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 90,
    "position_bucket_size": 16,
    "max_position_embeddings": 128,
}
DISTIL = {"vocab_size": 200, "dim": 48, "n_layers": 2, "n_heads": 4, "hidden_dim": 90, "max_position_embeddings": 128}


def reference_model(reference, form, head):
    """A random model of the published code, its configuration as plain fields, and its lowest token id."""
    labels = {"num_labels": 2 if head == "QuestionAnswering" else 5}
    if form == "helmbert":
        fields, module, start = {**HELM, "classifier_num_layers": 1, **labels}, reference["helmbert"], "HELMBert"
        config = module.HELMBertConfig(**fields)
    elif form.startswith("distilbert"):
        fields, module, start = {**DISTIL, **labels}, reference["distilbert"], "DistilBert"
        config = module.DistilBertConfig(**fields)
    else:
        norbert = reference["norbert"]
        fields, start = {**LTG, **labels}, "Norbert"
        module = norbert.contiguous if form in ("babylm", "hplt") else norbert
        config = norbert.NorbertConfig(**fields)
    torch.manual_seed(sum(map(ord, form + head)))
    model = getattr(module, f"{start}For{head}" if head else f"{start}Model")(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model, fields


def small_bert(cls=BertModel, **fields):
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=140,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=64,
        **fields,
    )
    model = cls(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model
