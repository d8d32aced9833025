"""What a packaged model can do: a held-out text, a cloze list, and whether its runtimes agree.

Definition: held-out figures are BERT's objective on text that was not trained on (15 % of the
tokens, 80/10/10, each paragraph on its own); cloze accuracy is the share of sentences whose first
guess (one of the first five) is an accepted word.

Rivals: a loss per token falls when the vocabulary is trimmed to longer spellings, so the loss
per character stands beside it; cloze accuracy says little about how sure a model is.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.texts.lines import file_bytes

TEXTS = 600
MAX_TOKENS = 256
SEED = 42


@dataclass(frozen=True)
class HeldOutFigures:
    """On text that was not trained on.

    Attributes:
        texts: paragraphs measured.
        tokens: hidden tokens scored.
        nll_nats: mean per hidden token, the cross-entropy.
        nll_per_character_nats: the same sum by the characters that the tokens stand for.
        top1: share of hidden tokens ranked first.
        top5: share ranked fifth or better.
        signature: of the measurement.
    """

    texts: int
    tokens: int
    nll_nats: float
    nll_per_character_nats: float
    top1: float
    top5: float
    signature: str

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return asdict(self)


def measure_text(model: MaskedLM, paragraphs: list[str]) -> HeldOutFigures:
    """Cross-entropy of the first 600 paragraphs at 15 % masks, seed 42, 256 tokens at most."""
    config = EvaluationConfig(seed=SEED, max_tokens=min(MAX_TOKENS, model.max_tokens))
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
    """A sentence with one mask and the words that are right there.

    Attributes:
        text: with `[MASK]`.
        accepted: lower-case words.
        kind: what it asks for, to group by.
    """

    text: str
    accepted: tuple[str, ...]
    kind: str = ""


def read_cloze(path: Path) -> list[ClozeItem]:
    """Items from JSON lines with `text`, `accepted` and optionally `kind`.

    Raises:
        DataError: that names the line that cannot be read.
    """
    items = []
    for number, line in enumerate(file_bytes(str(path)).lines(), start=1):
        try:
            entry = json.loads(line)
            item = ClozeItem(entry["text"], tuple(entry["accepted"]), entry.get("kind", ""))
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"line {number} of {path} is no cloze item ({error}); wanted: "
                '{"text": "... [MASK] ...", "accepted": ["word"]}'
            ) from error
        items.append(item)
    if not items:
        raise DataError(f"{path} holds no cloze item")
    return items


@dataclass(frozen=True)
class ClozeFigures:
    """Accuracy on a cloze list.

    Attributes:
        items: sentences.
        top1: share whose first guess is accepted.
        top5: share with an accepted word among the first five guesses.
        top5_by_kind: the latter for each kind.
        guesses: first guess of each sentence, in order.
    """

    items: int
    top1: float
    top5: float
    top5_by_kind: dict[str, float]
    guesses: tuple[str, ...]


def measure_cloze(model: MaskedLM, items: list[ClozeItem]) -> ClozeFigures:
    """Rank the whole vocabulary at each sentence's mask.

    Raises:
        DataError: if a sentence has no mask or several.
    """
    vocabulary = model.vocabulary
    first, five, kinds, guesses = [], [], {}, []
    for item in items:
        encoding = vocabulary.encode(item.text.replace("[MASK]", vocabulary.mask_token))
        ids = np.array([encoding.ids], np.int64)  # [1, T]
        cols = np.flatnonzero(ids[0] == vocabulary.mask_id)
        if len(cols) != 1:
            raise DataError(f"a cloze item has one [MASK]; {len(cols)} stand in {item.text!r}")
        logits = model.logits_at(ids, np.ones_like(ids), np.zeros(1, np.int64), cols)[0]  # [V]
        best = np.argsort(-logits, kind="stable")[:5]
        words = [vocabulary.word(int(token_id)).lower() for token_id in best]
        guesses.append(words[0])
        first.append(words[0] in item.accepted)
        five.append(any(word in item.accepted for word in words))
        kinds.setdefault(item.kind, []).append(five[-1])
    return ClozeFigures(
        items=len(items),
        top1=float(np.mean(first)),
        top5=float(np.mean(five)),
        top5_by_kind={kind: float(np.mean(hits)) for kind, hits in sorted(kinds.items())},
        guesses=tuple(guesses),
    )


def largest_difference(one: MaskedLM, other: MaskedLM, texts: list[str]) -> float:
    """Largest |difference| of any logit at any token of the texts, padded into one batch.

    The parity probe: two runtimes of one model agree to rounding, a broken export does not.
    """
    vocabulary = one.vocabulary
    rows_of_ids = [vocabulary.encode(text).ids for text in texts]
    length = max(map(len, rows_of_ids))
    ids = np.full((len(texts), length), vocabulary.pad_id, np.int64)  # [B, T]
    mask = np.zeros_like(ids)
    for row, tokens in enumerate(rows_of_ids):
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    rows, cols = mask.nonzero()
    first = one.logits_at(ids, mask, rows, cols)  # [M, V]
    second = other.logits_at(ids, mask, rows, cols)
    return float(np.abs(first - second).max())
