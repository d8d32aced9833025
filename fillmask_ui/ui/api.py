"""The endpoints for programs: stable names, documented types."""

# No `from __future__ import annotations`: Gradio reads the types below while the page is built.

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from types import GenericAlias
from typing import Any, TypedDict, get_args, get_type_hints

import gradio as gr

from fillmask_ui import comparing, filling, records
from fillmask_ui.comparing.contrast import ComparedJoint, Contrast
from fillmask_ui.errors import FillmaskError, OptionError, explain
from fillmask_ui.files import visible
from fillmask_ui.filling import MAX_TOP_K
from fillmask_ui.filling.prompt import split_words
from fillmask_ui.models import AvailableModel, available_models
from fillmask_ui.ui.session import Session

# Called with what is known only while this runs, which type checkers do not follow.
_typed_dict: Any = TypedDict


def _json_of(record: type, **more: Any) -> Any:
    """A record as JSON, with more fields: an infinite loss as null, its own records as lists."""
    plain, nested = {}, {}
    hints = get_type_hints(record)
    kinds = {entry.name: hints[entry.name] for entry in dataclasses.fields(record)}
    for name, kind in (kinds | more).items():
        (item, *_) = get_args(kind) or (None,)
        if isinstance(item, type) and dataclasses.is_dataclass(item):
            nested[name] = GenericAlias(list, _json_of(item))
        else:
            plain[name] = float | None if name == "nll_nats" else kind
    return _typed_dict(f"{record.__name__}Json", records.by_role(plain | nested))


ScoredJson = _json_of(records.ScoredWord)
JointJson = _json_of(records.JointFilling, log_probability_nats=float | None)
# What `fillmask-ui predict --json` prints.
_FILLING = {
    **dict.fromkeys(("text", "model", "signature"), str),
    "masks": GenericAlias(list, _json_of(records.MaskFilling)),
    "joint": GenericAlias(list, JointJson),
}
FillingJson = _typed_dict("FillingJson", _FILLING)
ContrastJson = _json_of(Contrast)
# What `fillmask-ui predict --baseline --json` prints.
_COMPARED = {
    "reference": FillingJson,
    "candidate": FillingJson,
    "by_word": bool,
    "notes": GenericAlias(list, str),
    "masks": GenericAlias(list, ContrastJson),
    "joint": GenericAlias(list, _json_of(ComparedJoint)),
}
ComparisonJson = _typed_dict("ComparisonJson", _COMPARED)


def build(session: Session, visibility: Any = "public") -> None:
    """Add `/predict`, `/score_candidates`, `/compare` and `/models` to the page being built.

    Where Gradio serves tools to language models, all that is "public" is one.
    """

    def predict(text: str, model: str = "", top_k: int = 5, candidates: str = "") -> Any:
        """Most probable words at each mask of a text, as `fillmask-ui predict --json` prints them.

        Args:
            text: a sentence with [MASK], <mask> or ___.
            model: a model's reference; empty for the page's default model.
            top_k: candidates listed for each mask, 1 to 100.
            candidates: words to score at each mask, separated by commas.
        """
        _check_strings(text=text, model=model, candidates=candidates)
        asked = listed(top_k, candidates)
        return session.ask(session.model(model), filling.fill, text, **asked).to_dict()

    def score_candidates(text: str, candidates: str, model: str = "") -> Any:
        """Probability and NLL of given words: one list per mask, one entry per word.

        Args:
            text: a sentence with [MASK], <mask> or ___.
            candidates: words of any number of tokens, separated by commas.
            model: a model's reference; empty for the page's default model.
        """
        _check_strings(text=text, candidates=candidates, model=model)
        words = split_words(candidates)
        scores = session.ask(session.model(model), filling.score_candidates, text, words=words)
        return [[dataclasses.asdict(word) for word in mask] for mask in scores]

    def compare(
        text: str, model: str = "", other: str = "", top_k: int = 5, candidates: str = ""
    ) -> Any:
        """Two models at each mask, as `fillmask-ui predict --baseline --json` prints them.

        Args:
            text: a sentence with [MASK], <mask> or ___.
            model: address of the reference; empty for the page's default model.
            other: address of the candidate; empty for the page's default model.
            top_k: words that each lists for each mask, 1 to 100.
            candidates: words to score at each mask, separated by commas.
        """
        _check_strings(text=text, model=model, other=other, candidates=candidates)
        asked = listed(top_k, candidates)
        both = session.model(model), session.model(other)
        return session.ask(both, comparing.compare, text, **asked).to_dict()

    def models() -> Any:
        """Models at hand without a network; the other endpoints take a `reference` as `model`."""
        return [dataclasses.asdict(model) for model in available_models()]

    for endpoint, returned in (
        (predict, FillingJson),
        (score_candidates, GenericAlias(list, GenericAlias(list, ScoredJson))),
        (compare, ComparisonJson),
        (models, GenericAlias(list, _json_of(AvailableModel))),
    ):
        # Gradio documents the type that it finds here.
        endpoint.__annotations__["return"] = returned
        name = endpoint.__name__
        called = errors_in_words()(endpoint)
        gr.api(called, api_name=name, api_visibility=visibility, concurrency_limit=4)


def _check_strings(**values: object) -> None:
    """What a program sends may be anything that JSON has."""
    for name, value in values.items():
        if not isinstance(value, str):
            raise OptionError(f"{name} must be a string; it was {json.dumps(value)[:100]}")


def check_top_k(top_k: Any, most: int = MAX_TOP_K) -> int:
    """A number of words that may be listed, or an `OptionError`."""
    if type(top_k) is not int or not 1 <= top_k <= most:
        shown = json.dumps(top_k)[:100]
        raise OptionError(f"top_k was {shown}: give a whole number from 1 to {most}")
    return top_k


def listed(top_k: Any, candidates: str, most: int = MAX_TOP_K) -> dict[str, Any]:
    """The options of what lists `top_k` words and scores others, separated by commas."""
    return {"top_k": check_top_k(top_k, most), "candidates": split_words(candidates)}


@contextlib.contextmanager
def errors_in_words() -> Iterator[None]:
    """What goes wrong is said to the caller, as `explain` words it; a bug is logged too."""
    try:
        yield
    except Exception as error:
        said = visible(explain(error)[0], lines=True)
        raise gr.Error(said, print_exception=not isinstance(error, FillmaskError)) from error
