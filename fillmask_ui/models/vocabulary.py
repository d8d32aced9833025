"""Tokenizers, as the core needs them; texts are never cut or padded here."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fillmask_ui.errors import ModelError, TextError
from fillmask_ui.json_text import read_object
from fillmask_ui.models.files import TOKENIZER
from fillmask_ui.models.marks import Marks
from fillmask_ui.models.memory import check_readable
from fillmask_ui.models.quiet import quiet_panics, quiet_transformers
from fillmask_ui.models.spans import find_pieces, visible_span
from fillmask_ui.models.tokenizer_guard import (
    TokenizerPanicError,
    forget_dropout,
    may_backtrack,
    refuse_charsmap,
    refuse_growth,
    tokenizer_errors,
)
from fillmask_ui.records import Encoding, Span

if TYPE_CHECKING:
    from tokenizers import Tokenizer as RustTokenizer
    from transformers import PreTrainedTokenizerBase

# Text, and whether to add special tokens, to an encoding; nothing is cut or padded.
Splitter = Callable[[str, bool], Encoding]

# A tokenizer that knows no limit reports about 1e30.
_NO_LIMIT = 10_000_000

# The names under which tokenizer_config.json lists special tokens.
_SPECIAL_NAMES = [f"{kind}_token" for kind in ("bos", "cls", "eos", "mask", "pad", "sep", "unk")]


@dataclass(eq=False)
class TokenizerVocabulary:
    """`Vocabulary` over a Hugging Face tokenizer."""

    split: Splitter
    ids: Mapping[str, int]  # token to id
    mask_token: str  # its string
    mask_id: int
    pad_id: int  # fills up shorter texts
    unk_id: int | None  # stands for what the vocabulary cannot spell; None where there is none
    special_ids: frozenset[int]  # ids of all special tokens
    limit: int | None  # the tokenizer's own longest text in tokens, None where it has no sane one
    packages: tuple[str, ...]  # whose versions take part in the result
    marks: Marks  # how its strings mark where words begin
    size: int = field(init=False)  # number of tokens, gaps between ids counted

    def __post_init__(self) -> None:
        self.size = max(self.ids.values()) + 1
        self._tokens = {token_id: token for token, token_id in self.ids.items()}

    def encode(self, text: str) -> Encoding:
        _refuse_surrogates(text)
        encoding = self.split(text, True)
        # Tokenizers report the characters that a special token swallowed, not its name.
        return replace(encoding, tokens=tuple(map(self.token, encoding.ids)))

    def encode_word(self, word: str, before: str = " ") -> tuple[int, ...]:
        _refuse_surrogates(word, f"word {word[:40]!r}")
        if self.marks.is_marked(word) and word in self.ids:
            return (self.ids[word],)
        if not word.strip():
            return ()
        if not before:
            return self.split(word, False).ids
        if before[-1].isspace():
            return self._behind_mask(f" {word}")
        # `(` stands in where the real neighbour merges with the word into one token.
        return self._after(before, word) or self._after("(", word) or self._behind_mask(word)

    def _behind_mask(self, text: str) -> tuple[int, ...]:
        ids = self.split(self.mask_token + text, False).ids
        return ids[ids.index(self.mask_id) + 1 :]

    def _after(self, context: str, word: str) -> tuple[int, ...]:
        """Ids of a word behind a context; empty if a token spans the border between them."""
        encoding = self.split(context + word, False)
        border = len(context)
        if any(span.start < border < span.end for span in encoding.spans):
            return ()
        pairs = zip(encoding.ids, encoding.spans, strict=True)
        return tuple(own for own, span in pairs if border <= span.start)

    def token(self, token_id: int) -> str:
        return self._tokens.get(token_id, f"[{token_id}]")

    def word(self, token_id: int) -> str:
        token = self.token(token_id)
        return self.marks.word(token) if self._is_text(token_id) else token

    def is_continuation(self, token_id: int) -> bool:
        return self._is_text(token_id) and self.marks.is_continuation(self.token(token_id))

    def _is_text(self, token_id: int) -> bool:
        return token_id in self._tokens and token_id not in self.special_ids


def load_vocabulary(source: Path, name: str) -> TokenizerVocabulary:
    """The tokenizer of a folder, as transformers reads it, for the model of this name.

    Raises:
        ModelError: if it cannot be read, has no mask token of its own, or fails on a plain text.
    """
    with quiet_panics():
        tokenizer = read_tokenizer(source, name)
        if tokenizer.mask_token_id is None:
            raise ModelError(
                f"the tokenizer of {name} has no mask token, so this is no masked language model "
                "or the tokenizer belongs to another one: choose a model for fill-mask"
            )
        with tokenizer_errors(f"the tokenizer of {name} cannot be used"):
            vocabulary = _of_transformers(tokenizer, name)
        _probe(vocabulary, name)
    return vocabulary


def read_tokenizer(source: Path, name: str) -> "PreTrainedTokenizerBase":
    """The tokenizer of a folder as transformers makes it, once nothing in its files can harm.

    Raises:
        ModelError: whatever is wrong with them.
    """
    for path in source.iterdir():
        if TOKENIZER.fullmatch(path.name):
            check_readable(path)
    refuse_charsmap(source / "tokenizer.json", name)
    with quiet_transformers(), quiet_panics():
        from transformers import AutoTokenizer

        failed = f"the tokenizer of {name} cannot be loaded from {source}"
        try:
            with tokenizer_errors(failed):
                tokenizer: Any = AutoTokenizer.from_pretrained(
                    source, local_files_only=True, trust_remote_code=False
                )
        except ModelError:
            _refuse_no_json(source)  # which says more
            raise
        if tokenizer.is_fast:
            with tokenizer_errors(failed):
                refuse_growth(tokenizer.backend_tokenizer, name)
                forget_dropout(tokenizer.backend_tokenizer)
    return tokenizer


def _refuse_no_json(source: Path) -> None:
    for path in sorted(source.glob("*.json")):
        if TOKENIZER.fullmatch(path.name):
            try:
                read_object(path)
            except ValueError as error:
                why = f"{path} cannot be read as JSON: {error}; fetch it again"
                raise ModelError(why) from error


def _of_transformers(tokenizer: Any, name: str) -> TokenizerVocabulary:
    ids = tokenizer.get_vocab()
    marks = Marks.of(ids)
    limit = tokenizer.model_max_length
    if tokenizer.pad_token_id is not None and tokenizer.pad_token_id == tokenizer.mask_token_id:
        raise ModelError(
            f"the tokenizer of {name} has one token, {tokenizer.mask_token!r}, as mask and as "
            "padding: it is damaged; fetch it again"
        )
    if tokenizer.unk_token_id is not None and tokenizer.unk_token_id == tokenizer.mask_token_id:
        raise ModelError(
            f"the tokenizer of {name} has one token, {tokenizer.mask_token!r}, as mask and for "
            "what it does not know: it is damaged; fetch it again"
        )
    if tokenizer.is_fast:
        split = _fast_splitter(tokenizer.backend_tokenizer, marks)
        quiet = may_backtrack(tokenizer.backend_tokenizer)
    else:
        split, quiet = _slow_splitter(tokenizer, marks), False
    return TokenizerVocabulary(
        split=_told_splitter(split, name, quiet),
        ids=ids,
        mask_token=tokenizer.mask_token,
        mask_id=tokenizer.mask_token_id,
        pad_id=tokenizer.pad_token_id or 0,  # any token does, as padding is masked out
        unk_id=tokenizer.unk_token_id,
        special_ids=frozenset(tokenizer.all_special_ids),
        limit=int(limit) if isinstance(limit, int | float) and 0 < limit < _NO_LIMIT else None,
        packages=("tokenizers", "transformers"),
        marks=marks,
    )


def _told_splitter(split: Splitter, name: str, quiet: bool) -> Splitter:
    """One that raises a ModelError where the library fails; `quiet` hides what it prints then."""
    failed = f"the tokenizer of {name} cannot split a text"

    def told_split(text: str, special: bool) -> Encoding:
        with quiet_panics() if quiet else nullcontext(), tokenizer_errors(failed):
            return split(text, special)

    return told_split


def _probe(vocabulary: TokenizerVocabulary, name: str) -> None:
    """Stop for one without words or a mask token, and for what makes the library panic."""
    if len(vocabulary.ids) <= len(vocabulary.special_ids):
        raise ModelError(
            f"the tokenizer of {name} knows no words, only special tokens: the file of its "
            "vocabulary (tokenizer.json, vocab.txt or the like) is missing or empty; fetch it again"
        )
    words = [own for own in vocabulary.ids.values() if own not in vocabulary.special_ids]
    if alike := len(words) - len(set(words)):
        raise ModelError(
            f"the tokenizer of {name} gives {alike:,} of its {len(words):,} words an id that "
            "others have, too: its vocabulary is damaged; fetch it again"
        )
    mask = vocabulary.mask_token
    if sum(own == vocabulary.mask_id for own in vocabulary.ids.values()) > 1:
        raise ModelError(
            f"the mask token of {name}, {mask!r}, has the id {vocabulary.mask_id}, as another "
            "token has: its tokenizer.json is damaged; fetch it again"
        )
    ids = vocabulary.split(f"{mask} a {mask}", True).ids if mask.strip() else ()
    if unknown := [token_id for token_id in ids if token_id >= vocabulary.size]:
        raise ModelError(
            f"the tokenizer of {name} gives the token {unknown[0]}, and its vocabulary ends at "
            f"{vocabulary.size - 1}: its files do not fit together; fetch them again"
        )
    # A plain word that texts may hold in another spelling, which would then be hidden.
    is_word = mask.isalpha() and vocabulary.mask_id in vocabulary.split(mask.swapcase(), False).ids
    if is_word or ids.count(vocabulary.mask_id) != 2:
        raise ModelError(
            f"the mask token of {name}, {mask!r}, is a plain word or not one token in a text: its "
            "tokenizer is damaged or belongs to another model; fetch it again"
        )
    try:
        vocabulary.split(64 * "a" + "!", False)  # on which many a regular expression never ends
    except TokenizerPanicError:
        raise
    except ModelError:  # spelled with tokens that are not there: other texts may do
        pass


def load_own_vocabulary(source: Path) -> TokenizerVocabulary:
    """The tokenizer of the embedded model, without the seconds that transformers takes to import.

    Other folders may rely on what transformers makes of their files; this one is known to mean
    the same, which a test holds.
    """
    from tokenizers import Tokenizer

    backend = Tokenizer.from_file(str(source / "tokenizer.json"))
    config = read_object(source / "tokenizer_config.json")
    ids = backend.get_vocab(with_added_tokens=True)
    marks = Marks.of(ids)
    named = {name: config[name] for name in _SPECIAL_NAMES if config.get(name)}
    return TokenizerVocabulary(
        split=_fast_splitter(backend, marks),
        ids=ids,
        mask_token=named["mask_token"],
        mask_id=ids[named["mask_token"]],
        pad_id=ids[named["pad_token"]],
        unk_id=ids[named["unk_token"]],
        special_ids=frozenset(ids[token] for token in named.values()),
        limit=config["model_max_length"],
        packages=("tokenizers",),
        marks=marks,
    )


def _fast_splitter(backend: "RustTokenizer", marks: Marks) -> Splitter:
    """Over the Rust tokenizer, which is used directly, with cutting and padding switched off.

    The Python wrapper around it sets both anew at each call, which fails when two threads do so
    at a time.
    """
    backend.no_truncation()
    backend.no_padding()
    is_one_word = backend.pre_tokenizer is None  # the whole text: the marks say more

    def split(text: str, special: bool) -> Encoding:
        encoded = backend.encode(text, add_special_tokens=special)
        tokens, added = tuple(encoded.tokens), tuple(map(bool, encoded.special_tokens_mask))
        ranges = zip(tokens, encoded.offsets, strict=True)
        return Encoding(
            text=text,
            ids=tuple(encoded.ids),
            tokens=tokens,
            spans=tuple(visible_span(text, token, *offsets) for token, offsets in ranges),
            word_ids=tuple(_words(tokens, added, marks) if is_one_word else encoded.word_ids),
            special=added,
        )

    return split


def _slow_splitter(tokenizer: "PreTrainedTokenizerBase", marks: Marks) -> Splitter:
    """Over a tokenizer written in Python, which knows no spans: they are found word by word."""
    specials = set(tokenizer.all_special_tokens)

    def split(text: str, special: bool) -> Encoding:
        tokens = tokenizer.tokenize(text)
        ids: Any = tokenizer.convert_tokens_to_ids(tokens)
        added = [0] * len(ids)
        if special:
            added = tokenizer.get_special_tokens_mask(ids)
            ids = tokenizer.build_inputs_with_special_tokens(ids)
        found = find_pieces(text, [t if t in specials else marks.word(t) for t in tokens])
        start, end = Span(0, 0), Span(len(text), len(text))
        placed = [
            ((end if index else start), None) if flag else next(found)
            for index, flag in enumerate(added)
        ]
        return Encoding(
            text=text,
            ids=tuple(ids),
            tokens=tuple(tokenizer.convert_ids_to_tokens(ids)),
            spans=tuple(span for span, _ in placed),
            word_ids=tuple(word for _, word in placed),
            special=tuple(map(bool, added)),
        )

    return split


def _words(tokens: Sequence[str], special: Sequence[bool], marks: Marks) -> Iterator[int | None]:
    current = -1
    for token, is_special in zip(tokens, special, strict=True):
        if not is_special and (current < 0 or not marks.is_continuation(token)):
            current += 1
        yield None if is_special else current


def _refuse_surrogates(text: str, kind: str = "text") -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        # Python makes these of the bytes of a command line that are not UTF-8.
        byte = ""
        if 0xDC80 <= code <= 0xDCFF:
            byte = f" or the byte {code - 0xDC00:02X} (it or the locale is not UTF-8)"
        raise TextError(
            f"character {error.start + 1} of the {kind} is U+{code:04X}, half of a character (a "
            f"lone surrogate){byte} that no tokenizer can read: delete it or paste it again"
        ) from error
