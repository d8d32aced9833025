"""Heads that a reader trains on the frozen states of a model: classes, pairs, tags."""
