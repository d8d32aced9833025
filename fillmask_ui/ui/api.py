"""The endpoints for programs: stable names, documented types."""

# No `from __future__ import annotations`: Gradio reads the types below while the page is built.

import dataclasses
from typing import Any, TypedDict

import gradio as gr

from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.filling import split_words
from fillmask_ui.ui.explore_view import MAX_TOP_K
from fillmask_ui.ui.session import Session
from fillmask_ui.ui.widgets import text_html


class CandidateJson(TypedDict):
    """One token of the vocabulary at one mask."""

    rank: int
    token_id: int
    token: str
    word: str
    probability: float
    nll_nats: float | None


class PartJson(TypedDict):
    """One sub-token of a scored word."""

    token_id: int
    token: str
    nll_nats: float | None


class ScoredJson(TypedDict):
    """A word that was asked about."""

    word: str
    nll_nats: float | None
    probability: float
    rank: int | None
    parts: list[PartJson]


class MaskJson(TypedDict):
    """What the model says at one mask."""

    position: int
    entropy_nats: float
    candidates: list[CandidateJson]
    scored: list[ScoredJson]


class JointPartJson(TypedDict):
    """One factor of a joint filling."""

    position: int
    token_id: int
    token: str
    word: str
    nll_nats: float | None


class JointJson(TypedDict):
    """All masks filled together."""

    text: str
    nll_nats: float | None
    log_probability_nats: float | None
    parts: list[JointPartJson]


class FillingJson(TypedDict):
    """What `fillmask-ui predict --json` prints."""

    text: str
    model: str
    signature: str
    masks: list[MaskJson]
    joint: list[JointJson]


class ModelJson(TypedDict):
    """A model at hand."""

    reference: str
    runtimes: list[str]
    size_bytes: int
    where: str
    note: str


def build(session: Session) -> None:
    """Add `/predict`, `/score_candidates` and `/models` to the page being built.

    Args:
        session: the models that all visitors share.
    """

    def predict(text: str, model: str = "", top_k: int = 5, candidates: str = "") -> FillingJson:
        """Most probable words at each mask of a text, as `fillmask-ui predict --json` prints them.

        Args:
            text: a sentence with [MASK], <mask> or ___.
            model: a model's reference; empty for the page's default model.
            top_k: candidates listed for each mask, 1 to 100.
            candidates: words to score at each mask, separated by commas.
        """
        return _said(predicted, session, text, model, top_k, candidates)

    def score_candidates(text: str, candidates: str, model: str = "") -> list[list[ScoredJson]]:
        """Probability and NLL of given words: one list a mask, one entry a word.

        Args:
            text: a sentence with [MASK], <mask> or ___.
            candidates: words of any number of tokens, separated by commas.
            model: a model's reference; empty for the page's default model.
        """
        return _said(scored, session, text, candidates, model)

    def models() -> list[ModelJson]:
        """Models at hand without a network; the other endpoints take a `reference` as `model`."""
        return _said(listed, session)

    for endpoint in (predict, score_candidates, models):
        gr.api(endpoint, api_name=endpoint.__name__, concurrency_limit=4)


def predicted(
    session: Session, text: str, model: str = "", top_k: int = 5, candidates: str = ""
) -> dict[str, Any]:
    """`Filling.to_dict()` of a text; the arguments are those of `/predict`.

    Raises:
        FillmaskError: for a text, model, number or word that cannot be used.
    """
    if not 1 <= top_k <= MAX_TOP_K:
        raise OptionError(f"top_k was {top_k}: give a number from 1 to {MAX_TOP_K}")
    loaded = session.model(model)
    filling = session.fill(loaded, text, top_k=top_k, words=split_words(candidates))
    return filling.to_dict()


def scored(
    session: Session, text: str, candidates: str, model: str = ""
) -> list[list[dict[str, Any]]]:
    """Scores of words at each mask; the arguments are those of `/score_candidates`.

    Raises:
        FillmaskError: for a text, model or word that cannot be used.
    """
    words = session.score(session.model(model), text, split_words(candidates))
    return [[dataclasses.asdict(word) for word in mask] for mask in words]


def listed(session: Session) -> list[dict[str, Any]]:
    """The models at hand."""
    return [dataclasses.asdict(model) for model in session.models()]


def _said(function: Any, *values: Any) -> Any:
    """A result, or the message meant for the caller; anything else stays a server error."""
    try:
        return function(*values)
    except FillmaskError as error:
        # Gradio shows these messages as HTML, so what a caller sent must not become any.
        raise gr.Error(text_html(str(error)), print_exception=False) from error
