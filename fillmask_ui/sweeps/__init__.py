"""Many evaluations from one file: models, data sets, metrics and seeds, each a stored run."""

from fillmask_ui.sweeps.sweep_file import Sweep, SweepCell, read_sweep, sweep_of
from fillmask_ui.sweeps.sweep_perform import Step, perform_sweep
from fillmask_ui.sweeps.sweep_table import Entry, Spread, SweepTable, sweep_table

__all__ = [
    "Entry",
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
