"""Hostile inputs: texts and data sets."""

from cli.hostile.attempt import Attempt

ATTEMPTS: list[Attempt] = []
