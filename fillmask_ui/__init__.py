"""Look inside masked language models: predictions, losses, evaluations.

>>> from fillmask_ui import load_model, fill
>>> model = load_model()  # the embedded model, offline
>>> filling = fill(model, "The opposite of hot is [MASK].", top_k=3)
>>> len(filling.masks[0].candidates)
3

Importing the package loads no heavy library; the names below are imported when first used.
"""

import os
from functools import cache
from typing import Any

from fillmask_ui import extensions, protocol, records

# ONNX Runtime reports its use to its maker unless this is set before it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__version__ = "0.1.0"

_EXPORTS = {
    "models": "load_model available_models",
    "filling": "fill layers score_candidates occlude surprisal",
    "comparing": "compare compare_sentence divergent_sentences pair_masks",
    "scoring": "nll_nats",
    "evaluation": "EvaluationConfig Rows evaluate pseudo_log_likelihoods summarize",
    "runs": "compare_runs",
    "errors": (
        "FillmaskError DataError ModelError ModelOutputError NetworkError OptionError TextError"
    ),
}
# Public name -> its target; those of features are looked up when they are asked for.
_PUBLIC = {
    name: f"fillmask_ui.{module}:{name}"
    for module, names in _EXPORTS.items()
    for name in names.split()
}


def _public() -> dict[str, str]:
    """The public names of the core and of the features."""
    names = dict(_PUBLIC)
    for feature in extensions.features():
        names |= feature.exports
    return names


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_public())
    if name not in _PUBLIC and (name.startswith("_") or name not in _public()):
        raise AttributeError(f"module 'fillmask_ui' has no attribute {name!r}")
    return extensions.load(_PUBLIC.get(name) or _public()[name])


def __dir__() -> list[str]:
    return sorted([*globals(), *_public()])


def _display(form: str, record: object) -> Any:
    """What the room `show` makes of a record; it is imported at the first one."""
    from fillmask_ui.show import displays

    return getattr(displays, form)(record)


@cache
def _models() -> Any:
    """The models that functions were given by reference."""
    from fillmask_ui.models import ModelStore

    return ModelStore()


def _open_reference(reference: str) -> Any:
    return _models().get(reference)


records.Displayed.display = staticmethod(_display)
protocol.References.open = _open_reference
