"""Attention: where each head of each layer looks, from a mask and at it."""
