"""Many masks filled step by step, each step with the distributions that it rests on."""

from fillmask_ui.unmasking.decoding_history import Step, Unmasked, history_lines, read_history
from fillmask_ui.unmasking.unmask_texts import finish, masked_prompt, unmask, unmask_all
from fillmask_ui.unmasking.unmasking_options import UnmaskingConfig

__all__ = [
    "Step",
    "Unmasked",
    "UnmaskingConfig",
    "finish",
    "history_lines",
    "masked_prompt",
    "read_history",
    "unmask",
    "unmask_all",
]
