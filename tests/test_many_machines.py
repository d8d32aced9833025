"""The simulation behind docs/many-machines.md, against hand calculations and its own document."""

import doctest
import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).parent.parent / "docs"
sys.path.append(str(DOCS))

import simulate_many_machines as simulation  # noqa: E402
import tables_many_machines as tables  # noqa: E402
from simulate_many_machines import Case, Measured, Plan, case_of, models, simulate  # noqa: E402

PLAN = Plan()
MEASURED = Measured(**json.loads(simulation.INPUTS.read_text("utf-8")))
DOCUMENT = (DOCS / "many-machines.md").read_text("utf-8")
# These simulate for seconds.
SLOW = (tables.scaling_table, tables.straggler_table, tables.death_table)
QUICK = [table for table in tables.TABLES if table not in SLOW]


def test_examples_in_docstrings():
    assert doctest.testmod(simulation).failed == doctest.testmod(tables).failed == 0


def test_times_by_hand():
    """Whole rounds of equal blocks; a driver or a read task that is too slow sets the time."""
    for blocks, workers in ((1, 1), (7, 3), (1000, 10), (1001, 10), (5, 8)):
        for in_flight in (1, 2):
            case = Case(blocks, workers, block_seconds=3.0, start_seconds=5.0, in_flight=in_flight)
            assert simulate(case).seconds == pytest.approx(5 + 3 * math.ceil(blocks / workers))
    case = Case(5000, 100, block_seconds=1.0, driver_seconds=0.5)
    # The first block comes after a second, unless its bundle comes as lots of a few blocks.
    assert simulate(case).seconds == pytest.approx(1 + 5000 * 0.5, rel=1e-3)
    alone = Case(40, 40, block_seconds=1.0, driver_seconds=0.5)
    assert simulate(alone).seconds == pytest.approx(1 + 40 * 0.5)
    case = Case(1000, 100, block_seconds=2.0, read_seconds=0.5)
    assert simulate(case).seconds == pytest.approx(1000 * 0.5 + 2.0)
    # Ten workers, ten blocks: the slow one needs 30 s, a copy begun after 10 s ends after 20.
    case = Case(10, 10, block_seconds=10.0, slow_workers=1, slow_speed=1 / 3)
    assert simulate(case).seconds == pytest.approx(30.0)
    assert simulate(replace(case, copies=True)).seconds == pytest.approx(20.0)


def test_the_queue_is_that_of_a_server_simulated_block_by_block():
    rng = np.random.default_rng(0)
    ended = rng.uniform(0, 100, 200)
    free = 0.0
    for come in np.sort(ended):
        free = max(free, come) + 0.48
    ones = np.ones(200, int)
    assert simulation.queue_end(ended - 1, ended, ones, 0.48) == pytest.approx(free)


def test_the_document_shows_what_the_script_prints():
    case = replace(case_of(PLAN, MEASURED, models(PLAN, MEASURED)[0]), blocks=5000, workers=50)
    assert simulate(case) == simulate(case) != simulate(replace(case, seed=1))
    for table in QUICK:
        assert table(PLAN, MEASURED) in DOCUMENT
