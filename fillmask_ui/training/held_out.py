"""What a packaged model can do: a held-out text and a cloze list.

Definition: held-out figures are BERT's objective on text that was not trained on (15 % of the
tokens, 80/10/10, each paragraph on its own); cloze accuracy is the share of sentences whose first
guess (one of the first five) is an accepted word.

Rivals: a loss per token falls when the vocabulary is trimmed to longer spellings, so the loss
per character stands beside it; cloze accuracy says little about how sure a model is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.filling import fill
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.schema import from_json
from fillmask_ui.texts.files import file_bytes

TEXTS = 600
MAX_TOKENS = 256


@dataclass(frozen=True)
class HeldOutFigures:
    """On text that was not trained on."""

    texts: int  # paragraphs measured
    tokens: int  # hidden tokens scored
    nll_nats: float  # mean per hidden token, the cross-entropy
    nll_per_character_nats: float  # the same sum by the characters that the tokens stand for
    top1: float  # share of hidden tokens ranked first
    top5: float  # share ranked fifth or better
    signature: str  # of the measurement


def measure_text(model: MaskedLM, paragraphs: list[str]) -> HeldOutFigures:
    """Cross-entropy of the first 600 paragraphs at 15 % masks, seed 42, 256 tokens at most."""
    config = EvaluationConfig(max_tokens=min(MAX_TOKENS, model.max_tokens))
    summary = summarize(evaluate(model, paragraphs[:TEXTS], config), config=config)
    figures = summary.model
    return HeldOutFigures(
        texts=summary.texts,
        tokens=figures.tokens,
        nll_nats=figures.mean_nll_nats,
        nll_per_character_nats=figures.nll_per_character_nats,
        top1=figures.top1_accuracy,
        top5=figures.top5_accuracy,
        signature=config.signature,
    )


@dataclass(frozen=True)
class ClozeItem:
    """A sentence with one mask and the words that are right there."""

    text: str  # with `[MASK]`
    accepted: tuple[str, ...]  # lower-case words
    kind: str = ""  # to group by


def read_cloze(path: Path) -> list[ClozeItem]:
    """Items from JSON lines with `text`, `accepted` and optionally `kind`."""
    items = [
        from_json(ClozeItem, line, f"line {number} of {path}")
        for number, line in enumerate(file_bytes(str(path)).lines(), start=1)
    ]
    if not items:
        raise DataError(f"{path} holds no cloze item")
    return items


@dataclass(frozen=True)
class ClozeFigures:
    """Accuracy on a cloze list."""

    items: int  # sentences
    top1: float  # share whose first guess is accepted
    top5: float  # share with an accepted word among the first five guesses
    top5_by_kind: dict[str, float]
    guesses: tuple[str, ...]  # first guess of each sentence, in order


def measure_cloze(model: MaskedLM, items: list[ClozeItem]) -> ClozeFigures:
    """The model's guesses at each sentence's mask, against the accepted words."""
    first: list[str] = []
    kinds: dict[str, list[bool]] = {}  # whether an accepted word is among the first five
    right = 0
    for item in items:
        masks = fill(model, item.text, top_k=5).masks if "[MASK]" in item.text else ()
        if len(masks) != 1:
            raise DataError(f"a cloze item has one [MASK]; {len(masks)} stand in {item.text!r}")
        words = [candidate.word.lower() for candidate in masks[0].candidates]
        first.append(words[0])
        right += words[0] in item.accepted
        kinds.setdefault(item.kind, []).append(not set(words).isdisjoint(item.accepted))
    return ClozeFigures(
        items=len(items),
        top1=right / len(items),
        top5=sum(map(sum, kinds.values())) / len(items),
        top5_by_kind={kind: float(np.mean(hits)) for kind, hits in sorted(kinds.items())},
        guesses=tuple(first),
    )


@dataclass(frozen=True)
class ModelFigures:
    """What one model scores."""

    name: str  # on the card
    vocabulary_size: int  # V, the unit of its loss per token
    text: HeldOutFigures | None  # None if not measured
    cloze: ClozeFigures | None
