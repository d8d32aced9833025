"""Hostile inputs: model folders that somebody damaged or made to harm."""

from cli.hostile.attempt import Attempt

ATTEMPTS: list[Attempt] = []
