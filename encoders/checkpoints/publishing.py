"""Back to the form that a family's own published code reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from encoders_shared.checkpoints import CheckpointError
from encoders_shared.errors import listed
from encoders_shared.model import EncoderPreTrainedModel
from encoders_shared.tasks import MultipleChoice, SequenceClassification

_NOT_PUBLISHED = ("_name_or_path", "transformers_version", "architectures", "model_type", "pooling")


def published_config(
    model: EncoderPreTrainedModel, class_name: str, classes: Mapping[str, str], *, model_type: str | None
) -> dict[str, Any]:
    """Return the content of config.json for a family's own published code.

    Our own fields stay in it: that code passes over what it doesn't know, and the way back needs them.

    Args:
        model: the model.
        class_name: what that code calls the model's class.
        classes: the classes that it has, by Auto class, as in `auto_map`.
        model_type: what it calls the architecture; None if it doesn't.

    Raises:
        CheckpointError: there is no such class, or it would pool in another way.
    """
    known = sorted({path.rpartition(".")[2] for path in classes.values()})
    if class_name not in known:
        raise CheckpointError(f"the published code has no {class_name}; it has {listed(known)}.")
    config = model.config
    usual = type(config)().pooling
    if config.pooling != usual and isinstance(model, SequenceClassification | MultipleChoice):
        raise CheckpointError(
            f"this model pools by {config.pooling!r} and the published code by {usual!r}: it would give other numbers."
        )
    named = {"model_type": model_type} if model_type else {}
    fields = {name: value for name, value in config.to_dict().items() if name not in _NOT_PUBLISHED}
    fields["torch_dtype"] = fields.pop("dtype")
    return {"architectures": [class_name], "auto_map": dict(classes), **named, **fields}
