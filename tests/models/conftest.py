"""Loaded tiny models, shared by the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tiny_models import TinyModels

from fillmask_ui.models import load_model
from fillmask_ui.protocol import MaskedLM


@pytest.fixture(scope="session")
def loaded(tiny_models: TinyModels) -> Callable[[str, str], MaskedLM]:
    """`loaded(family, runtime)`: each is loaded once a session."""
    models: dict[tuple[str, str], MaskedLM] = {}

    def get(family: str, runtime: str) -> MaskedLM:
        if (family, runtime) not in models:
            folder = tiny_models.folder(family)
            models[family, runtime] = load_model(folder, runtime=runtime)
        return models[family, runtime]

    return get
