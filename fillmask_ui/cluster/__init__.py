"""Evaluations on the processes of Ray, on this machine or many, with the digits of one process."""

from fillmask_ui.cluster.choice import LOCAL, RAY, EngineChoice, open_engine, ray_installed

__all__ = ["LOCAL", "RAY", "EngineChoice", "open_engine", "ray_installed"]
