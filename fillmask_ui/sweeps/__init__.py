"""Many evaluations from one file: models, data sets, metrics and seeds, each a stored run."""

from fillmask_ui.sweeps.perform import Step, perform_sweep
from fillmask_ui.sweeps.plan import Labelled, Sweep, SweepCell
from fillmask_ui.sweeps.read import read_sweep, sweep_of
from fillmask_ui.sweeps.table import Entry, Spread, SweepTable, sweep_table

__all__ = [
    "Entry",
    "Labelled",
    "Spread",
    "Step",
    "Sweep",
    "SweepCell",
    "SweepTable",
    "perform_sweep",
    "read_sweep",
    "sweep_of",
    "sweep_table",
]
