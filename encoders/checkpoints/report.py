"""What happened when a checkpoint was loaded."""

from __future__ import annotations

from dataclasses import dataclass

from encoders_shared.errors import listed


@dataclass(frozen=True)
class LoadReport:
    """What happened when a checkpoint was loaded. Names are those of the model's state_dict unless said otherwise.

    Attributes:
        source: the folder or hub id.
        family: the family it belongs to.
        layout: the published layout it has.
        evidence: what it was recognised by.
        dtype: type of the model's parameters.
        loaded: tensors that came from the checkpoint.
        missing: tensors that the checkpoint lacks and that were initialised afresh.
        unexpected: tensors of the checkpoint that the model has no place for, by their published names.
        tied: tensors that share the memory of another, {this one: the other}.
        converted: loaded tensors that have another name in the checkpoint, or whose values were combined, {this one:
            what it was made from}.
        notes: what config.json left open, and how it was decided.
        unknown_keys: keys of config.json that the configuration has no field for. Nothing reads them, but they are kept
            in it, except settings of text generation and names of parts of its class.
    """

    source: str
    family: str
    layout: str
    evidence: str
    dtype: str
    loaded: tuple[str, ...]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    tied: dict[str, str]
    converted: dict[str, str]
    notes: tuple[str, ...]
    unknown_keys: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.source}: {self.layout} ({self.family}, seen by its {self.evidence}), {self.dtype}"]
        for label, names in (
            ("loaded", [f"{len(self.loaded)} tensors"]),
            ("missing", self.missing),
            ("unexpected", self.unexpected),
            ("tied", [f"{one} = {other}" for one, other in self.tied.items()]),
            ("converted", [f"{len(self.converted)} tensors"] if self.converted else []),
            ("unknown", self.unknown_keys),
        ):
            lines.append(f"{label:<12}{listed(names) or '-'}")
        return "\n".join([*lines, *(f"{'note':<12}{note}" for note in self.notes)])
