"""Many evaluations from one file: models, data sets, metrics and seeds, each a stored run."""

from fillmask_ui.sweeps.sweep_file import read_sweep, sweep_of
from fillmask_ui.sweeps.sweep_perform import perform_sweep
from fillmask_ui.sweeps.sweep_table import SweepTable, sweep_table

__all__ = [
    "SweepTable",
    "perform_sweep",
    "read_sweep",
    "sweep_of",
    "sweep_table",
]
