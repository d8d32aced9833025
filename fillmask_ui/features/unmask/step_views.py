"""Steps of a decoding as cells of a table, as sentences, and as notebooks show them."""

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import fillmask_ui.show.words as spelling
from fillmask_ui.features.unmask.decoding_history import HiddenPosition, Unmasked
from fillmask_ui.records import Candidate
from fillmask_ui.show.charts.record_charts import Bars
from fillmask_ui.show.displays import Display, Row, listed_tokens, still

_LEAST_GROWTH = 0.01  # of a probability that a sentence tells


class StepCell(NamedTuple):
    """One position at one step."""

    word: str  # the token after the step, or else its best candidate
    state: str  # `new`, `filled`, `hidden`, or `again` when remasked
    sure: float  # the model's latest confidence, in [0, 1]
    probability: float | None = None  # of a new token, at temperature 1


def frames(
    result: Unmasked, vocabulary: spelling.Spelling, sure: Callable[[HiddenPosition], float]
) -> list[dict[int, StepCell]]:
    """The cells of the initially hidden positions, one dict per step; `sure` is in [0, 1]."""
    shown: list[dict[int, StepCell]] = []
    cells: dict[int, StepCell] = {}
    for step in result.steps:
        filled = {token.position: token for token in step.filled}
        again = {token.position for token in step.remasked}
        for position, cell in cells.items():
            cells[position] = cell._replace(state="again" if position in again else "filled")
        for own in step.hidden:
            token = filled.get(own.position)
            word = spelling.named(vocabulary, (token or own.candidates[0]).token_id)
            state_name, probability = ("new", token.probability) if token else ("hidden", None)
            cells[own.position] = StepCell(word, state_name, sure(own), probability)
        shown.append(dict(sorted(cells.items())))
    return shown


def grown(result: Unmasked, number: int) -> tuple[Candidate, float] | None:
    """The hidden token that step `number`, from 1, made surer by most, and its probability before.

    None where it is less than a percent, or was not among the candidates before.
    """
    if number == len(result.steps) or not result.steps[number - 1].filled:
        return None
    before = {
        (own.position, one.token_id): one.probability
        for own in result.steps[number - 1].hidden
        for one in own.candidates
    }
    best = ((own.position, own.candidates[0]) for own in result.steps[number].hidden)
    pairs = [(one, before.get((position, one.token_id), 1.0)) for position, one in best]
    surer = [pair for pair in pairs if pair[0].probability - pair[1] >= _LEAST_GROWTH]
    return max(surer, key=lambda own: own[0].probability - own[1], default=None)


def _rows(result: Unmasked) -> Iterator[Row]:
    for step in result.steps:
        total = {"total_log_probability_nats": step.total_log_probability_nats}
        for own in (*step.filled, *step.remasked):
            more = {"hidden_again": own in step.remasked, **total}
            yield {"step": step.number, **vars(own), **more}


def _html(result: Unmasked) -> Iterator[str]:
    hidden = (own.candidates for step in result.steps for own in step.hidden)
    filled = (step.filled for step in result.steps)
    known = listed_tokens(itertools.chain(*hidden, *filled))
    cells = frames(result, known, lambda own: own.candidates[0].probability)
    values = {"result": result, "frames": cells, "grown": partial(grown, result)}
    name = partial(spelling.named, known)
    yield still("unmask/side.html", **values, name=name, side="A", confident=False)


DISPLAY = Display(
    _rows,
    _html,
    Bars(
        ("step", "token"),
        ("total_log_probability_nats",),
        "log-probability so far (nats)",
        horizontal=False,
    ),
    lambda result: result.text,
)
