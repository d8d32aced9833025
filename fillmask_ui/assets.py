"""Where the files that ship with the project lie.

In a clone and an editable install they are `assets/` beside the package; a wheel carries them
inside the package as `_assets/`.
"""

from pathlib import Path

from fillmask_ui.errors import ModelError


def asset(name: str) -> Path:
    """Path of a shipped folder or file, e.g. `model` or `texts`.

    Raises:
        ModelError: if the installation lacks it.
    """
    package = Path(__file__).parent
    for root in (package / "_assets", package.parent / "assets"):
        if (root / name).exists():
            return root / name
    raise ModelError(
        f"the shipped asset {name!r} is missing from this installation; "
        "reinstall with: pip install --force-reinstall fillmask-ui"
    )
