"""Which position projection was a checkpoint trained with?

Two layouts were published under identical names and shapes of tensors. The wrong one loads without a word and gives
wrong numbers; but it predicts masked words worse, and that can be measured.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from encoders.norbert.config import POSITION_PROJECTIONS
from encoders.norbert.tasks import NorbertForMaskedLM

MASKED_SHARE = 0.15
CLEARLY_BETTER = 0.95  # of the loss of guessing by frequency; a model that has learnt nothing stays above it
SMALLEST_GAP = 0.01  # of the smaller loss
STANDARD_ERRORS = 3.0


@dataclass(frozen=True)
class ProjectionDiagnosis:
    """How well a model predicts masked words under each position projection.

    Attributes:
        losses: mean negative log-likelihood of the masked words, in nats, by projection.
        frequency_loss: the same for guessing by the words' frequencies in these texts.
        gap: how much larger the larger loss is.
        standard_error: of the gap, over the texts.
        masked: number of masked words.
        configured: the projection that the model has now.
    """

    losses: dict[str, float]
    frequency_loss: float
    gap: float
    standard_error: float
    masked: int
    configured: str

    @property
    def verdict(self) -> str | None:
        """The projection that fits, or None where the numbers don't tell."""
        better = min(self.losses, key=lambda name: self.losses[name])
        return None if self.reason else better

    @property
    def reason(self) -> str | None:
        """Why the numbers don't tell, or None if they do."""
        smaller = min(self.losses.values())
        if not smaller < CLEARLY_BETTER * self.frequency_loss:
            return "the model predicts masked words hardly better than their frequencies do: it looks untrained"
        if self.gap < SMALLEST_GAP * smaller or self.gap < STANDARD_ERRORS * self.standard_error:
            return "the two losses are too close on these texts; try more of them"
        return None

    def __str__(self) -> str:
        lines = [f"masked-word loss {name:<12}{loss:7.3f}" for name, loss in self.losses.items()]
        lines.append(f"guessing by frequency       {self.frequency_loss:7.3f}")
        lines.append(f"difference {self.gap:.3f} +- {self.standard_error:.3f}, {self.masked} masked words")
        if self.verdict is None:
            lines.append(f"undecided: {self.reason}.")
        elif self.verdict == self.configured:
            lines.append(f"{self.verdict} fits, as configured.")
        else:
            lines.append(
                f"{self.verdict} fits, but the model is configured as {self.configured}: load it with "
                f"position_projection={self.verdict!r}."
            )
        return "\n".join(lines)


def diagnose_projection(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Iterable[str],
    *,
    max_length: int = 128,
    batch_size: int = 16,
    seed: int = 0,
) -> ProjectionDiagnosis:
    """Compare the two position projections on the same masked words.

    The model is not changed: the comparison runs on copies that share its weights.

    Args:
        model: a NorbertForMaskedLM with its trained head.
        tokenizer: its own.
        texts: sentences in its language; fifty are usually enough.
        max_length: truncate texts to so many tokens.
        batch_size: texts in a forward pass.
        seed: of the choice of the masked words.

    Raises:
        TypeError: the model has no masked-LM head.
        ValueError: no word of the texts can be masked.
    """
    if not isinstance(model, NorbertForMaskedLM):
        raise TypeError(f"a NorbertForMaskedLM is needed, got {type(model).__name__}: load it with task='masked-lm'.")
    mask_id = tokenizer.mask_token_id
    if not isinstance(mask_id, int):
        raise ValueError("the tokenizer has no mask token, so no word can be masked.")
    special = {*tokenizer.all_special_ids, *range(model.config.num_reserved_ids)}
    rows = [torch.tensor(tokenizer(text, truncation=True, max_length=max_length)["input_ids"]) for text in texts]
    words = [torch.tensor([token not in special for token in row.tolist()], dtype=torch.bool) for row in rows]
    generator = torch.Generator().manual_seed(seed)
    masks = [_choose(candidates, generator) for candidates in words]
    kept = [i for i, mask in enumerate(masks) if mask.any()]
    if not kept:
        raise ValueError(f"none of the {len(rows)} texts has a word to mask; pass sentences in the model's language.")
    rows, masks = [rows[i] for i in kept], [masks[i] for i in kept]

    counts = torch.bincount(torch.cat([row[words[i]] for i, row in zip(kept, rows, strict=True)]))
    targets = torch.cat([row[mask] for row, mask in zip(rows, masks, strict=True)])
    by_text = {
        name: _text_losses(_with_projection(model, name), rows, masks, mask_id, batch_size)
        for name in POSITION_PROJECTIONS
    }
    sizes = torch.tensor([int(mask.sum()) for mask in masks], dtype=torch.float64)
    first, second = by_text.values()
    gap = (second - first).sum() / sizes.sum()
    spread = (second - first - gap * sizes).square().sum().sqrt() / sizes.sum()
    return ProjectionDiagnosis(
        losses={name: (losses.sum() / sizes.sum()).item() for name, losses in by_text.items()},
        frequency_loss=-(counts[targets] / counts.sum()).log().mean().item(),
        gap=gap.abs().item(),
        standard_error=spread.item(),
        masked=len(targets),
        configured=model.config.position_projection,
    )


def _choose(candidates: Tensor, generator: torch.Generator) -> Tensor:
    """Choose a share of the candidates at random, at least one where there is any. bool, same shape."""
    count = math.ceil(MASKED_SHARE * int(candidates.sum()))
    keys = torch.rand(candidates.shape, generator=generator).masked_fill(~candidates, -1.0)
    chosen = torch.zeros_like(candidates)
    chosen[keys.topk(count).indices] = True
    return chosen


def _with_projection(model: NorbertForMaskedLM, projection: str) -> NorbertForMaskedLM:
    """Return a model of the same weights, not copied, under another projection."""
    config = copy.deepcopy(model.config)
    config.position_projection = projection
    with torch.device("meta"):
        twin = NorbertForMaskedLM(config)
    twin.load_state_dict(model.state_dict(), assign=True)
    return twin.eval()


@torch.no_grad()
def _text_losses(
    model: NorbertForMaskedLM, rows: list[Tensor], masks: list[Tensor], mask_id: int, batch_size: int
) -> Tensor:
    """Return the summed negative log-likelihood of the masked words of each text. float64 [texts]."""
    losses = []
    for start in range(0, len(rows), batch_size):
        batch = rows[start : start + batch_size]
        ids = pad_sequence(batch, batch_first=True)  # [batch, length]
        masked = pad_sequence(masks[start : start + batch_size], batch_first=True)
        attended = pad_sequence([torch.ones_like(row) for row in batch], batch_first=True)
        shown = ids.masked_fill(masked, mask_id).to(model.device)
        logits = model(shown, attended.to(model.device)).logits.float().cpu()
        loss = F.cross_entropy(logits.transpose(1, 2), ids.masked_fill(~masked, -100), reduction="none")
        losses.append(loss.double().sum(dim=1))
    return torch.cat(losses)
