"""Fixtures that all tests share, and which tests are quick."""

import os
from pathlib import Path

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:
    # The workers fill the cores: threads of each would only wait for those of the others.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

pytest_plugins = ["tiny_models", "loopback_hub"]

TESTS = Path(__file__).parent
# What takes seconds to make: a served page, a browser, a hub, exported or trained models.
SLOW_FIXTURES = {
    "address",
    "browser",
    "config_file",
    "fillmask",
    "loopback_hub",
    "page",
    "served",
    "tiny_models",
    "trained",
    "workshop",
}
# Tests that start processes, train, simulate or measure memory.
SLOW_PLACES = (
    "cli",
    "cloze",
    "evaluation/test_intervals.py",
    "evaluation/test_report.py",
    "evaluation/test_runs_resume.py",
    "models/test_loading.py",
    "test_docs.py",
    "test_package.py",
    "texts/test_memory.py",
    "training",
    "ui/test_api.py",
    "ui/test_app.py",
    "ui/test_evaluate_job.py",
    "ui/test_evaluate_tab.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as quick what needs none of the above: `pytest -m quick` while one writes code."""
    for item in items:
        slow = SLOW_FIXTURES & set(getattr(item, "fixturenames", ()))
        place = item.path.relative_to(TESTS).as_posix() if TESTS in item.path.parents else ""
        if not slow and not place.startswith(SLOW_PLACES):
            item.add_marker("quick")
