"""Weights on disk to a transformers model on PyTorch."""

import threading
from typing import Any

import torch

from fillmask_ui.errors import ModelError, first_line
from fillmask_ui.models.files import ModelFiles
from fillmask_ui.models.quiet import quiet_transformers
from fillmask_ui.models.weights import refuse_mismatched, refuse_missing, refuse_more_layers

# transformers swaps functions of torch while it builds a model: one thread at a time.
_BUILDING = threading.Lock()


def read_torch(
    files: ModelFiles, loader: str, what: str, dtype: torch.dtype, device: torch.device
) -> Any:
    """All weights in the class that config.json names, on the device.

    Args:
        files: of the model.
        loader: class of transformers that chooses the model's own, such as `AutoModelForMaskedLM`.
        what: it is loaded as, for messages.
        dtype: to compute in.
        device: to compute on.

    Raises:
        ModelError: if it cannot be loaded, or weights are missing.
    """
    with _BUILDING, quiet_transformers():
        import transformers

        try:
            model, info = getattr(transformers, loader).from_pretrained(
                files.folder,
                dtype=dtype,
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # to say which they are
            )
            model = model.to(device)
        # A config can ask for what is not installed or does not fit in many ways, and each
        # library has its own errors; whatever it is, this model cannot be loaded.
        except Exception as error:
            raise ModelError(
                f"{files.name} cannot be loaded as {what}: {first_line(error)}"
            ) from error
    refuse_mismatched(files.name, info["mismatched_keys"])
    refuse_more_layers(files.name, model.state_dict(), info["unexpected_keys"])
    refuse_missing(files.name, type(model).__name__, sorted(info["missing_keys"]))
    return model.eval()
