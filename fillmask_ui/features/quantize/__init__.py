"""Quantized variants of a model: made, measured side by side, diagnosed."""
