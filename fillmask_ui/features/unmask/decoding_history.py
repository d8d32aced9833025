"""The steps of an unmasked text, and their file: JSON Lines, the result first, then each step.

Axes: T tokens of the text, M positions hidden at a step, K candidates.
"""

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from fillmask_ui.errors import DataError
from fillmask_ui.records import Candidate, Displayed, counted, excerpt, finite

FORMAT = "fillmask-ui unmasking 1"


@dataclass(frozen=True)
class FilledToken:
    """A token that a step wrote."""

    position: int  # in the token sequence, special tokens counted
    token_id: int
    token: str  # raw vocabulary string
    probability: float  # at temperature 1

    @property
    def log_probability_nats(self) -> float:
        return math.log(self.probability) if self.probability > 0 else -math.inf


@dataclass(frozen=True)
class HiddenPosition:
    """One hidden position as a step saw it, before it filled anything."""

    position: int
    confidence: float  # without noise; the larger, the sooner it is filled
    candidates: tuple[Candidate, ...]  # the K most probable tokens that may be written


@dataclass(frozen=True)
class DecodingStep:
    """One pass of the model and the tokens it led to."""

    number: int  # from 1
    ids: tuple[int, ...]  # T token ids after the step
    hidden: tuple[HiddenPosition, ...]  # M entries from left to right
    filled: tuple[FilledToken, ...]  # from left to right; none if the steps outnumber the masks
    remasked: tuple[FilledToken, ...]  # of earlier steps, hidden again
    log_probability_nats: float  # of `filled`, less that of `remasked`
    total_log_probability_nats: float  # of all that stands after the step
    duration_seconds: float  # of the pass, shared with the texts of the same batch

    def to_dict(self) -> dict[str, Any]:
        written = {
            "step": self.number,
            "filled": [asdict(token) for token in self.filled],
            "log_probability_nats": finite(self.log_probability_nats),
        }
        if self.remasked:
            written["remasked"] = [token.position for token in self.remasked]
        return written


@dataclass(frozen=True)
class Unmasked(Displayed):
    """A text with all its masks filled, and the steps that filled them."""

    text: str
    ids: tuple[int, ...]  # T token ids, special tokens included
    start: int  # position of the first token that was hidden
    hidden: tuple[int, ...]  # positions that were hidden at the beginning
    steps: tuple[DecodingStep, ...]
    pseudo_perplexity: float  # of the finished text: e^ of the mean NLL of each token, hidden alone
    signature: str  # of the model and of every choice

    def __repr__(self) -> str:
        return f"Unmasked({excerpt(self.text)}, {counted(len(self.steps), 'step')})"

    @property
    def steps_taken(self) -> int:
        return len(self.steps)

    @property
    def log_probability_nats(self) -> float:
        return math.fsum(step.log_probability_nats for step in self.steps)

    @property
    def duration_seconds(self) -> float:
        return math.fsum(step.duration_seconds for step in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """What `fillmask-ui unmask --json` prints."""
        return {
            "text": self.text,
            "ids": list(self.ids),
            "steps": [step.to_dict() for step in self.steps],
            "steps_taken": self.steps_taken,
            "log_probability_nats": finite(self.log_probability_nats),
            "pseudo_perplexity": finite(self.pseudo_perplexity),
            "start": self.start,
            "signature": self.signature,
        }


def history_lines(result: Unmasked) -> Iterator[str]:
    """All that the steps saw and wrote, as lines of JSON."""
    head = {**asdict(result), "steps": result.steps_taken}
    yield json.dumps({"format": FORMAT, **head}, ensure_ascii=False)
    for step in result.steps:
        yield json.dumps(asdict(step), ensure_ascii=False)


def read_history(lines: Iterable[str], name: str = "the history") -> Unmasked:
    """The inverse of `history_lines`; a `DataError` for another file, or a part."""
    try:
        head, *steps = [json.loads(line) for line in lines if line.strip()]
        if head.pop("format") != FORMAT or head.pop("steps") != len(steps):
            raise ValueError("another format, or steps are missing")
        return Unmasked(**_frozen(head), steps=tuple(map(_step, steps)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{name} is no history of `fillmask-ui unmask`, or was cut ({error}): save it again"
        ) from error


def _frozen(values: dict[str, Any]) -> dict[str, Any]:
    """Values from JSON with tuples in place of lists."""
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }


def _step(saved: dict[str, Any]) -> DecodingStep:
    for state in saved["hidden"]:
        state["candidates"] = tuple(Candidate(**candidate) for candidate in state["candidates"])
    saved["hidden"] = [HiddenPosition(**state) for state in saved["hidden"]]
    for name in ("filled", "remasked"):
        saved[name] = [FilledToken(**token) for token in saved[name]]
    return DecodingStep(**_frozen(saved))
