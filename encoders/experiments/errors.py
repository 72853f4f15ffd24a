"""The two ways in which a comparison is refused before it starts."""

from importlib.util import find_spec


class ExperimentError(ValueError):
    """A comparison that cannot be run as asked; the message is one line that names the thing and what to do."""


class MissingExtraError(ImportError):
    """A package is not installed that only the optional parts of the library need."""


def require_extras() -> None:
    """Refuse to start without the packages that training, scoring and plotting need.

    Raises:
        MissingExtraError: names the packages that are missing and the command that installs them.
    """
    packages = {"accelerate": "accelerate", "sklearn": "scikit-learn", "matplotlib": "matplotlib"}
    missing = [distribution for module, distribution in packages.items() if find_spec(module) is None]
    if missing:
        raise MissingExtraError(
            f"comparisons need {', '.join(missing)}: install with pip install 'encoder-zoo[train,plot]'"
        )
