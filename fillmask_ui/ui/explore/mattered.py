"""A mask: which of the other words its guess rests on, by hiding each in turn."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fillmask_ui.filling import occlusion_windows
from fillmask_ui.filling.occlusion import Occlusion
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.ui.explore import lenses
from fillmask_ui.ui.explore.lenses import Json, Scale
from fillmask_ui.ui.session import Session

SCALE = Scale(1.0, {"nats": 0.25, "bits": 0.5})


def mattered(session: Session, values: Mapping[str, Any]) -> Json:
    """Some of the other words of a text with masks, as `surprise.surprise` gives them."""
    asked = lenses.read(session, values)
    mask = asked.question.selected if asked.question.selected < len(asked.hidden) else 0
    word = (asked.hidden[mask] if asked.hidden else None) or ""
    found = session.further(
        asked.model,
        (occlusion_windows, asked.text, mask, word),
        asked.start,
        lambda model, known: _longer(model, asked.text, mask, word, known),
    )
    return asked.shown(
        "mattered",
        found.words,
        lambda own: SCALE.tint(own.kl_nats),
        SCALE,
        found=found,
        most=max(found.words, key=lambda own: own.kl_nats, default=None),
    )


def _longer(model: MaskedLM, text: str, mask: int, word: str, known: Occlusion | None) -> Occlusion:
    words = known.words if known else ()
    window = next(occlusion_windows(model, text, mask, word=word, start=len(words)))
    return replace(window, words=(*words, *window.words))
