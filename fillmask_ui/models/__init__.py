"""Where masked language models come from; a heavy library is imported when a model needs it."""

from fillmask_ui.models.load import AvailableModel, available_models, load_choice, load_model
from fillmask_ui.models.loading_progress import LoadProgress
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.models.model_store import ModelStore

__all__ = [
    "AvailableModel",
    "LoadProgress",
    "ModelChoice",
    "ModelStore",
    "available_models",
    "load_choice",
    "load_model",
]
