"""How a text becomes token ids: the one thing that fast and slow tokenizers do differently."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fillmask_ui.models.marks import Marks
from fillmask_ui.models.spans import bare, trim, walk
from fillmask_ui.records import Encoding, Span

if TYPE_CHECKING:
    from tokenizers import Tokenizer as RustTokenizer
    from transformers import PreTrainedTokenizerBase


class Splitter(Protocol):
    """Texts to ids and back; nothing is cut or padded."""

    def split(self, text: str, *, special: bool) -> Encoding: ...

    def join(self, ids: list[int]) -> str: ...


class FastSplitter:
    """Over the Rust tokenizer, which is used directly, with cutting and padding switched off.

    The Python wrapper around it sets both anew at each call, which fails when two threads do so
    at a time.
    """

    def __init__(self, backend: RustTokenizer, marks: Marks) -> None:
        self._backend = backend
        self._backend.no_truncation()
        self._backend.no_padding()
        # Without a pre-tokenizer the whole text is one word; the marks say more.
        self._by_marks = marks if self._backend.pre_tokenizer is None else None

    def split(self, text: str, *, special: bool) -> Encoding:
        encoded = self._backend.encode(text, add_special_tokens=special)
        added = tuple(bool(flag) for flag in encoded.special_tokens_mask)
        words: list[int | None] = list(encoded.word_ids)
        if self._by_marks is not None:
            words = _words_by_marks(encoded.tokens, added, self._by_marks)
        return Encoding(
            text=text,
            ids=tuple(encoded.ids),
            tokens=tuple(encoded.tokens),
            spans=tuple(
                bare(text, token, trim(text, Span(*offsets)))
                for token, offsets in zip(encoded.tokens, encoded.offsets, strict=True)
            ),
            word_ids=tuple(words),
            special=added,
        )

    def join(self, ids: list[int]) -> str:
        return self._backend.decode(ids, skip_special_tokens=False)


class SlowSplitter:
    """Over a tokenizer written in Python, which knows no spans: they are found by walking."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, marks: Marks) -> None:
        self._tokenizer = tokenizer
        self._marks = marks

    def split(self, text: str, *, special: bool) -> Encoding:
        tokenizer = self._tokenizer
        tokens = tokenizer.tokenize(text)
        plain = tokenizer.convert_tokens_to_ids(tokens)
        specials = set(tokenizer.all_special_tokens)
        words = [t if t in specials else self._marks.word(t) for t in tokens]
        spans = walk(text, words)
        if not special:
            none = tuple(False for _ in plain)
            return Encoding(
                text, tuple(plain), tuple(tokens), spans, _words_by_spans(text, spans), none
            )
        ids = tokenizer.build_inputs_with_special_tokens(plain)
        added = [bool(f) for f in tokenizer.get_special_tokens_mask(plain)]
        inner_spans, inner_words = iter(spans), iter(_words_by_spans(text, spans))
        end = len(text)
        return Encoding(
            text=text,
            ids=tuple(ids),
            tokens=tuple(tokenizer.convert_ids_to_tokens(ids)),
            spans=tuple(
                Span(0 if i == 0 else end, 0 if i == 0 else end) if flag else next(inner_spans)
                for i, flag in enumerate(added)
            ),
            word_ids=tuple(None if flag else next(inner_words) for flag in added),
            special=tuple(added),
        )

    def join(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=False)


def _words_by_marks(tokens: list[str], added: tuple[bool, ...], marks: Marks) -> list[int | None]:
    words: list[int | None] = []
    current = -1
    for token, special in zip(tokens, added, strict=True):
        if special:
            words.append(None)
            continue
        if current < 0 or not marks.is_continuation(token):
            current += 1
        words.append(current)
    return words


def _words_by_spans(text: str, spans: tuple[Span, ...]) -> tuple[int, ...]:
    """A word begins where a blank precedes a token."""
    words: list[int] = []
    current, end = -1, 0
    for span in spans:
        if current < 0 or any(c.isspace() for c in text[end : span.start]):
            current += 1
        words.append(current)
        end = span.end
    return tuple(words)
