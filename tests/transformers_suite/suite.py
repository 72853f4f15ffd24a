"""transformers' own common tests, on every model class of every family. Started by `run.py`."""

from __future__ import annotations

import unittest
from collections.abc import Iterator
from typing import Any, ClassVar
from unittest.mock import patch

import pytest
from torch import nn
from transformers import set_seed
from transformers_tests.test_configuration_common import ConfigTester
from transformers_tests.test_modeling_common import ModelTesterMixin, global_rng

import encoders.distilbert
import encoders.helmbert
import encoders.norbert
from encoders.family import Family
from encoders.norbert import NorbertForSequenceClassification
from encoders_shared.model import EncoderPreTrainedModel
from tests.transformers_suite.absent import AbsentFeatures
from tests.transformers_suite.families import SmallModel, announce


class FamilyTest(AbsentFeatures, ModelTesterMixin):
    """All common tests of one family; a subclass gives the family and the sizes of its models."""

    family: ClassVar[Family]
    sizes: ClassVar[dict[str, Any]]
    test_can_init_all_missing_weights_before_2023 = True  # run it, although our files carry no year

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.all_model_classes = tuple(cls.family.tasks.values())
        announce(cls.family)

    def setUp(self):
        set_seed(0)
        global_rng.seed(0)  # of the suite's own ids
        self.model_tester = SmallModel(self.family, self.sizes)
        self.config_tester = ConfigTester(self, config_class=self.family.config_class, **self.sizes)

    def test_config(self):
        self.config_tester.run_common_tests()

    def test_can_capture_specific_layers_hidden_states(self):
        """The suite asks a model which modules transformers' hooks record; here the encoder keeps its states itself."""
        with patch.object(EncoderPreTrainedModel, "_can_record_outputs", {"hidden_states": "LayerTrace"}):
            super().test_can_capture_specific_layers_hidden_states()


class HelmBertTest(FamilyTest, unittest.TestCase):
    family = encoders.helmbert.FAMILY
    sizes = {
        "vocab_size": 99,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 37,
        "max_position_embeddings": 64,
        "max_relative_positions": 64,
        "position_buckets": 16,
    }
    test_resize_position_embeddings = True
    test_all_params_have_gradient = False  # one table has none, see own.py


class NorbertTest(FamilyTest, unittest.TestCase):
    family = encoders.norbert.FAMILY
    sizes = {
        "vocab_size": 99,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 37,
        "max_position_embeddings": 64,
        "position_bucket_size": 8,
        "num_reserved_ids": 0,  # the suite labels every token with 0
    }

    def test_can_load_ignoring_mismatched_shapes(self):
        """The suite seeks the classifier among a model's own parts; here it is deeper, so it is shown to it there."""
        model_class, classifier = NorbertForSequenceClassification, "head.nonlinearity.5"
        own_parts = model_class.named_children

        def parts_and_classifier(model: NorbertForSequenceClassification) -> Iterator[tuple[str, nn.Module]]:
            yield from own_parts(model)
            yield classifier, model.get_submodule(classifier)

        with patch.object(model_class, "named_children", parts_and_classifier):
            super().test_can_load_ignoring_mismatched_shapes()

    def test_resize_position_vector_embeddings(self):
        """There are no absolute positions, and so no table of them to resize: that is said."""
        for model in self.models():
            with pytest.raises(NotImplementedError, match="has no absolute positions: it takes any length as it is"):
                model.resize_position_embeddings(10)


class DistilBertTest(FamilyTest, unittest.TestCase):
    family = encoders.distilbert.FAMILY
    sizes = {
        "vocab_size": 99,
        "dim": 32,
        "n_layers": 2,
        "n_heads": 4,
        "hidden_dim": 37,
        "max_position_embeddings": 64,
    }
    test_resize_position_embeddings = True


del FamilyTest
