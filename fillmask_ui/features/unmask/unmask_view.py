"""The Unmask tab: its form, checked as untrusted input, and its decodings as HTML."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from fillmask_ui.errors import OptionError
from fillmask_ui.features.unmask.decoding_history import (
    DecodingStep,
    HiddenPosition,
    Unmasked,
    history_lines,
)
from fillmask_ui.features.unmask.step_views import largest_gain, step_frames
from fillmask_ui.features.unmask.unmask_texts import finish, masked_prompt
from fillmask_ui.features.unmask.unmasking_options import CONFIDENCES, UnmaskingConfig
from fillmask_ui.filling.prompt import encode_masked, mask_positions
from fillmask_ui.options import Option, options_of
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.schema import from_values
from fillmask_ui.show.render import render
from fillmask_ui.show.words import named
from fillmask_ui.ui import figure
from fillmask_ui.ui.figure import FigureInputs, Shown
from fillmask_ui.ui.job import Report, Unfinished, Waiting
from fillmask_ui.ui.session import Session, check_text

# Each hidden position takes a pass of the model and a column of the grid.
MOST_HIDDEN = 100
SETTINGS = ("A", "B")
# The initial form: one token at a time beside all at once.
TEXT = "[MASK] [MASK] [MASK] [MASK] in the morning, and [MASK] [MASK] [MASK] at night."
PLAIN: dict[str, UnmaskingConfig] = {
    "A": UnmaskingConfig(pieces="fitting"),
    "B": UnmaskingConfig(pieces="fitting", max_steps=1),
}
SOURCES = {
    "text": "a text with masks",
    "prompt": "a beginning and an end",
    "length": "only a length",
}
ORDER_LABELS = {
    "top_prob": "largest probability first",
    "prob_diff": "largest lead first",
    "entropy": "smallest entropy first",
    "left_to_right": "from left to right",
    "none": "at random",
}


def controls(setting: str) -> dict[str, Option]:
    """The options of a decoding by name, with the initial values of a setting as defaults."""
    return {
        name: replace(declared, default=getattr(PLAIN[setting], name))
        for name, declared in options_of(UnmaskingConfig).items()
    }


def config_of(values: Mapping[str, str], setting: str) -> UnmaskingConfig:
    """The options of a setting; an `OptionError` names the setting and the option."""
    chosen: dict[str, Any] = {}
    for name, declared in controls(setting).items():
        if (text := values.get(f"{setting}_{name}")) is None:
            chosen[name] = declared.default
        elif text := text.strip():
            chosen[name] = text if declared.choices else _number(text, declared)
    try:
        return UnmaskingConfig(**chosen)
    except OptionError as error:
        raise OptionError(f"setting {setting}: {error}") from error


def _number(text: str, declared: Option) -> float:
    try:
        return int(text) if declared.kind is int else float(text)
    except ValueError:
        kind = "a whole number" if declared.kind is int else "a number"
        raise OptionError(f"{declared.label} must be {kind}; it was {text[:40]!r}") from None


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
    prefix = suffix = ""
    if source == "prompt":
        prefix, suffix = values.get("prefix", "").strip(), values.get("suffix", "").strip()
    return masked_prompt(model.vocabulary, int(written), prefix=prefix, suffix=suffix)


Json = dict[str, Any]


def show(request: FigureInputs) -> Shown:
    """Both decodings, or one."""
    model, text = request.model, text_of(request.values, request.model)
    results: dict[str, Unmasked] = {}
    for setting in SETTINGS if request.pressed("both") else SETTINGS[:1]:
        config = config_of(request.values, setting)
        results[setting] = decoded(request.session, model, text, config)
    pieces = {"strips": "", "sides": ""}
    for setting, result in results.items():
        values = _template_values(result, config_of(request.values, setting), setting, model)
        pieces["strips"] += render("unmask/strip.html", **values)
        pieces["sides"] += render("unmask/decoding.html", **values)
    pieces["comparison"] = render("unmask/comparison.html", results=results)
    return Shown(pieces)


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
        def on_step(step: DecodingStep) -> None:
            left = step.ids.count(model.vocabulary.mask_id)
            report(Waiting(f"Step {step.number}, {left} still hidden", None))

        return finish(model, text, config, on_step)

    return session.slowly(model, (finish, text, config), work, title="a run of Unmask")


@dataclass(frozen=True)
class DecodingRequest(figure.Request):
    """A request about a decoding on the page."""

    setting: Literal["A", "B"] = "A"
    step: int = 0  # of the chosen cell, from 1
    position: int = -1


def _finished(session: Session, request: DecodingRequest) -> tuple[MaskedLM, Unmasked] | None:
    """The model and the decoding of one setting; None until it is finished."""
    model = session.model(request.model)
    text = text_of(request.values, model)
    try:
        return model, decoded(session, model, text, config_of(request.values, request.setting))
    except Unfinished:
        return None


def cell(session: Session, values: Mapping[str, Any]) -> Json:
    """The candidates of one cell as `html`; blank for an unknown cell."""
    request = from_values(DecodingRequest, values)
    finished = _finished(session, request)
    if finished is None or not 1 <= request.step <= len(finished[1].steps):
        return {"html": ""}
    model, result = finished
    html = render(
        "unmask/cell.html",
        setting=request.setting,
        position=request.position,
        step=result.steps[request.step - 1],
        name=partial(named, model.vocabulary),
    )
    return {"html": html}


def history(session: Session, values: Mapping[str, Any]) -> Json:
    """The history of one setting as a file: its `name`, `type` and `text`."""
    finished = _finished(session, from_values(DecodingRequest, values))
    if finished is None:
        raise OptionError("the decoding is not finished yet: wait until all steps are there")
    text = "".join(f"{line}\n" for line in history_lines(finished[1]))
    return {"name": "unmasking.jsonl", "type": "application/jsonl", "text": text}


def answer(session: Session, values: Mapping[str, Any]) -> Json:
    """The pieces of the tab, from `figure.answer`."""
    return figure.answer(session, show, from_values(figure.Request, values))


# Name in the browser -> function of the session and JSON values.
SERVED = {"figure": answer, "cell": cell, "history": history}


# Signs that join the word before them in any vocabulary.
_CLOSING = frozenset(".,;:!?%)]}’”")


def sureness(confidence: float, order: str, vocabulary_size: int) -> float:
    """A confidence as a share in [0, 1]: 1 minus the uncertainty that a threshold sums."""
    return 1 + confidence / math.log(vocabulary_size) if order == "entropy" else confidence


def _template_values(
    result: Unmasked, config: UnmaskingConfig, setting: str, model: MaskedLM
) -> dict[str, Any]:
    """The values of the templates of one decoding."""
    vocabulary, size = model.vocabulary, model.signature.vocabulary_size

    def share(state: HiddenPosition) -> float:
        return sureness(state.confidence, config.order, size)

    return {
        "setting": setting,
        "result": result,
        "order": ORDER_LABELS[config.order],
        "confident": config.order in CONFIDENCES,
        "frames": step_frames(result, vocabulary, share),
        "largest_gain": partial(largest_gain, result),
        "vocabulary": vocabulary,
        "name": partial(named, vocabulary),
        "closing": _CLOSING,
    }
