"""Hostile inputs: stored runs that somebody altered."""

from cli.hostile.attempt import Attempt

ATTEMPTS: list[Attempt] = []
