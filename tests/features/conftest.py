"""What tests of several features share."""

import pytest
from once import Once


@pytest.fixture(scope="session")
def packed(once: Once) -> None:
    """The scripts of the page without a server, as a wheel has them, by what npm installed."""
    from fillmask_ui.features.site.scripts import HERE, ensure_packed

    assert (HERE / "node_modules").is_dir(), (
        "npm ci --ignore-scripts --prefix fillmask_ui/features/site"
    )
    once.do("packed", ensure_packed)
