"""The store of evaluation runs: recorded as they go, resumed, compared, exported."""

from fillmask_ui.runs.compare import compare_runs
from fillmask_ui.runs.info import Plan, RunInfo, prepare_info
from fillmask_ui.runs.perform import Engine, RunProgress, perform, perform_rest
from fillmask_ui.runs.record import Recorder, resume, start
from fillmask_ui.runs.store import Run, RunStore
from fillmask_ui.runs.tokens import export

__all__ = [
    "Engine",
    "Plan",
    "Recorder",
    "Run",
    "RunInfo",
    "RunProgress",
    "RunStore",
    "compare_runs",
    "export",
    "perform",
    "perform_rest",
    "prepare_info",
    "resume",
    "start",
]
