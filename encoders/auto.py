"""Importing this module registers every family with transformers' Auto classes."""

from encoders.registry import families

__all__ = ["families"]

families()
