"""Many masks filled step by step, each step with the distributions that it rests on."""

from fillmask_ui.unmasking.config import CONFIDENCES, ORDERS, UnmaskingConfig, UnmaskingOptions
from fillmask_ui.unmasking.history import history_lines, read_history
from fillmask_ui.unmasking.steps import FilledToken, HiddenPosition, Step, Unmasked
from fillmask_ui.unmasking.unmask import finish, masked_prompt, unmask, unmask_all

__all__ = [
    "CONFIDENCES",
    "ORDERS",
    "FilledToken",
    "HiddenPosition",
    "Step",
    "Unmasked",
    "UnmaskingConfig",
    "UnmaskingOptions",
    "finish",
    "history_lines",
    "masked_prompt",
    "read_history",
    "unmask",
    "unmask_all",
]
