"""Unmasking as a tool for language models."""

from typing import Any

from fillmask_ui.features.unmask.unmask_view import decoded
from fillmask_ui.features.unmask.unmasking_options import UnmaskingConfig
from fillmask_ui.ui.session import Session


def unmask(  # noqa: D417 - callers do not see the session
    session: Session, text: str, model: str = "", max_steps: int = 0, order: str = "top_prob"
) -> dict[str, Any]:
    """Fill all masks of a text step by step; a mask is one token, a word or a piece of one.

    Returns JSON: the filled `text`, the `steps` with what each wrote, `log_probability_nats`
    of all that was written, and the `pseudo_perplexity` of the finished text.

    Args:
        text: a text with one mask or more: [MASK], <mask>, ____ or the model's own mask token.
        model: a reference that `models` lists, a hub id, folder or .onnx file; empty: the page's.
        max_steps: steps at most; 0: as many as there are masks, one filled at each.
        order: which mask is filled first: top_prob, prob_diff, entropy, left_to_right or none.
    """
    config = UnmaskingConfig(max_steps=max_steps or None, order=order)
    result = decoded(session, session.model_soon(model), text, config).to_dict()
    return {name: value for name, value in result.items() if name != "ids"}
