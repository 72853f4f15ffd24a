from typing import Any

import pytest

from encoders.experiments.errors import ExperimentError
from encoders.experiments.settings import LEARNING_RATE_FRESH, LEARNING_RATE_PRETRAINED, Settings


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"seeds": 0}, "seeds must be 1 or more, not 0"),
        ({"epochs": -1}, "epochs must be 1 or more, not -1"),
        ({"batch_size": 0}, "batch_size must be 1 or more, not 0"),
        ({"max_length": 2}, "max_length must be 3 or more, not 2"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0 and at most 1, not 0"),
        ({"learning_rate": float("nan")}, "learning_rate must be above 0 and at most 1, not nan"),
        ({"pooling": "max"}, "pooling must be mean or cls, not 'max'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any], message: str):
    with pytest.raises(ExperimentError, match=message):
        Settings(**wrong)


def test_the_learning_rate_depends_on_the_start_unless_it_is_given():
    assert Settings().peak_learning_rate(pretrained=False) == LEARNING_RATE_FRESH
    assert Settings().peak_learning_rate(pretrained=True) == LEARNING_RATE_PRETRAINED
    assert Settings(learning_rate=0.1).peak_learning_rate(pretrained=True) == 0.1
