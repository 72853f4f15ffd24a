"""Features that no encoder here has. The suite skips its tests of them; these say in their place what holds instead."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import pytest
import torch
from safetensors import safe_open
from transformers import PreTrainedModel


class AbsentFeatures:
    """To be mixed into a family's tests, before the suite's own."""

    def models(self) -> Iterator[PreTrainedModel]:
        """A model of each task."""
        for model_class in self.all_model_classes:
            yield model_class(self.model_tester.get_config()).eval()

    def assert_wholly_of(self, dtype: torch.dtype) -> None:
        """A model is wholly of the precision that was asked for, whatever it was saved in."""
        for model in self.models():
            with tempfile.TemporaryDirectory() as folder:
                model.save_pretrained(folder)
                loaded = type(model).from_pretrained(folder, dtype=dtype)
            assert {parameter.dtype for parameter in loaded.parameters()} == {dtype}

    def test_keep_in_fp32_modules(self):
        self.assert_wholly_of(torch.float16)

    def test_keep_in_fp32_modules_strict_also_hardcode_fp32(self):
        self.assert_wholly_of(torch.bfloat16)

    def test_keep_in_fp32_modules_exist(self):
        for model in self.models():
            assert not model._keep_in_fp32_modules
            assert not model._keep_in_fp32_modules_strict

    def test_reverse_loading_mapping(self):
        """Weights are saved under the names that they have in the model: nothing is converted on the way out."""
        for model in self.models():
            with tempfile.TemporaryDirectory() as folder:
                model.save_pretrained(folder)
                with safe_open(f"{folder}/model.safetensors", framework="pt") as file:
                    saved = set(file.keys())
            assert saved == model.state_dict().keys() - model.all_tied_weights_keys.keys()

    def test_can_load_from_already_mapped_keys(self):
        """Nor on the way in."""
        for model in self.models():
            with tempfile.TemporaryDirectory() as folder:
                model.save_pretrained(folder)
                loaded, report = type(model).from_pretrained(folder, output_loading_info=True)
            assert not any(report.values()), report
            for name, weight in model.state_dict().items():
                assert torch.equal(loaded.state_dict()[name], weight), name

    def test_tp_plan_matches_params(self):
        """No plan for tensor parallelism is offered, so none can be wrong."""
        for model in self.models():
            assert not model.tp_plan

    def test_capture_outputs_decorator(self):
        """No hook of transformers records anything: the encoder keeps its states and weights itself."""
        for model in self.models():
            assert not any(getattr(module, "_can_record_outputs", None) for module in model.modules())
            ids = self._prepare_for_class(self.model_tester.prepare_config_and_inputs_for_common()[1], type(model))
            output = model(**ids, output_hidden_states=True, output_attentions=True)
            assert len(output.hidden_states) == len(output.attentions) + 1 == model.config.num_hidden_layers + 1

    def assert_no_experts(self) -> None:
        for model in self.models():
            assert not model._can_set_experts_implementation()
            ids = self._prepare_for_class(self.model_tester.prepare_config_and_inputs_for_common()[1], type(model))
            with pytest.raises(TypeError, match="unknown keyword 'output_router_logits'"):
                model(**ids, output_router_logits=True)

    def test_eager_matches_batched_and_grouped_inference_0_fp16(self):
        self.assert_no_experts()

    def test_eager_matches_batched_and_grouped_inference_1_fp32(self):
        self.assert_no_experts()

    def test_eager_matches_batched_and_grouped_inference_2_bf16(self):
        self.assert_no_experts()

    def test_moe_models_record_router_logits(self):
        self.assert_no_experts()

    def test_output_router_logits_from_config(self):
        """The configuration has no such field: what a file says of it is kept, and changes nothing."""
        for model in self.models():
            assert not hasattr(model.config, "output_router_logits")
