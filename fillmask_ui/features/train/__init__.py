"""Trains a masked language model and packages it with a model card."""
