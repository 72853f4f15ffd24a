"""Every published layout, written from a model of the reference implementation, gives that model's numbers.

Where the reference implementations are not at hand, test_golden_layouts.py stands for this.
"""

from __future__ import annotations

import warnings

import pytest
import torch

import encoders
from tests.encoders.checkpoints.folders import FORMS, TASK_OF_HEAD, code_was_run
from tests.encoders.checkpoints.references import reference_model
from tests.support import assert_close, predictions, real

CASES = [
    *(("helmbert", head) for head in ("", "MaskedLM", "SequenceClassification")),
    *(
        ("norbert3", head)
        for head in ("", "MaskedLM", "SequenceClassification", "TokenClassification", "QuestionAnswering")
    ),
    *((form, head) for form in ("bnc", "babylm", "hplt") for head in ("", "MaskedLM", "TokenClassification")),
    *(
        (form, head)
        for form in ("distilbert", "distilbert-3")
        for head in ("", "MaskedLM", "SequenceClassification", "TokenClassification", "QuestionAnswering")
    ),
]


@pytest.mark.parametrize(("form", "head"), CASES)
def test_equal_to_the_reference(reference, form, head, tmp_path):
    model, fields = reference_model(reference, form, head)
    folder = tmp_path / FORMS[form].folder
    folder.mkdir()
    FORMS[form].write(folder, head, fields, dict(model.state_dict()))
    task = TASK_OF_HEAD[head]
    with warnings.catch_warnings(action="ignore"):
        ours, report = encoders.load(str(folder), task=task, return_report=True)
    assert report.layout == FORMS[form].layout
    assert not report.missing
    assert not code_was_run(folder)

    first = 5 if form == "helmbert" else 110
    ids = torch.randint(first, 78 if form == "helmbert" else 200, (3, 41))
    mask = (torch.arange(41) < torch.tensor([41, 17, 30])[:, None]).long()
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):
        expected = predictions(model(input_ids=ids, attention_mask=mask, return_dict=True))
        actual = predictions(ours(input_ids=ids, attention_mask=mask))
    if task == "masked-lm" and form in ("bnc", "babylm", "hplt"):  # the reference always reserves NorBERT3's 107 ids
        expected, actual = expected[..., 107:], actual[..., 107:]
    assert_close(real(actual, mask), real(expected, mask), 1e-5, f"{form} {head}")
