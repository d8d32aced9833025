from datetime import datetime, timezone

import pytest

from fillmask_ui.runs import RunStore


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs", lambda: datetime(2026, 5, 17, 9, 30, tzinfo=timezone.utc))
