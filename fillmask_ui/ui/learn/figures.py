"""The figures of all chapters, by the names that the texts use."""

from collections.abc import Mapping

from fillmask_ui.ui.figure import Figure
from fillmask_ui.ui.learn import (
    accuracy,
    certainty,
    distributions,
    guess,
    ledger,
    loss,
    masking,
    senses,
    sentences,
    sides,
)

FIGURES: Mapping[str, Figure] = {
    **guess.FIGURES,
    **loss.FIGURES,
    **sides.FIGURES,
    **masking.FIGURES,
    **ledger.FIGURES,
    **distributions.FIGURES,
    **accuracy.FIGURES,
    **certainty.FIGURES,
    **senses.FIGURES,
    **sentences.FIGURES,
}
