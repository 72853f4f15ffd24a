"""Every published layout, written from the golden files, gives the numbers that its own code gave."""

from __future__ import annotations

import json
import warnings

import pytest
import torch

import encoders
from tests.encoders.checkpoints.folders import FORMS, code_was_run, golden_folder
from tests.support import assert_close, inputs_of, predictions, real

INTERLEAVED = [
    "norbert-interleaved-model",
    "norbert-interleaved-model-published-buckets",
    "norbert-interleaved-masked-lm",
]
CONTIGUOUS = [
    "norbert-contiguous-model",
    "norbert-contiguous-model-published-buckets",
    "norbert-contiguous-masked-lm",
]
NORBERT_TASKS = [
    f"norbert-interleaved-{task}"
    for task in ("sequence-classification", "token-classification", "question-answering", "multiple-choice")
]
HELMBERT = [
    f"helmbert-{case}"
    for case in (
        "model",
        "model-c2p-only",
        "model-kernel5",
        "model-no-position",
        "model-p2c-only",
        "model-published-buckets",
        "model-shared-key",
        "model-unbucketed",
        "masked-lm",
        "masked-lm-published-buckets",
        "sequence-classification",
        "sequence-regression-mlp",
    )
]
DISTILBERT = [
    f"distilbert-{case}"
    for case in (
        "model",
        "model-relu",
        "masked-lm",
        "sequence-classification",
        "sequence-regression",
        "token-classification",
        "question-answering",
        "multiple-choice",
    )
]
CASES = [
    *(("helmbert", case) for case in HELMBERT),
    *(("norbert3", case) for case in INTERLEAVED + NORBERT_TASKS),
    *(("bnc", case) for case in INTERLEAVED),
    *(("babylm", case) for case in CONTIGUOUS),
    *(("hplt", case) for case in CONTIGUOUS),
    *(("distilbert", case) for case in DISTILBERT),
    *(("distilbert-3", case) for case in DISTILBERT),
]


class Output(dict):
    """Golden outputs, to be read like a model's."""

    def __getattr__(self, name):
        return self[name]


RESERVED = {"norbert3": 107, "bnc": 0, "babylm": 0, "hplt": 105}
UPSTREAM_MASK = 107


def load(form, folder, task):
    """Load a folder; where config.json leaves the projection open and the layout is contiguous, one warning says so."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, report = encoders.load(str(folder), task=task, return_report=True)
    expected = 1 if form in ("babylm", "hplt") else 0
    assert len(caught) == expected, [str(warning.message) for warning in caught]
    assert all("encoders diagnose" in str(warning.message) for warning in caught)
    return model, report


@pytest.mark.parametrize(("form", "case"), CASES)
def test_golden_outputs(form, case, tmp_path):
    folder, task, tensors = golden_folder(form, case, tmp_path)
    model, report = load(form, folder, task)
    assert report.layout == FORMS[form].layout
    assert not report.missing
    assert not report.unexpected
    assert not code_was_run(folder)
    with torch.no_grad():
        ours = predictions(model(**inputs_of(tensors["in"])))
    expected = predictions(Output(tensors["out"]))
    if task == "masked-lm" and form in RESERVED:  # which ids are never predicted is tested by itself, below
        ours, expected = ours[..., UPSTREAM_MASK:], expected[..., UPSTREAM_MASK:]
    mask = tensors["in"]["attention_mask"]
    assert_close(real(ours, mask), real(expected, mask), 1e-5, f"{form} {case}")


@pytest.mark.parametrize("form", RESERVED)
def test_reserved_ids(form, tmp_path):
    """HPLT's own code forbids 107 ids, of which two are ordinary characters; ours forbids the 105 that are meant."""
    contiguous = form in ("babylm", "hplt")
    case = f"norbert-{'contiguous' if contiguous else 'interleaved'}-masked-lm"
    folder, task, tensors = golden_folder(form, case, tmp_path)
    model, _ = load(form, folder, task)
    assert model.config.num_reserved_ids == RESERVED[form]
    with torch.no_grad():
        logits = model(**inputs_of(tensors["in"])).logits
    assert logits[..., : RESERVED[form]].eq(float("-inf")).all()
    assert logits[..., RESERVED[form] :].isfinite().all()


@pytest.mark.parametrize("form", [form for form in FORMS if form not in ("babylm",)])
def test_config_survives_the_round_trip(form, tmp_path):
    """What was decided is written down: the second time nothing is left open, and nothing is warned of."""
    case = {"helmbert": "helmbert-masked-lm", "hplt": "norbert-contiguous-masked-lm"}.get(
        form, "distilbert-masked-lm" if form.startswith("distil") else "norbert-interleaved-masked-lm"
    )
    folder, task, tensors = golden_folder(form, case, tmp_path)
    model, _ = load(form, folder, task)
    model.save_pretrained(tmp_path / "saved")
    again, report = encoders.load(str(tmp_path / "saved"), task=task, return_report=True)
    assert not report.notes
    assert "auto_map" not in json.loads((tmp_path / "saved" / "config.json").read_text())
    with torch.no_grad():
        first, second = (one(**inputs_of(tensors["in"])).logits for one in (model, again))
    assert_close(second, first, 1e-6)
