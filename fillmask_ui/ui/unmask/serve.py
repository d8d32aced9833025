"""What the browser calls: functions of plain JSON values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from fillmask_ui.errors import OptionError
from fillmask_ui.filling.prompt import encode_masked, mask_positions
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.schema import from_values
from fillmask_ui.ui import figure
from fillmask_ui.ui.background import Done, Report, Waiting
from fillmask_ui.ui.figure import Asked, Figure, Shown
from fillmask_ui.ui.session import Session, check_text
from fillmask_ui.ui.unmask import view
from fillmask_ui.ui.unmask.form import MOST_HIDDEN, SIDES, config_of, text_of
from fillmask_ui.unmasking import Step, Unmasked, UnmaskingConfig, finish, history_lines

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
        view.result_html(result, config_of(asked.values, side), side, model.vocabulary, width)
        for side, result in results.items()
    ]
    return Shown({"sides": "".join(html), "comparison": view.comparison(results)})


FIGURE = Figure("Unmask step by step", show)


def decoded(
    session: Session, model: MaskedLM, text: str, config: UnmaskingConfig
) -> Waiting | Done[Unmasked]:
    """A decoding, remembered; how far it is while it is being made."""

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
    """What the browser asks about a decoding that it shows."""

    side: Literal["A", "B"] = "A"
    step: int = 0  # of the cell that is looked at, from 1
    position: int = -1


def _known(session: Session, asked: Request) -> tuple[MaskedLM, Unmasked] | None:
    """The decoding of one side that the browser shows; None while it is not there."""
    model = session.model(asked.model)
    text = text_of(asked.values, model)
    check_text(text)
    state = decoded(session, model, text, config_of(asked.values, asked.side))
    return (model, state.result) if isinstance(state, Done) else None


def cell(session: Session, request: Mapping[str, Any]) -> Json:
    """The candidates of one cell as `html`: `values`, `model`, `side`, `step` and `position`."""
    asked = from_values(Request, request)
    known = _known(session, asked)
    if known is None or not 1 <= asked.step <= len(known[1].steps):
        return {"html": ""}
    model, result = known
    step = result.steps[asked.step - 1]
    return {"html": view.cell_html(step, asked.position, asked.side, model.vocabulary)}


def history(session: Session, request: Mapping[str, Any]) -> Json:
    """The history of one side as a file: its `name`, `type` and `text`."""
    known = _known(session, from_values(Request, request))
    if known is None:
        raise OptionError("the decoding is not finished yet")
    text = "".join(f"{line}\n" for line in history_lines(known[1]))
    return {"name": "unmasking.jsonl", "type": "application/jsonl", "text": text}


def shown(session: Session, request: Mapping[str, Any]) -> Json:
    """The pieces of the tab, as `ui/figure.py: answer` gives them."""
    return figure.answer(session, FIGURE, from_values(figure.Request, request))


# By the name under which the browser calls them; each takes the session and JSON values.
SERVED = {"figure": shown, "cell": cell, "history": history}
