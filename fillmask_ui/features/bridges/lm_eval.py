"""`python -m fillmask_ui.features.bridges.lm_eval`: `lm_eval` with the model `fillmask`."""

import sys
from importlib.util import find_spec

from fillmask_ui.errors import FillmaskError, how_to_install


def register() -> None:
    """Add the model to those of the harness, for versions that read no entry points (0.4.13)."""
    import lm_eval.models  # noqa: F401 - registers its own
    from lm_eval.api.registry import model_registry

    if "fillmask" not in model_registry:
        model_registry.register(
            "fillmask", target="fillmask_ui.features.bridges.harness:FillmaskLM"
        )


if __name__ == "__main__":
    if find_spec("lm_eval") is None:
        sys.exit(f"error: lm_eval is not installed: {how_to_install('harness')}")
    from lm_eval.__main__ import cli_evaluate

    register()
    try:
        cli_evaluate()
    except FillmaskError as error:
        sys.exit(f"error: {error}")
