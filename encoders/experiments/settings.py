"""How every backbone of a comparison is trained."""

from dataclasses import dataclass

from encoders.experiments.errors import ExperimentError

BACKBONES = ("helmbert-nano", "norbert3-nano", "distilbert-nano")
"""What is compared if nothing else is asked for: each family's smallest preset."""

LEARNING_RATE_FRESH = 1e-3
LEARNING_RATE_PRETRAINED = 5e-5
WARMUP = 0.1
"""The part of the steps in which the learning rate rises; it falls linearly to zero in the others."""
WEIGHT_DECAY = 0.01


@dataclass(frozen=True)
class Settings:
    """The choices of a comparison that hold for all backbones.

    Attributes:
        seeds: how many runs each backbone gets; their seeds are 0, 1, ...
        epochs: passes over the training split; the weights after the one that is best on dev are scored.
        batch_size: rows in a training step.
        learning_rate: the peak; None for `LEARNING_RATE_FRESH` or `LEARNING_RATE_PRETRAINED`, as a backbone starts.
        max_length: tokens at which texts are truncated; None to refuse texts longer than a backbone was made for.
        pooling: "mean" or "cls" for all backbones; None for what each one was published with.
    """

    seeds: int = 3
    epochs: int = 5
    batch_size: int = 32
    learning_rate: float | None = None
    max_length: int | None = None
    pooling: str | None = None

    def __post_init__(self):
        for name, smallest in {"seeds": 1, "epochs": 1, "batch_size": 1, "max_length": 3}.items():
            value = getattr(self, name)
            if value is not None and value < smallest:
                raise ExperimentError(f"{name} must be {smallest} or more, not {value}")
        if self.learning_rate is not None and not 0 < self.learning_rate <= 1:
            raise ExperimentError(f"learning_rate must be above 0 and at most 1, not {self.learning_rate:g}")
        if self.pooling not in {None, "mean", "cls"}:
            raise ExperimentError(f"pooling must be mean or cls, not '{self.pooling}'")

    def peak_learning_rate(self, *, pretrained: bool) -> float:
        """Return the learning rate asked for, or else the usual one for trained or fresh weights."""
        return self.learning_rate or (LEARNING_RATE_PRETRAINED if pretrained else LEARNING_RATE_FRESH)
