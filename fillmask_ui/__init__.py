"""Look inside masked language models: predictions, losses, evaluations.

>>> from fillmask_ui import load_model, fill
>>> model = load_model()  # the embedded model, offline
>>> filling = fill(model, "The opposite of hot is [MASK].", top_k=3)
>>> len(filling.masks[0].candidates)
3

Importing the package loads no heavy library; the names below are imported when first used.
"""

import importlib
import os
from typing import Any

# ONNX Runtime reports its use to its maker unless this is set before it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__version__ = "0.1.0"

# Public name -> module that defines it; imported on first use.
_PUBLIC = {
    "load_model": "fillmask_ui.models",
    "available_models": "fillmask_ui.models",
    "fill": "fillmask_ui.filling",
    "score_candidates": "fillmask_ui.filling",
    "sentence_surprise": "fillmask_ui.filling",
    "occlude": "fillmask_ui.filling",
    "pair_masks": "fillmask_ui.filling",
    "compare": "fillmask_ui.comparing",
    "compare_sentence": "fillmask_ui.comparing",
    "where_they_part": "fillmask_ui.comparing",
    "unmask": "fillmask_ui.unmasking",
    "UnmaskingConfig": "fillmask_ui.unmasking",
    "nll_nats": "fillmask_ui.scoring",
    "EvaluationConfig": "fillmask_ui.evaluation",
    "evaluate": "fillmask_ui.evaluation",
    "summarize": "fillmask_ui.evaluation",
    "compare_runs": "fillmask_ui.runs",
    "FillmaskError": "fillmask_ui.errors",
}

__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'fillmask_ui' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
