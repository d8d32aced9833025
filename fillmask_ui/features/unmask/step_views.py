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

_LEAST_GAIN = 0.01  # of a probability that a sentence tells


class StepCell(NamedTuple):
    """One position at one step."""

    word: str  # the token after the step, or else its best candidate
    state: str  # `new`, `filled`, `hidden`, or `again` when remasked
    sure: float  # the model's latest confidence, in [0, 1]
    probability: float | None = None  # of a new token, at temperature 1


def step_frames(
    result: Unmasked, vocabulary: spelling.Spelling, sure: Callable[[HiddenPosition], float]
) -> list[dict[int, StepCell]]:
    """The cells of the initially hidden positions, one dict per step; `sure` is in [0, 1]."""
    frames: list[dict[int, StepCell]] = []
    cells: dict[int, StepCell] = {}
    for step in result.steps:
        filled = {token.position: token for token in step.filled}
        again = {token.position for token in step.remasked}
        for position, cell in cells.items():
            cells[position] = cell._replace(state="again" if position in again else "filled")
        for state in step.hidden:
            token = filled.get(state.position)
            word = spelling.named(vocabulary, (token or state.candidates[0]).token_id)
            if token is None:
                cells[state.position] = StepCell(word, "hidden", sure(state))
            else:
                cells[state.position] = StepCell(word, "new", sure(state), token.probability)
        frames.append(dict(sorted(cells.items())))
    return frames


def largest_gain(result: Unmasked, number: int) -> tuple[Candidate, float] | None:
    """The hidden token whose probability grew most in step `number`, from 1, and that before.

    None where it grew by less than a percent, or was not among the candidates before.
    """
    if number == len(result.steps) or not result.steps[number - 1].filled:
        return None
    before = {
        (state.position, candidate.token_id): candidate.probability
        for state in result.steps[number - 1].hidden
        for candidate in state.candidates
    }
    largest, found = _LEAST_GAIN, None
    for state in result.steps[number].hidden:
        best = state.candidates[0]
        earlier = before.get((state.position, best.token_id), 1.0)
        if best.probability - earlier >= largest:
            largest, found = best.probability - earlier, (best, earlier)
    return found


def _rows(result: Unmasked) -> Iterator[Row]:
    for step in result.steps:
        total = {"total_log_probability_nats": step.total_log_probability_nats}
        for token in (*step.filled, *step.remasked):
            hidden_again = token in step.remasked
            yield {"step": step.number, **vars(token), "hidden_again": hidden_again, **total}


def _html(result: Unmasked) -> Iterator[str]:
    hidden = (state.candidates for step in result.steps for state in step.hidden)
    filled = (step.filled for step in result.steps)
    vocabulary = listed_tokens(itertools.chain(*hidden, *filled))
    yield still(
        "unmask/decoding.html",
        result=result,
        frames=step_frames(result, vocabulary, lambda state: state.candidates[0].probability),
        largest_gain=partial(largest_gain, result),
        name=partial(spelling.named, vocabulary),
        setting="A",
        confident=False,
    )


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
