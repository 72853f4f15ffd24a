"""Every attention backend gives the same predictions, asked for as transformers asks for one."""

from __future__ import annotations

import pytest
import torch

from encoders_shared.attention import BACKENDS
from tests.support import ALL_TASKS, NANO, assert_close, make_batch, make_model, predictions, real

pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


@pytest.mark.parametrize("name", NANO)
@pytest.mark.parametrize("task", ALL_TASKS)
@pytest.mark.parametrize("packing", [True, False])
def test_same_predictions(name, task, packing):
    model, batch = make_model(name, task), make_batch(task)
    model.trunk.packing = packing
    found = {}
    for backend in BACKENDS:
        model.set_attn_implementation(backend)
        with torch.no_grad():
            found[backend] = real(predictions(model(**batch)), batch["attention_mask"])
    for backend, values in found.items():
        assert_close(values, found["eager"], 1e-5, backend)


@pytest.mark.parametrize("name", NANO)
def test_the_default_has_transformers_name(name):
    model = make_model(name, None, backend="tiled")
    model.set_attn_implementation("auto")
    assert model.config._attn_implementation == "sdpa"
