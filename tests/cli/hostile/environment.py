"""Hostile inputs: an environment in which little is as expected."""

from cli.hostile.attempt import Attempt

ATTEMPTS: list[Attempt] = [
    Attempt(
        "predict into a mask that is none",
        ("predict", "The cat sat on the mat."),
        ("[MASK]",),
        code=2,
    ),
]
