"""The number of letters, and the command that prints it."""

from fillmask_ui import fill
from fillmask_ui.cli.options import argument, with_options
from fillmask_ui.cli.terminal import load, say
from fillmask_ui.models import ModelChoice
from fillmask_ui.protocol import MaskedLM


def mean_letters(model: MaskedLM, text: str) -> float:
    """The mean over the 100 most probable words at the first mask, weighted by probability."""
    words = fill(model, text, top_k=100).masks[0].candidates
    total = sum(word.probability for word in words)
    return sum(len(word.word) * word.probability for word in words) / total


@with_options
def command(text: str = argument(..., "TEXT", "With a mask."), *, model: ModelChoice) -> None:
    say(f"{mean_letters(load(model), text):.2f} letters")
