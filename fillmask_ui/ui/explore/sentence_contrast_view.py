"""Two sentences side by side: the same candidates at a mask of each."""

import re
from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any

from fillmask_ui.comparing import pair_masks
from fillmask_ui.filling import unscorable
from fillmask_ui.filling.prompt import normalise_masks, split_words
from fillmask_ui.ui.explore import attribution_view
from fillmask_ui.ui.explore.attribution_view import Json
from fillmask_ui.ui.explore.contrast_chart import Sides, contrast_html
from fillmask_ui.ui.session import Session, check_text

# Longest name of a sentence by the words in which it differs.
_MAX_NAME = 28


def contrast_sentences(session: Session, values: Mapping[str, Any]) -> Json:
    """The sentence beside the second one, `other`: `html`, or a hint at what is missing."""
    asked = attribution_view.read_asked(session, values)
    check_text(asked.question.other)
    mask_token = asked.model.vocabulary.mask_token
    other = normalise_masks(asked.question.other, mask_token)
    if hint := _missing(asked.text, other, mask_token):
        return {"kind": "hint", "notice": hint, "html": ""}
    mask = asked.question.selected if asked.question.selected < len(asked.hidden) else 0
    words = split_words(asked.question.words)
    for text in (asked.text, other):
        bad = unscorable(asked.model, text, words)
        words = tuple(word for word in words if word not in bad)
    choices = {"masks": (mask, mask), "top_k": asked.question.top_k, "words": words}
    found = session.ask(asked.model, pair_masks, asked.text, other, **choices)
    names = differing_words(asked.text, other)
    vocabulary = asked.model.vocabulary
    html = contrast_html(
        found,
        Sides("sentences", names, (asked.text, other), (vocabulary, vocabulary)),
        asked.question,
        number=mask if len(asked.hidden) > 1 else None,
    )
    return {"kind": "none", "html": html}


def _missing(first: str, second: str, mask_token: str) -> str:
    """A hint at what the second sentence lacks; blank if it can be compared."""
    wanted, there = first.count(mask_token), second.count(mask_token)
    if not second.strip():
        return f"Write the second sentence, with {mask_token} in it."
    if not wanted:
        return "Hide a word of the first sentence: click it."
    if not there:
        return f"The second sentence has no mask: write {mask_token} where the word is hidden."
    if there != wanted:
        return (
            f"The second sentence has {_masks(there)} and the first {_masks(wanted)}: "
            "give both the same number."
        )
    if first.split() == second.split():
        return "Both sentences are the same: change a word in the second."
    return ""


def _masks(count: int) -> str:
    return "1 mask" if count == 1 else f"{count} masks"


def differing_words(first: str, second: str) -> tuple[str, str]:
    """Short names of two sentences: the words in which they differ, if these are few.

    >>> differing_words("The nurse said [MASK].", "The doctor said [MASK].")
    ('nurse', 'doctor')
    >>> differing_words("A [MASK].", "A very old [MASK].")
    ('first sentence', 'second sentence')
    """
    left, right = (re.findall(r"\[\w+\]|<\w+>|\w+|[^\w\s]", text) for text in (first, second))
    changes = SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    parts = [
        (" ".join(left[a:b]), " ".join(right[c:d])) for tag, a, b, c, d in changes if tag != "equal"
    ]
    names = (" … ".join(own for own, _ in parts), " … ".join(own for _, own in parts))
    plain = all(own and other and not set(own + other) & set("[<") for own, other in parts)
    short = parts and max(map(len, names)) <= _MAX_NAME
    return names if plain and short else ("first sentence", "second sentence")
