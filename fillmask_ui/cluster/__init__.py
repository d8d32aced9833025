"""Evaluations on the processes of Ray, on this machine or many, with the digits of one process."""

from fillmask_ui.cluster.choice import LOCAL, RAY, EngineChoice, ray_installed
from fillmask_ui.cluster.opening import open_engine

__all__ = ["LOCAL", "RAY", "EngineChoice", "open_engine", "ray_installed"]
