"""What the functions that the page serves answer to a browser, as it was recorded."""

import shutil
from pathlib import Path

import pytest
from recorded.program import HERE
from recorded.recording import check_shown, seen
from recorded.served import TABS, Page
from recorded.served_cases import EXPLORE, UNMASK
from recorded.served_learn import LEARN

from fillmask_ui.models import ModelStore

GROUPS = {**EXPLORE, **UNMASK, **LEARN}


@pytest.fixture(scope="module")
def store() -> ModelStore:
    return ModelStore()


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """The recorded runs."""
    return shutil.copytree(HERE / "runs", tmp_path / "stored")


@pytest.mark.parametrize("group", GROUPS)
def test_answers(group, store, runs):
    # A page for each case: what one was asked before may come along with an answer.
    found = {name: seen(Page(store, runs).ask(*case)) for name, case in GROUPS[group].items()}
    check_shown(f"page/{group}", found, close="embedded" in group)


def test_every_function_is_asked():
    """Of Quantize by `test_variants.py`, which makes the variant."""
    asked = {(tab, function) for cases in GROUPS.values() for tab, function, _ in cases.values()}
    served = {(tab, function) for tab, functions in TABS.items() for function in functions}
    assert asked == served - {("quantize", "figure")}
