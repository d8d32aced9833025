"""A decoding as what the browser plays: a strip, a grid of steps by positions, a line.

The grid and the line are HTML that stays; the strip of each step is made in the browser from the
`frames`, so that playing needs no server.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fillmask_ui.protocol import Vocabulary
from fillmask_ui.show.drawing import Scale
from fillmask_ui.show.render import render
from fillmask_ui.show.words import token_name
from fillmask_ui.ui.unmask.form import ORDER_LABELS
from fillmask_ui.unmasking import CONFIDENCES, Step, Unmasked, UnmaskingConfig

# Signs that stand close to the word before them, whatever the vocabulary says of blanks.
_CLOSING = frozenset(".,;:!?%)]}’”")
LINE_WIDTH, LINE_HEIGHT = 560, 120


@dataclass(frozen=True)
class Cell:
    """One position at one step."""

    word: str  # the token that stands there after the step, else the one that is wanted most
    state: str  # `new`, `filled`, `hidden`, or `again` for one that was hidden again
    sure: float  # in [0, 1]; how sure the model was when it last looked


@dataclass(frozen=True)
class Column:
    """One token of the text."""

    position: int
    word: str  # blank where it was hidden at the beginning
    hidden: bool  # at the beginning
    joined: bool  # whether no blank stands to its left


def columns(result: Unmasked, vocabulary: Vocabulary) -> list[Column]:
    """The tokens of a text from left to right, without special ones."""
    found: list[Column] = []
    for position, token_id in enumerate(result.ids):
        if token_id in vocabulary.special_ids:
            continue
        hidden = position in result.hidden
        own = vocabulary.word(token_id)
        joined = bool(found) and (vocabulary.is_continuation(token_id) or own in _CLOSING)
        found.append(
            Column(position, "" if hidden else named(vocabulary, token_id), hidden, joined)
        )
    return found


def named(vocabulary: Vocabulary, token_id: int) -> str:
    """A token as a reader knows it: `…ing` for a piece that goes on with a word."""
    return token_name(
        vocabulary.token(token_id), vocabulary.word(token_id), vocabulary.is_continuation(token_id)
    )


def sureness(confidence: float, order: str, vocabulary_size: int) -> float:
    """A confidence as a share in [0, 1]: 1 - the uncertainty that a threshold adds up."""

    if order == "entropy":
        return 1 + confidence / math.log(vocabulary_size)
    return confidence


def frames(
    result: Unmasked, order: str, vocabulary: Vocabulary, vocabulary_size: int
) -> list[dict[int, Cell]]:
    """One entry per step: the cells of the positions that were hidden at the beginning."""
    shown: list[dict[int, Cell]] = []
    stands: dict[int, Cell] = {}
    for step in result.steps:
        again = {token.position for token in step.remasked}
        filled = {token.position: token for token in step.filled}
        cells: dict[int, Cell] = {}
        for state in step.hidden:
            sure = sureness(state.confidence, order, vocabulary_size)
            token = filled.get(state.position)
            if token is not None:
                cells[state.position] = Cell(named(vocabulary, token.token_id), "new", sure)
            else:
                wanted = named(vocabulary, state.candidates[0].token_id)
                cells[state.position] = Cell(wanted, "hidden", sure)
        for position, cell in stands.items():
            if position not in cells:
                state_name = "again" if position in again else "filled"
                cells[position] = Cell(cell.word, state_name, cell.sure)
        shown.append(dict(sorted(cells.items())))
        stands = {p: cell for p, cell in cells.items() if cell.state in ("new", "filled")}
    return shown


def result_html(
    result: Unmasked, config: UnmaskingConfig, side: str, vocabulary: Vocabulary, width: int
) -> str:
    """One side: its figures, the place of the strip, the grid, the line of log-probability."""
    shown = frames(result, config.order, vocabulary, width)
    own = columns(result, vocabulary)
    playable = {
        "columns": [asdict(column) for column in own],
        "frames": [{str(p): asdict(cell) for p, cell in frame.items()} for frame in shown],
    }
    return render(
        "page/unmask/side.html",
        side=side,
        result=result,
        frames=shown,
        columns=own,
        playable=json.dumps(playable, ensure_ascii=False),
        order=ORDER_LABELS[config.order],
        confident=config.order in CONFIDENCES,
        line=line(result),
    )


def line(result: Unmasked) -> dict[str, Any]:
    """The log-probability along the path, as a drawing."""
    totals = [0.0, *(step.total_log_probability_nats for step in result.steps)]
    across = Scale(0, len(result.steps), 44, LINE_WIDTH - 12)
    down = Scale(min(totals), 0, LINE_HEIGHT - 24, 10)
    points = [(across(i), down(total)) for i, total in enumerate(totals)]
    return {
        "width": LINE_WIDTH,
        "height": LINE_HEIGHT,
        "points": points,
        "steps": [(across(tick), f"{tick:g}") for tick in across.ticks() if tick == int(tick)],
        "nats": [(down(tick), f"{tick:g}") for tick in down.ticks(4)],
    }


def cell_html(step: Step, position: int, side: str, vocabulary: Vocabulary) -> str:
    """The candidates of one position at one step; blank where it was not hidden then."""
    state = next((own for own in step.hidden if own.position == position), None)
    if state is None:
        return ""
    written = next((own for own in step.filled if own.position == position), None)
    return render(
        "page/unmask/cell.html",
        side=side,
        step=step,
        names=[named(vocabulary, own.token_id) for own in state.candidates],
        state=state,
        written=written,
        written_name=named(vocabulary, written.token_id) if written else "",
    )


def comparison(results: Mapping[str, Unmasked]) -> str:
    """Both sides in one table; blank for a single one."""
    return render("page/unmask/comparison.html", results=results) if len(results) > 1 else ""
