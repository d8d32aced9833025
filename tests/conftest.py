"""Fixtures that all tests share, and which tests are quick."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

if "PYTEST_XDIST_WORKER" in os.environ:
    # The workers fill the cores: threads of each would only wait for those of the others.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# What is kept from start to start: not in the home of whoever runs the tests.
for _name in ("CACHE", "VARIANTS"):
    if f"FILLMASK_UI_{_name}" not in os.environ:
        _folder = tempfile.mkdtemp(prefix=f"fillmask-ui-{_name.lower()}-")
        os.environ[f"FILLMASK_UI_{_name}"] = _folder
        atexit.register(shutil.rmtree, _folder, ignore_errors=True)

# Two busy cores may keep one example waiting.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

pytest_plugins = ["once", "tiny_models", "loopback_hub"]

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
    "bench",
    "cli",
    "cloze",
    "cluster",
    "evaluation/test_coverage.py",
    "evaluation/test_intervals.py",
    "evaluation/test_real_models.py",
    "evaluation/test_report.py",
    "evaluation/test_runs_resume.py",
    "models",
    "recorded",
    "sweeps/test_perform.py",
    "sweeps/test_table.py",
    "test_docs.py",
    "test_package.py",
    "texts/test_memory.py",
    "training",
    "ui/test_api.py",
    "ui/test_app.py",
    "ui/test_evaluate_controls.py",
    "ui/test_evaluate_jobs.py",
    "ui/test_evaluate_plots.py",
    "ui/test_evaluate_result.py",
    "ui/test_replicas.py",
    "ui/test_visitors.py",
    "ui/test_answers.py",
    "test_variants_measure.py",
)


# Left out by default, run by `pytest -m slow`: simulations, and faults of many processes.
LONG_TESTS = (
    "tests/cluster/test_faults.py",
    "tests/cluster/test_machines.py",
    "tests/evaluation/test_intervals.py::test_intervals_cover_the_truth[200]",
    "tests/evaluation/test_intervals.py::test_paired_relative_change_covers_the_truth",
    "tests/evaluation/test_runs_resume.py::test_memory_of_many_texts",
    "tests/ui/test_replicas.py",
)

# Rooms whose import takes seconds.
SLOW_ROOMS = ("fillmask_ui/training", "fillmask_ui/onnx_tools")


def _in_slow_place(path: Path) -> bool:
    root = TESTS.parent
    place = path.relative_to(root).as_posix() if root in path.parents else ""
    return place.removeprefix("tests/").startswith(SLOW_PLACES) or place.startswith(SLOW_ROOMS)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what `-m quick` leaves out."""
    return True if config.option.markexpr == "quick" and _in_slow_place(collection_path) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Mark what is quick and what is slow; journeys, which share a browser, come last.

    A test that starts processes of Ray is tried again: two busy cores may keep it waiting too long.
    """
    for item in items:
        if item.path.parent == TESTS / "cluster":
            item.add_marker(pytest.mark.flaky(reruns=1))
        if item.nodeid.startswith(LONG_TESTS):
            item.add_marker("slow")
        needs_slow = SLOW_FIXTURES & set(getattr(item, "fixturenames", ()))
        if not needs_slow and not _in_slow_place(item.path):
            item.add_marker("quick")
    yield  # to what chooses by these marks, and to what shuffles
    items.sort(key=lambda item: "browser" in getattr(item, "fixturenames", ()))
