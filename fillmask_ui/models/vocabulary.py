"""Tokenizers, as the core needs them; the only file that imports transformers' tokenizers.

Texts are never cut or padded here. For that the Rust tokenizer is used directly, with its own
cutting and padding switched off once at loading: the Python wrapper sets both anew at each call,
which fails when two threads do it at a time.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from fillmask_ui.errors import ModelError, TextError
from fillmask_ui.models.marks import Marks
from fillmask_ui.models.quiet import quiet_transformers
from fillmask_ui.models.spans import bare, trim, walk
from fillmask_ui.records import Encoding, Span

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# A tokenizer that knows no limit reports about 1e30.
_NO_LIMIT = 10_000_000


class _Splitter(Protocol):
    """How a text becomes token ids; the one thing fast and slow tokenizers do differently."""

    def split(self, text: str, *, special: bool) -> Encoding: ...

    def join(self, ids: list[int]) -> str: ...


class TokenizerVocabulary:
    """`Vocabulary` over a Hugging Face tokenizer.

    Attributes:
        limit: the tokenizer's own longest text in tokens, None where it has no sane one.
        unk_id: id that stands for what the vocabulary cannot spell; None where there is none.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, name: str) -> None:
        if tokenizer.mask_token_id is None:
            raise ModelError(
                f"the tokenizer of {name} has no mask token, so this is no masked language model "
                "or the tokenizer belongs to another one: choose a model for fill-mask"
            )
        known = tokenizer.get_vocab()
        self.size: int = max(len(tokenizer), max(known.values()) + 1)
        self.mask_id: int = tokenizer.mask_token_id
        self.mask_token: str = tokenizer.mask_token
        self.pad_id: int = _pad_id(tokenizer)
        self.unk_id: int | None = tokenizer.unk_token_id
        self.special_ids: frozenset[int] = frozenset(tokenizer.all_special_ids)
        self.limit: int | None = _limit(tokenizer)
        self._ids = known
        self._tokens = {token_id: token for token, token_id in known.items()}
        self._marks = Marks.of(known)
        self._splitter: _Splitter
        if tokenizer.is_fast:
            self._splitter = _FastSplitter(tokenizer, self._marks)
        else:
            self._splitter = _SlowSplitter(tokenizer, self._marks)

    def encode(self, text: str) -> Encoding:
        _refuse_surrogates(text)
        encoding = self._splitter.split(text, special=True)
        # Tokenizers report the characters that a special token swallowed, not its name.
        return replace(encoding, tokens=tuple(map(self.token, encoding.ids)))

    def encode_word(self, word: str, before: str = " ") -> tuple[int, ...]:
        _refuse_surrogates(word)
        if self._marks.is_marked(word) and word in self._ids:
            return (self._ids[word],)
        if not word.strip():
            return ()
        if not before:
            return self._splitter.split(word, special=False).ids
        if before.isspace():
            return self._behind_mask(f"{self.mask_token} {word}")
        # `(` stands in where the real neighbour merges with the word into one token.
        for context in (before, "("):
            found = self._after(context, word)
            if found:
                return found
        return self._behind_mask(self.mask_token + word)

    def _behind_mask(self, text: str) -> tuple[int, ...]:
        """Ids of what follows the mask that the text begins with."""
        ids = self._splitter.split(text, special=False).ids
        return ids[ids.index(self.mask_id) + 1 :]

    def _after(self, context: str, word: str) -> tuple[int, ...]:
        """Ids of a word behind a context; empty if a token spans the border between them."""
        encoding = self._splitter.split(context + word, special=False)
        border = len(context)
        ids = []
        for token_id, span in zip(encoding.ids, encoding.spans, strict=True):
            if span.start < border < span.end:
                return ()
            if span.start >= border and span.end > span.start:
                ids.append(token_id)
        return tuple(ids)

    def token(self, token_id: int) -> str:
        return self._tokens.get(token_id, f"[{token_id}]")

    def word(self, token_id: int) -> str:
        token = self.token(token_id)
        if token_id in self.special_ids or token_id not in self._tokens:
            return token
        return self._marks.word(token)

    def is_continuation(self, token_id: int) -> bool:
        if token_id in self.special_ids or token_id not in self._tokens:
            return False
        return self._marks.is_continuation(self._tokens[token_id])

    def decode(self, ids: tuple[int, ...]) -> str:
        dropped = self.special_ids - {self.unk_id}
        kept = [int(i) for i in ids if int(i) not in dropped and int(i) in self._tokens]
        return self._splitter.join(kept).strip()


class _FastSplitter:
    """Over the Rust tokenizer."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, marks: Marks) -> None:
        self._backend = tokenizer.backend_tokenizer
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


class _SlowSplitter:
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


def load_vocabulary(source: Path, name: str) -> TokenizerVocabulary:
    """The tokenizer of a folder.

    Args:
        source: folder with tokenizer.json, vocab.txt or what else the family uses.
        name: of the model, for messages.

    Raises:
        ModelError: if it cannot be loaded or has no mask token.
    """
    with quiet_transformers():
        from transformers import AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(
                source, local_files_only=True, trust_remote_code=False
            )
        # Rust errors arrive as bare Exception; whatever it is, these files are no tokenizer.
        except Exception as error:
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise ModelError(
                f"the tokenizer of {name} cannot be loaded from {source}: {first[:300]}"
            ) from error
    return TokenizerVocabulary(tokenizer, name)


def _pad_id(tokenizer: PreTrainedTokenizerBase) -> int:
    """What fills up shorter texts; any token does where none is named, as it is masked out."""
    return tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0


def _limit(tokenizer: PreTrainedTokenizerBase) -> int | None:
    limit = tokenizer.model_max_length
    return int(limit) if limit and 0 < limit < _NO_LIMIT else None


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise TextError(
            f"character {error.start + 1} of the text is U+{ord(text[error.start]):04X}, half of "
            "a character (a lone surrogate) that no tokenizer can read: delete it or paste the "
            "text again"
        ) from error


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
