"""The Unmask tab: its form, checked as untrusted input, and its decodings as HTML."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from fillmask_ui.errors import OptionError
from fillmask_ui.features.unmask.decoding_history import Step, Unmasked, history_lines
from fillmask_ui.features.unmask.step_views import frames, grown
from fillmask_ui.features.unmask.unmask_texts import finish, masked_prompt
from fillmask_ui.features.unmask.unmasking_options import CONFIDENCES, UnmaskingConfig
from fillmask_ui.filling.prompt import encode_masked, mask_positions
from fillmask_ui.options import Option, options_of
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.schema import from_values
from fillmask_ui.show.render import render
from fillmask_ui.show.words import named
from fillmask_ui.ui import figure
from fillmask_ui.ui.figure import Asked, Shown
from fillmask_ui.ui.job import Report, Unfinished, Waiting
from fillmask_ui.ui.session import Session, check_text

# Each hidden position takes a pass of the model and a column of the grid.
MOST_HIDDEN = 100
SIDES = ("A", "B")
# The initial form: one token at a time beside all at once.
TEXT = "[MASK] [MASK] [MASK] [MASK] in the morning, and [MASK] [MASK] [MASK] at night."
PLAIN: dict[str, UnmaskingConfig] = {
    "A": UnmaskingConfig(pieces="fitting"),
    "B": UnmaskingConfig(pieces="fitting", max_steps=1),
}
SOURCES = {
    "text": "a text with masks",
    "prompt": "a beginning and an end",
    "length": "nothing but a length",
}
ORDER_LABELS = {
    "top_prob": "largest probability first",
    "prob_diff": "largest lead first",
    "entropy": "smallest entropy first",
    "left_to_right": "from left to right",
    "none": "at random",
}


def controls(side: str) -> dict[str, Option]:
    """The options of a decoding by name; their defaults are what one side begins with."""
    return {
        name: replace(own, default=getattr(PLAIN[side], name))
        for name, own in options_of(UnmaskingConfig).items()
    }


def config_of(values: Mapping[str, str], side: str) -> UnmaskingConfig:
    """The decoding options of one side; an `OptionError` that names the side and the option."""
    given: dict[str, Any] = {}
    for name, own in controls(side).items():
        if (text := values.get(f"{side}_{name}")) is None:
            given[name] = own.default
        elif text := text.strip():
            given[name] = text if own.choices else _number(text, own)
    try:
        return UnmaskingConfig(**given)
    except OptionError as error:
        raise OptionError(f"setting {side}: {error}") from error


def _number(text: str, own: Option) -> float:
    try:
        return int(text) if own.kind is int else float(text)
    except ValueError:
        kind = "a whole number" if own.kind is int else "a number"
        raise OptionError(f"{own.label} must be {kind}; it was {text[:40]!r}") from None


def text_of(values: Mapping[str, str], model: MaskedLM) -> str:
    """The text with its masks: as typed, or made from a prompt or a length that fits the page."""
    source = values.get("source", "text")
    if source == "text":
        return values.get("text", TEXT)
    name = "new_tokens" if source == "prompt" else "length"
    written = values.get(name, "8").strip()
    if not re.fullmatch(r"[0-9]{1,4}", written) or not 1 <= int(written) <= MOST_HIDDEN:
        raise OptionError(
            f"the number of tokens must be from 1 to {MOST_HIDDEN}; it was {written[:40]!r}"
        )
    keys = ("prefix", "suffix") if source == "prompt" else ()
    around = {key: values.get(key, "").strip() for key in keys}
    return masked_prompt(model.vocabulary, int(written), **around)


Json = dict[str, Any]


def show(asked: Asked) -> Shown:
    """Both decodings, or one."""
    model, text = asked.model, text_of(asked.values, asked.model)
    results: dict[str, Unmasked] = {}
    for side in SIDES if asked.pressed("both") else SIDES[:1]:
        config = config_of(asked.values, side)
        results[side] = decoded(asked.session, model, text, config)
    drawn = {"strips": "", "sides": ""}
    for side, result in results.items():
        pieces = side_pieces(result, config_of(asked.values, side), side, model)
        drawn = {name: html + pieces[name] for name, html in drawn.items()}
    comparison = render("unmask/comparison.html", results=results)
    return Shown({**drawn, "comparison": comparison})


def decoded(session: Session, model: MaskedLM, text: str, config: UnmaskingConfig) -> Unmasked:
    """A cached decoding; `Unfinished` while it goes on, an error for more than a page unmasks."""
    check_text(text)
    hidden = len(mask_positions(encode_masked(model, text), model.vocabulary))
    if hidden > MOST_HIDDEN:
        raise OptionError(
            f"the text has {hidden:,} masks and this page unmasks at most {MOST_HIDDEN}: leave "
            "some out, or use `fillmask-ui unmask`"
        )

    def work(report: Report) -> Unmasked:
        def on_step(step: Step) -> None:
            left = step.ids.count(model.vocabulary.mask_id)
            report(Waiting(f"Step {step.number}, {left} still hidden", None))

        return finish(model, text, config, on_step)

    return session.slowly(model, (finish, text, config), work)


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
    try:
        return model, decoded(session, model, text, config_of(asked.values, asked.side))
    except Unfinished:
        return None


def cell(session: Session, request: Mapping[str, Any]) -> Json:
    """The candidates of one cell as `html`; blank for an unknown cell."""
    asked = from_values(Request, request)
    known = _known(session, asked)
    if known is None or not 1 <= asked.step <= len(known[1].steps):
        return {"html": ""}
    model, result = known
    values = {"side": asked.side, "position": asked.position, "step": result.steps[asked.step - 1]}
    name = partial(named, model.vocabulary)
    return {"html": render("unmask/cell.html", **values, name=name)}


def history(session: Session, request: Mapping[str, Any]) -> Json:
    """The history of one side as a file: its `name`, `type` and `text`."""
    known = _known(session, from_values(Request, request))
    if known is None:
        raise OptionError("the decoding is not finished yet")
    text = "".join(f"{line}\n" for line in history_lines(known[1]))
    return {"name": "unmasking.jsonl", "type": "application/jsonl", "text": text}


def shown(session: Session, request: Mapping[str, Any]) -> Json:
    """The pieces of the tab, from `figure.answer`."""
    return figure.answer(session, show, from_values(figure.Request, request))


# Name in the browser -> function of the session and JSON values.
SERVED = {"figure": shown, "cell": cell, "history": history}


# Signs that join the word before them in any vocabulary.
_CLOSING = frozenset(".,;:!?%)]}’”")


def sureness(confidence: float, order: str, vocabulary_size: int) -> float:
    """A confidence as a share in [0, 1]: 1 minus the uncertainty that a threshold sums."""
    return 1 + confidence / math.log(vocabulary_size) if order == "entropy" else confidence


def side_pieces(
    result: Unmasked, config: UnmaskingConfig, side: str, model: MaskedLM
) -> dict[str, str]:
    """One side: its `strips`, and in `sides` its sentences, grid, line and figures."""
    vocabulary, size = model.vocabulary, model.signature.vocabulary_size
    values = {
        "side": side,
        "result": result,
        "order": ORDER_LABELS[config.order],
        "confident": config.order in CONFIDENCES,
        "frames": frames(
            result, vocabulary, lambda own: sureness(own.confidence, config.order, size)
        ),
        "grown": partial(grown, result),
        "vocabulary": vocabulary,
        "name": partial(named, vocabulary),
        "closing": _CLOSING,
    }
    return {
        name: render(f"unmask/{template}.html", **values)
        for name, template in (("strips", "strip"), ("sides", "side"))
    }
