"""Fixtures that all tests share, and which tests are quick."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

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

pytest_plugins = ["once", "tiny_models", "loopback_hub", "page_fixtures", "program_fixtures"]

TESTS = Path(__file__).parent
# Tests that start processes, train, simulate, measure memory, or ask the embedded model.
SLOW_PLACES = (
    *("cli", "models", "recorded", "texts", "ui", "features/test_"),
    *(f"features/{name}" for name in ("bridges", "mcp", "quantize", "ray", "site", "train")),
    *("features/classroom/test_class", "stranger"),
    *("features/course/test_learn", "features/course/test_next"),
    *(f"features/course/test_lessons_{name}" for name in ("context", "exercises", "masking")),
    *(f"features/course/test_lessons_{name}" for name in ("senses", "uncertainty")),
    *("features/sweep", "features/unmask/test_unmask_", "features/unmask/test_unmasking_metric"),
    *("evaluation/test_coverage", "evaluation/test_intervals", "evaluation/test_real_models"),
    *("evaluation/test_evaluate_threads", "evaluation/test_masking", "evaluation/test_report"),
    *("evaluation/test_runs", "test_divergence", "test_parts"),
)

# Left out by default, run by `pytest -m slow`: simulations, and faults of many processes.
LONG_TESTS = (
    "tests/features/ray/test_faults.py",
    "tests/features/ray/test_machines.py",
    "tests/evaluation/test_runs.py::test_memory_of_many_texts",
    "tests/ui/test_replicas.py",
)

# Rooms whose import takes seconds.
SLOW_ROOMS = ("fillmask_ui/features", "fillmask_ui/onnx_tools", "fillmask_ui/ui")


def pytest_xdist_auto_num_workers() -> int:
    """Workers of `-n auto`: more than cores, as browsers and other processes keep them waiting."""
    cores = os.cpu_count() or 1
    return cores + (cores + 1) // 2


def _in_slow_place(path: Path) -> bool:
    root = TESTS.parent
    place = path.relative_to(root).as_posix() if root in path.parents else ""
    return place.removeprefix("tests/").startswith(SLOW_PLACES) or place.startswith(SLOW_ROOMS)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what `-m quick` leaves out."""
    return True if config.option.markexpr == "quick" and _in_slow_place(collection_path) else None


@pytest.fixture(scope="session", params=["embedded", "embedded:int8"])
def shipped(request: pytest.FixtureRequest) -> Any:
    """The models that ship: in full precision, then in int8."""
    from fillmask_ui import load_model

    return load_model(request.param)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Mark what is quick and what is slow; journeys, which share a browser, come last.

    A test that starts processes of Ray is tried again: two busy cores may keep it waiting too long.
    """
    for item in items:
        if item.path.parent == TESTS / "features" / "ray":
            item.add_marker(pytest.mark.flaky(reruns=1))
        if item.nodeid.startswith(LONG_TESTS):
            item.add_marker("slow")
        needs_slow = "tiny_models" in getattr(item, "fixturenames", ())
        if not needs_slow and not _in_slow_place(item.path):
            item.add_marker("quick")
    yield  # to what chooses by these marks, and to what shuffles
    # Last, as Playwright leaves an event loop running, which other tests cannot start beside.
    items.sort(key=lambda item: "browser" in getattr(item, "fixturenames", ()))
