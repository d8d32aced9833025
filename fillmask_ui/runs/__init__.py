"""The store of evaluation runs: recorded as they go, resumed, compared, exported."""

from fillmask_ui.runs.compare import compare
from fillmask_ui.runs.export import FORMATS, export
from fillmask_ui.runs.perform import Progress, perform, perform_rest
from fillmask_ui.runs.plan import Plan
from fillmask_ui.runs.record import Recorder, prepare_info, resume, start
from fillmask_ui.runs.store import Run, RunInfo, RunStore, default_root
from fillmask_ui.runs.tokens import FoundTokens, tokens_between

__all__ = [
    "FORMATS",
    "FoundTokens",
    "Plan",
    "Progress",
    "Recorder",
    "Run",
    "RunInfo",
    "RunStore",
    "compare",
    "default_root",
    "export",
    "perform",
    "perform_rest",
    "prepare_info",
    "resume",
    "start",
    "tokens_between",
]
