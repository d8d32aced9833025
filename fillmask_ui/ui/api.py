"""The endpoints for programs: stable names, documented types."""

from __future__ import annotations

import dataclasses
from typing import Any

import gradio as gr

from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.filling import split_words
from fillmask_ui.ui.session import Session
from fillmask_ui.ui.widgets import text_html

MAX_TOP_K = 100


def build(session: Session) -> None:
    """Add `/predict`, `/score_candidates` and `/models` to the page being built.

    Args:
        session: the models that all visitors share.
    """

    def predict(text: str, model: str = "", top_k: int = 5, candidates: str = "") -> dict:
        """Most probable words at each mask of a text.

        Args:
            text: a sentence with [MASK], <mask> or ___.
            model: a model's reference; empty for the page's default model.
            top_k: candidates listed for each mask, 1 to 100.
            candidates: words to score at each mask, separated by commas.

        Returns:
            What `fillmask-ui predict --json` prints.
        """
        return _said(predicted, session, text, model, top_k, candidates)

    def score_candidates(text: str, candidates: str, model: str = "") -> list[list[dict]]:
        """Probability and NLL of given words at each mask of a text.

        Args:
            text: a sentence with [MASK], <mask> or ___.
            candidates: words of any number of tokens, separated by commas.
            model: a model's reference; empty for the page's default model.

        Returns:
            One list a mask, one entry a word: word, nll_nats, probability, rank, parts.
        """
        return _said(scored, session, text, candidates, model)

    def models() -> list[dict]:
        """Models at hand without a network.

        Returns:
            One entry a model; `reference` is what the other endpoints take as `model`.
        """
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
    return session.fill(loaded, text, top_k=top_k, words=split_words(candidates)).to_dict()


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
