"""Where masked language models come from: `load_model(reference)` and what is at hand.

Importing this package loads no runtime; each heavy library is imported in one file below, when
a model that needs it is loaded.
"""

from __future__ import annotations

import importlib
from typing import Any

# Public name -> module that defines it; imported on first use.
_PUBLIC = {
    "AvailableModel": "fillmask_ui.models.available",
    "LoadProgress": "fillmask_ui.models.progress",
    "ModelStore": "fillmask_ui.models.store",
    "available_models": "fillmask_ui.models.available",
    "load_model": "fillmask_ui.models.load",
}

__all__ = [
    "AvailableModel",
    "LoadProgress",
    "ModelStore",
    "available_models",
    "load_model",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'fillmask_ui.models' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
