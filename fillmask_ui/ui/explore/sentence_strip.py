"""The sentence as a strip of buttons for its words and masks."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from fillmask_ui.filling.prompt import mask_positions, mask_range, normalise_masks, write_token
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Encoding, Filling, ScoredWord
from fillmask_ui.show.render import render
from fillmask_ui.show.words import candidate_names
from fillmask_ui.text_words import text_words

# A longer text gets no buttons.
MAX_STRIP_TOKENS = 600


def version_of(text: str) -> str:
    """Short hash of a text, to recognise clicks on an outdated one."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def strip_html(
    draft: Draft,
    encoding: Encoding,
    vocabulary: Vocabulary,
    filling: Filling | None = None,
    selected: int = 0,
    truth: ScoredWord | None = None,
) -> str:
    """The buttons of the words and masks; blank for a long text.

    `encoding` is that of the draft's text; a `filling` gives each mask whose word is unknown its
    best guess, `truth` the word of the selected mask its probability.
    """
    if len(encoding) > MAX_STRIP_TOKENS:
        return ""
    best = [mask.candidates[0] for mask in filling.masks] if filling else []
    return render(
        "explore/strip.html",
        items=list(_items(encoding, vocabulary)),
        hidden=draft.words(len(mask_positions(encoding, vocabulary))),
        guesses=[(candidate_names([guess], vocabulary)[0], guess.probability) for guess in best],
        selected=selected,
        truth=truth,
        direction=direction(draft.text),
        version=version_of(draft.text),
    )


def direction(text: str) -> str:
    """Where a line begins, by its first letter that says so.

    >>> direction("Say שלום"), direction("(שלום) 1")
    ('ltr', 'rtl')
    """
    kinds = (unicodedata.bidirectional(character) for character in text)
    strong = next((kind for kind in kinds if kind in ("L", "R", "AL")), "L")
    return "ltr" if strong == "L" else "rtl"


def _items(encoding: Encoding, vocabulary: Vocabulary) -> Iterator[dict[str, Any]]:
    """Words and masks in their order, as `explore/strip.html` shows them."""
    text, spans = encoding.text, encoding.spans
    words = {word.tokens[0]: word for word in text_words(encoding) if not word.is_blank}
    positions = mask_positions(encoding, vocabulary)
    masks = {position: number for number, position in enumerate(positions)}
    for index in sorted({*words, *masks}):
        start = spans[index].start
        joined = 0 < start <= len(text) and not text[start - 1].isspace()
        if (word := words.get(index)) is None:
            yield {"kind": "mask", "token": masks[index], "joined": joined, "closing": False}
            continue
        starts = [max(word.start, spans[i].start) for i in word.tokens]
        names = ", ".join(f"{encoding.tokens[i]} (id {encoding.ids[i]})" for i in word.tokens)
        yield {
            "kind": "word",
            "token": index,
            "joined": word.start == start and joined,
            # A sign stays with the word before it.
            "closing": word.start == start and joined and not any(map(str.isalnum, word.text)),
            "about": f"{'token' if len(word.tokens) == 1 else 'tokens'} {names}",
            "pieces": [text[a:b] for a, b in pairwise([*starts, word.end])],
            "unknown": any(encoding.ids[i] == vocabulary.unk_id for i in word.tokens),
        }


@dataclass(frozen=True)
class Draft:
    """A text and what its masks hide."""

    text: str = ""  # masks written as the model's own
    # one per mask, from left to right; None if unknown
    hidden: tuple[str | None, ...] = ()

    def word(self, mask: int) -> str | None:
        """The word behind a mask, counted from 0; None if unknown."""
        return self.hidden[mask] if 0 <= mask < len(self.hidden) else None

    def words(self, masks: int) -> list[str | None]:
        """The words behind the first `masks` masks."""
        return [self.word(mask) for mask in range(masks)]


def split_pieces(text: str, mask_token: str) -> list[str]:
    """Words, blanks, signs and masks; joined, they give the text again.

    >>> split_pieces("A cat's [MASK].", "[MASK]")
    ['A', ' ', 'cat', "'", 's', ' ', '[MASK]', '.']
    """
    return re.findall(rf"{re.escape(mask_token)}|\w+|\s+|.", text, flags=re.DOTALL)


def carried(draft: Draft, text: str, mask_token: str) -> Draft:
    """The draft of an edited text: masks outside the edit keep their words.

    The edit is the one stretch between the common start and end. If it replaces words by one mask,
    the mask hides those words.

    >>> before = Draft("The [MASK] sat on the mat.", ("cat",))
    >>> carried(before, "The [MASK] sat on the ___.", "[MASK]").hidden
    ('cat', 'mat')
    """
    text = normalise_masks(text, mask_token)
    # Another model writes masks differently.
    old = split_pieces(normalise_masks(draft.text, mask_token), mask_token)
    new = split_pieces(text, mask_token)
    start = common_length(old, new)
    end = common_length(old[start:][::-1], new[start:][::-1])
    old_tail, new_tail = len(old) - end, len(new) - end
    kept_words = _count_words([*old[:start], *old[old_tail:]], mask_token)
    hidden: list[str | None] = [None] * new.count(mask_token)
    # An unrelated sentence with the same ending keeps no words.
    if 2 * kept_words >= _count_words(old, mask_token):
        before, after = old[:start].count(mask_token), old[old_tail:].count(mask_token)
        known_words = draft.words(old.count(mask_token))
        hidden[:before] = known_words[:before]
        hidden[len(hidden) - after :] = known_words[len(known_words) - after :]
    changed = "".join(old[start:old_tail]).strip()
    typing = changed.startswith(("[", "<", "_"))  # the beginning of a mask is no word
    if new[start:new_tail] == [mask_token] and changed and not typing and mask_token not in changed:
        hidden[new[:start].count(mask_token)] = changed
    return Draft(text, tuple(hidden))


def common_length(left: Sequence[str], right: Sequence[str]) -> int:
    """The number of pieces that two texts share at their start."""
    for index, (first, second) in enumerate(zip(left, right, strict=False)):
        if first != second:
            return index
    return min(len(left), len(right))


def _count_words(parts: list[str], mask_token: str) -> int:
    return sum(1 for part in parts if part[0].isalnum() and part != mask_token)


def hide(draft: Draft, vocabulary: Vocabulary, token: int) -> Draft:
    """Put a mask in place of the word of a token; special tokens and masks change nothing."""
    encoding = vocabulary.encode(draft.text)
    word = next((w for w in text_words(encoding) if token in w.tokens), None)
    if word is None:
        return draft
    masks = mask_positions(encoding, vocabulary)
    hidden = draft.words(len(masks))
    hidden.insert(sum(encoding.spans[p].start < word.start for p in masks), word.text)
    text = draft.text[: word.start] + vocabulary.mask_token + draft.text[word.end :]
    return Draft(text, tuple(hidden))


def restore(draft: Draft, vocabulary: Vocabulary, mask: int) -> Draft:
    """Put back the word behind a mask, counted from 0; does nothing if it is unknown."""
    word = draft.word(mask)
    if word is None:
        return draft
    start, end = mask_range(vocabulary.encode(draft.text), vocabulary, mask)
    hidden = (*draft.hidden[:mask], *draft.hidden[mask + 1 :])
    return Draft(draft.text[:start] + word + draft.text[end:], hidden)


def fill_in(draft: Draft, vocabulary: Vocabulary, mask: int, token_id: int) -> Draft:
    """Write a token in place of a mask, with the spaces that make the model see that token."""
    encoding = vocabulary.encode(draft.text)
    hidden = draft.words(len(mask_positions(encoding, vocabulary)))
    if not 0 <= mask < len(hidden):
        return draft
    del hidden[mask]
    return Draft(write_token(encoding, vocabulary, mask, token_id), tuple(hidden))
