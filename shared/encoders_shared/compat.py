"""The one door to the parts of transformers that are not public and move between releases.

Everything else in this project imports only public names of transformers.
"""

from huggingface_hub.dataclasses import strict
from huggingface_hub.errors import StrictDataclassError
from transformers import initialization
from transformers.modeling_layers import GradientCheckpointingLayer

__all__ = ["GradientCheckpointingLayer", "StrictDataclassError", "initialization", "strict"]
