"""Transformer encoders under one contract: create by name, swap, compare."""
