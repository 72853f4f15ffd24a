"""torch.compile and torch.export: one graph, any batch size and length."""

from __future__ import annotations

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from tests.support import ALL_TASKS, NANO, assert_close, inputs_of, make_batch, make_model, predictions, real

every_encoder = pytest.mark.parametrize("name", NANO)
every_model = pytest.mark.parametrize("task", ALL_TASKS)
LENGTHS = [(12, 5, 9), (7, 7), (3, 17, 4, 2)]


@every_encoder
@every_model
@pytest.mark.parametrize("backend", ["eager", "sdpa"])
def test_compile_without_graph_breaks(name, task, backend):
    """At most three compilations for twenty lengths."""
    model = make_model(name, task, backend)
    torch._dynamo.reset()
    counter = CompileCounter()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend=counter)
    for lengths in [*LENGTHS, *((length, 1 + length // 2) for length in range(4, 38, 2))]:
        batch = make_batch(task, lengths)
        with torch.no_grad():
            expected, actual = model(**batch), compiled(**batch)
        mask = batch["attention_mask"]
        assert_close(real(predictions(actual), mask), real(predictions(expected), mask), 1e-5)
        if task:
            assert_close(actual.loss, expected.loss, 1e-5)
    assert counter.frame_count <= 3


@every_encoder
@every_model
def test_export_with_dynamic_shapes(name, task):
    model = make_model(name, task)
    inputs = inputs_of(make_batch(task))
    batch, length = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("length", min=2, max=512)
    dynamic = {key: {0: batch, value.dim() - 1: length} for key, value in inputs.items()}
    with torch.no_grad():
        program = torch.export.export(model, (), inputs, dynamic_shapes=dynamic)
        for lengths in LENGTHS[1:]:
            other = inputs_of(make_batch(task, lengths))
            mask = other["attention_mask"]
            expected = predictions(model(**other))
            assert_close(real(predictions(program.module()(**other)), mask), real(expected, mask), 1e-5)
