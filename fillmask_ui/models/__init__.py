"""Where masked language models come from: `load_model(reference)` and what is at hand.

Importing this package loads no runtime; each heavy library is imported in one file below, when
a model that needs it is loaded.
"""

from fillmask_ui.models.available import AvailableModel, available_models
from fillmask_ui.models.choice import ModelChoice
from fillmask_ui.models.load import load_choice, load_model
from fillmask_ui.models.progress import LoadProgress
from fillmask_ui.models.store import ModelStore

__all__ = [
    "AvailableModel",
    "LoadProgress",
    "ModelChoice",
    "ModelStore",
    "available_models",
    "load_choice",
    "load_model",
]
