"""The sentence as a strip: its words, each a button, and its masks."""

import hashlib
from dataclasses import dataclass

from fillmask_ui.filling.prompt import mask_positions
from fillmask_ui.filling.words import TextWord, text_words
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Encoding, Filling
from fillmask_ui.show.render import render
from fillmask_ui.show.words import candidate_names
from fillmask_ui.ui.explore.editing import Draft

# A longer text is read in the box, not as a thousand buttons.
MAX_STRIP_TOKENS = 600


@dataclass(frozen=True)
class Item:
    """A word, a mask or a special token of the strip."""

    kind: str  # `word`, `mask` or `special`
    shown: str  # as it reads; of a special token its own name
    token: int  # index of its first token; of a mask its number
    about: str = ""  # the tokens that a word is made of
    pieces: tuple[str, ...] = ()  # of a word: the stretches of it that its tokens stand for
    joined: bool = False  # whether it follows without a blank
    unknown: bool = False  # whether the model knows no token for a part of it


def version_of(text: str) -> str:
    """Short name of a text, so that a click on what showed an older text is recognised."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def strip_html(
    draft: Draft,
    encoding: Encoding,
    vocabulary: Vocabulary,
    filling: Filling | None = None,
    selected: int = 0,
) -> str:
    """The words of the sentence, each a button, and its masks; nothing for a long text.

    `encoding` is that of the draft's text; a `filling` gives each mask its best guess.
    """
    if len(encoding) > MAX_STRIP_TOKENS:
        return ""
    best = [mask.candidates[0] for mask in filling.masks] if filling else []
    return render(
        "page/strip.html",
        items=strip_items(encoding, vocabulary),
        hidden=draft.words(len(mask_positions(encoding, vocabulary))),
        guesses=[(candidate_names([guess], vocabulary)[0], guess.probability) for guess in best],
        selected=selected,
        version=version_of(draft.text),
    )


def strip_items(encoding: Encoding, vocabulary: Vocabulary) -> list[Item]:
    """Words, masks and special tokens from left to right."""
    words = {word.tokens[0]: word for word in text_words(encoding, vocabulary)}
    masks = {place: number for number, place in enumerate(mask_positions(encoding, vocabulary))}
    items = []
    for index, token in enumerate(encoding.tokens):
        start = encoding.spans[index].start
        joined = 0 < start <= len(encoding.text) and not encoding.text[start - 1].isspace()
        if index in words:
            joined = words[index].start == start and joined
            items.append(_word_item(words[index], encoding, vocabulary, joined))
        elif index in masks:
            items.append(Item("mask", token, masks[index], joined=joined))
        elif encoding.special[index]:
            items.append(Item("special", token, index, about=f"special token {token}"))
    return items


def _word_item(word: TextWord, encoding: Encoding, vocabulary: Vocabulary, joined: bool) -> Item:
    starts = [max(word.start, encoding.spans[i].start) for i in word.tokens]
    ends = [*starts[1:], word.end]
    names = ", ".join(f"{encoding.tokens[i]} (id {encoding.ids[i]})" for i in word.tokens)
    return Item(
        "word",
        word.text,
        word.tokens[0],
        about=f"{'token' if len(word.tokens) == 1 else 'tokens'} {names}",
        pieces=tuple(encoding.text[a:b] for a, b in zip(starts, ends, strict=True)),
        joined=joined,
        unknown=any(encoding.ids[i] == vocabulary.unk_id for i in word.tokens),
    )
