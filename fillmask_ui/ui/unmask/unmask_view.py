"""The Unmask tab: its form, checked as untrusted input, and its decodings as HTML."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args, get_type_hints

from fillmask_ui.errors import OptionError
from fillmask_ui.filling.prompt import encode_masked, mask_positions
from fillmask_ui.options import Option, options_of
from fillmask_ui.protocol import MaskedLM, Vocabulary
from fillmask_ui.schema import from_values
from fillmask_ui.show.drawing import Scale
from fillmask_ui.show.render import render
from fillmask_ui.show.words import token_name
from fillmask_ui.ui import figure
from fillmask_ui.ui.background import Done, Report, Waiting
from fillmask_ui.ui.figure import Asked, Figure, Shown
from fillmask_ui.ui.session import Session, check_text
from fillmask_ui.unmasking import (
    CONFIDENCES,
    ORDERS,
    Step,
    Unmasked,
    UnmaskingConfig,
    finish,
    history_lines,
    masked_prompt,
)

# Each hidden position takes a pass of the model and a column of the grid.
MOST_HIDDEN = 100
SIDES = ("A", "B")
# The initial form: one token at a time beside all at once.
TEXT = "[MASK] [MASK] [MASK] [MASK] in the morning, and [MASK] [MASK] [MASK] at night."
PLAIN: dict[str, UnmaskingConfig] = {
    "A": UnmaskingConfig(pieces="fitting"),
    "B": UnmaskingConfig(pieces="fitting", max_steps=1),
}
SOURCES = (
    ("text", "a text with masks"),
    ("prompt", "a beginning and an end"),
    ("length", "nothing but a length"),
)
ORDER_LABELS = {
    "top_prob": "largest probability first",
    "prob_diff": "largest lead first",
    "entropy": "smallest entropy first",
    "left_to_right": "from left to right",
    "none": "at random",
}


@dataclass(frozen=True)
class Control:
    """The control of one option on one side."""

    name: str  # `SIDE_field`
    option: Option
    value: str  # initial; blank for not given
    kind: str  # `choice`, `whole` or `number`
    choices: tuple[tuple[str, str], ...] = ()  # value, label


def controls(side: str) -> list[Control]:
    """The controls of one side, one per option of a decoding."""
    found = []
    for name, own in options_of(UnmaskingConfig).items():
        value = getattr(PLAIN[side], name)
        kind = "choice" if own.choices else "whole" if name in _WHOLE else "number"
        labels = ORDER_LABELS if own.choices == ORDERS else {}
        choices = tuple((choice, labels.get(choice, choice)) for choice in own.choices)
        shown = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        found.append(Control(f"{side}_{name}", own, shown, kind, choices))
    return found


_WHOLE = {
    name for name, kind in get_type_hints(UnmaskingConfig).items() if int in (kind, *get_args(kind))
}


def config_of(values: Mapping[str, str], side: str) -> UnmaskingConfig:
    """The decoding options of one side.

    Raises:
        OptionError: for an invalid value; the message names the side and the option.
    """
    given: dict[str, Any] = {}
    for name, own in options_of(UnmaskingConfig).items():
        text = values.get(f"{side}_{name}")
        if text is None:
            given[name] = getattr(PLAIN[side], name)
        elif own.choices:
            given[name] = text
        elif text.strip():
            given[name] = _number(text, own, name in _WHOLE)
    try:
        return UnmaskingConfig(**given)
    except OptionError as error:
        raise OptionError(f"setting {side}: {error}") from error


def _number(text: str, own: Option, whole: bool) -> float:
    try:
        return int(text) if whole else float(text)
    except ValueError:
        kind = "a whole number" if whole else "a number"
        raise OptionError(f"{own.label} must be {kind}; it was {text[:40]!r}") from None


def text_of(values: Mapping[str, str], model: MaskedLM) -> str:
    """The text with its masks: as typed, or made from a prompt or a length.

    Raises:
        OptionError: for an invalid length, or one too long for the page.
    """
    source = values.get("source", "text")
    if source == "text":
        return values.get("text", TEXT)
    name = "new_tokens" if source == "prompt" else "length"
    written = values.get(name, "8").strip()
    if not re.fullmatch(r"[0-9]{1,4}", written) or not 1 <= int(written) <= MOST_HIDDEN:
        raise OptionError(
            f"the number of tokens must be from 1 to {MOST_HIDDEN}; it was {written[:40]!r}"
        )
    if source == "length":
        return masked_prompt(model.vocabulary, int(written))
    around = {key: values.get(key, "").strip() for key in ("prefix", "suffix")}
    return masked_prompt(model.vocabulary, int(written), **around)


Json = dict[str, Any]


def show(asked: Asked) -> Shown | Waiting:
    """Both decodings, or one."""
    model, text = asked.model, text_of(asked.values, asked.model)
    check_text(text)
    hidden = len(mask_positions(encode_masked(model, text), model.vocabulary))
    if hidden > MOST_HIDDEN:
        raise OptionError(
            f"the text has {hidden:,} masks and this page unmasks at most {MOST_HIDDEN}: leave "
            "some out, or use `fillmask-ui unmask`"
        )
    results: dict[str, Unmasked] = {}
    for side in SIDES if asked.pressed("both") else SIDES[:1]:
        state = decoded(asked.session, model, text, config_of(asked.values, side))
        if isinstance(state, Waiting):
            return state
        results[side] = state.result
    width = model.signature.vocabulary_size
    html = [
        result_html(result, config_of(asked.values, side), side, model.vocabulary, width)
        for side, result in results.items()
    ]
    return Shown({"sides": "".join(html), "comparison": comparison(results)})


FIGURE = Figure("Unmask step by step", show)


def decoded(
    session: Session, model: MaskedLM, text: str, config: UnmaskingConfig
) -> Waiting | Done[Unmasked]:
    """A cached decoding, or its progress."""

    def work(report: Report) -> Unmasked:
        def on_step(step: Step) -> None:
            left = step.ids.count(model.vocabulary.mask_id)
            report(Waiting(f"Step {step.number}, {left} still hidden", None))

        return finish(model, text, config, on_step)

    def size(result: Unmasked) -> int:
        return sum(len(own.candidates) for step in result.steps for own in step.hidden)

    return session.slowly(model, (finish, text, config), work, size)


@dataclass(frozen=True)
class Request(figure.Request):
    """A request about a decoding on the page."""

    side: Literal["A", "B"] = "A"
    step: int = 0  # of the chosen cell, from 1
    position: int = -1


def _known(session: Session, asked: Request) -> tuple[MaskedLM, Unmasked] | None:
    """The model and decoding of one side; None until it is finished."""
    model = session.model(asked.model)
    text = text_of(asked.values, model)
    check_text(text)
    state = decoded(session, model, text, config_of(asked.values, asked.side))
    return (model, state.result) if isinstance(state, Done) else None


def cell(session: Session, request: Mapping[str, Any]) -> Json:
    """The candidates of one cell as `html`; blank for an unknown cell."""
    asked = from_values(Request, request)
    known = _known(session, asked)
    if known is None or not 1 <= asked.step <= len(known[1].steps):
        return {"html": ""}
    model, result = known
    step = result.steps[asked.step - 1]
    return {"html": cell_html(step, asked.position, asked.side, model.vocabulary)}


def history(session: Session, request: Mapping[str, Any]) -> Json:
    """The history of one side as a file: its `name`, `type` and `text`."""
    known = _known(session, from_values(Request, request))
    if known is None:
        raise OptionError("the decoding is not finished yet")
    text = "".join(f"{line}\n" for line in history_lines(known[1]))
    return {"name": "unmasking.jsonl", "type": "application/jsonl", "text": text}


def shown(session: Session, request: Mapping[str, Any]) -> Json:
    """The pieces of the tab, from `figure.answer`."""
    return figure.answer(session, FIGURE, from_values(figure.Request, request))


# Name in the browser -> function of the session and JSON values.
SERVED = {"figure": shown, "cell": cell, "history": history}


# Signs that join the word before them in any vocabulary.
_CLOSING = frozenset(".,;:!?%)]}’”")
LINE_WIDTH, LINE_HEIGHT = 560, 120


@dataclass(frozen=True)
class Cell:
    """One position at one step."""

    word: str  # the token after the step, or else its best candidate
    state: str  # `new`, `filled`, `hidden`, or `again` when remasked
    sure: float  # the model's latest confidence, in [0, 1]


@dataclass(frozen=True)
class Column:
    """One token of the text."""

    position: int
    word: str  # blank if hidden at first
    hidden: bool  # at first
    joined: bool  # whether no space precedes it


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
    """A token's display name: `…ing` for a piece that continues a word."""
    return token_name(
        vocabulary.token(token_id), vocabulary.word(token_id), vocabulary.is_continuation(token_id)
    )


def sureness(confidence: float, order: str, vocabulary_size: int) -> float:
    """A confidence as a share in [0, 1]: 1 minus the uncertainty that a threshold sums."""

    if order == "entropy":
        return 1 + confidence / math.log(vocabulary_size)
    return confidence


def frames(
    result: Unmasked, order: str, vocabulary: Vocabulary, vocabulary_size: int
) -> list[dict[int, Cell]]:
    """The cells of the initially hidden positions, one dict per step."""
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
    """One side: its figures, the place of the strip, the grid, the log-probability line."""
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
    """The candidates of one position at one step; blank if it was not hidden then."""
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
    """Both sides in one table; blank for a single side."""
    return render("page/unmask/comparison.html", results=results) if len(results) > 1 else ""
