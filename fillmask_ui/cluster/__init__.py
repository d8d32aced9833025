"""Evaluations on the processes of Ray, on this machine or many, with the digits of one process."""

from fillmask_ui.cluster.choice import EngineChoice, open_engine, ray_installed

__all__ = ["EngineChoice", "open_engine", "ray_installed"]
