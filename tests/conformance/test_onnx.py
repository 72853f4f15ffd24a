"""ONNX: exported with a dynamic batch and length, run by another engine, the same numbers."""

from __future__ import annotations

import warnings

import pytest
import torch

from tests.support import NANO, assert_close, inputs_of, make_batch, make_model

pytest.importorskip("onnxscript", reason="the extra `export` is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra `export` is not installed")


@pytest.mark.parametrize("name", NANO)
def test_another_engine_gives_the_same(name, tmp_path):
    model = make_model(name, "sequence-classification")
    inputs = inputs_of(make_batch(None))
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length", min=2, max=512)
    with warnings.catch_warnings(action="ignore"):  # of the exporter
        program = torch.onnx.export(
            model,
            (),
            kwargs=inputs,
            dynamic_shapes={key: {0: batch, 1: length} for key in inputs},
            dynamo=True,
            verbose=False,
        )
    program.save(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    other = inputs_of(make_batch(None, lengths=(3, 17, 4, 2)))
    (logits,) = session.run(None, {key: value.numpy() for key, value in other.items()})
    assert_close(torch.from_numpy(logits), model(**other).logits.detach(), 1e-5)
