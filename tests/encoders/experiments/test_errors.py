import importlib.util

import pytest

import encoders.experiments
from encoders.experiments import errors


def test_missing_extras_are_named_with_the_command_that_installs_them(monkeypatch: pytest.MonkeyPatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(errors, "find_spec", lambda name: None if name in {"sklearn", "accelerate"} else found(name))
    with pytest.raises(ImportError, match=r"need accelerate, scikit-learn: .* 'encoder-zoo\[train,plot\]'"):
        _ = encoders.experiments.compare


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="has no attribute 'compete'"):
        _ = encoders.experiments.compete  # pyright: ignore[reportAttributeAccessIssue]
