"""Helpers of the error messages."""

import pytest
import torch

from encoders_shared.errors import ConfigurationError, can_read, listed, suggestion


def test_suggestion_of_the_nearest_name():
    assert suggestion("atention_mask", ["input_ids", "attention_mask"]) == " Did you mean 'attention_mask'?"
    assert suggestion("xyz", iter(["input_ids", "attention_mask"])) == ""
    assert suggestion("anything", []) == ""


def test_listed():
    assert listed(["a", 1]) == "a, 1"
    assert listed({"x": 0, "y": 1}) == "x, y"
    assert listed([]) == ""


def test_configuration_errors_are_value_errors():
    assert issubclass(ConfigurationError, ValueError)


def test_values_can_be_read():
    assert can_read()
    assert can_read(torch.zeros(2), torch.zeros(3))
    assert not can_read(torch.zeros(2), torch.zeros(2, device="meta"))


def sign(x):
    return x if can_read(x) else -x


def test_values_are_not_read_while_compiling():
    one = torch.ones(1)
    assert sign(one) == 1
    assert torch.compile(sign, fullgraph=True, backend="eager")(one) == -1


@pytest.mark.parametrize("strict", [False, True])
def test_values_are_not_read_while_exporting(strict):
    class Sign(torch.nn.Module):
        def forward(self, x):
            return sign(x)

    assert torch.export.export(Sign(), (torch.ones(1),), strict=strict).module()(torch.ones(1)) == -1
