"""Tokenizers, as the core needs them; texts are never cut or padded here."""

import copy
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fillmask_ui.errors import ModelError, TextError, opening
from fillmask_ui.models.loading_progress import quiet_transformers
from fillmask_ui.models.model_files import read_config, transformers_config
from fillmask_ui.records import Encoding, Span
from fillmask_ui.text_words import LONE_MARKS, number_words, visible_blanks, word_fault

if TYPE_CHECKING:
    from tokenizers import Tokenizer as RustTokenizer

# Text, and whether to add special tokens, to an encoding.
Splitter = Callable[[str, bool], Encoding]

# What a tokenizer gives to a model; a model reads a text without token types as one of zeros.
_INPUTS = {"input_ids", "attention_mask", "token_type_ids", "special_tokens_mask"}
_NO_LIMIT = 10_000_000  # a tokenizer that knows no limit reports about 1e30
_PREFIXES = {"pieces": "##", "bytes": "Ġ", "blank": "▁"}
_CONTINUED = "@@"
# Its words are checked when a tokenizer is loaded.
_PROBE = "The cats sat on 3 mats, and it isn't warm."


@dataclass(frozen=True)
class SubwordPrefixes:
    """How the strings of a vocabulary mark word boundaries, and the words without the marks.

    WordPiece marks what continues a word (`##ing`); byte-level BPE and Unigram mark what begins
    one (`Ġthe`, `▁the`), and byte-level BPE also spells every byte as one printable character.
    The BPE of PhoBERT and BERTweet marks what the next token continues (`souv@@`, `enir`).
    """

    style: str  # `pieces` (##), `bytes` (Ġ), `blank` (▁), `open` (@@) or `none`

    @property
    def mark(self) -> str:
        """What begins a marked string; blank if none is marked there."""
        return _PREFIXES.get(self.style, "")

    @classmethod
    def of(cls, tokens: Iterable[str]) -> "SubwordPrefixes":
        """The style of most tokens.

        >>> SubwordPrefixes.of(["[MASK]", "play", "##ing", "##ed"]).style
        'pieces'
        """
        counts = Counter[str]()
        for token in tokens:
            marks = (style for style, mark in _PREFIXES.items() if token.startswith(mark))
            if style := next(marks, "open" if token.endswith(_CONTINUED) else ""):
                counts[style] += token not in ("##", _CONTINUED)
        return cls(max(counts, key=lambda style: counts[style], default="none"))

    def is_marked(self, text: str) -> bool:
        """Whether a text begins as marked vocabulary strings of this style do."""
        return bool(self.mark) and text.startswith(self.mark)

    def is_continuation(self, token: str) -> bool:
        """Whether a token that is not special continues the word to its left.

        With `@@` only the token to the left can say so: False.
        """
        if self.style == "pieces":
            return token.startswith("##") and len(token) > 2
        return self.style in _PREFIXES and not self.is_marked(token)

    def word(self, token: str) -> str:
        """A token that is not special, without its marks; raw where that would not be visible.

        >>> [SubwordPrefixes("bytes").word(token) for token in ("ĠcafÃ©", "Ã", "Ġ")]
        ['café', 'Ã', '␣']
        """
        if self.style == "pieces":
            text = token[2:] if self.is_continuation(token) else token
        elif self.style == "blank":
            text = token.replace("▁", " ")
        elif self.style in ("none", "open"):
            text = token.removesuffix(_CONTINUED if self.style == "open" else "</w>")
        else:
            from tokenizers.decoders import ByteLevel

            text = ByteLevel().decode([token])  # with U+FFFD for half a letter
        if not text.strip(" \n\t"):
            return visible_blanks(text) or token
        text = text.removeprefix(" ")
        is_visible = not text.isspace() and any(map(str.isprintable, text))
        return text if is_visible and "\ufffd" not in text else token


@dataclass(eq=False, repr=False)
class TokenizerVocabulary:
    """`Vocabulary` over a Hugging Face tokenizer."""

    split: Splitter
    ids: Mapping[str, int]  # token to id
    mask_token: str
    mask_id: int
    pad_id: int  # fills up shorter texts
    unk_id: int | None  # for what the vocabulary cannot spell; None if it can spell all
    special_ids: frozenset[int]
    limit: int | None  # the tokenizer's own longest text in tokens, None without a sane one
    packages: tuple[str, ...]  # whose versions take part in the result
    note: str = ""  # what a reader should know of its words

    def __repr__(self) -> str:
        return f"TokenizerVocabulary({len(self.ids):,} tokens, mask {self.mask_token!r})"

    size: int = field(init=False)  # number of tokens, gaps between ids counted
    prefixes: SubwordPrefixes = field(init=False)

    def __post_init__(self) -> None:
        self.size = max(self.ids.values()) + 1
        self.prefixes = SubwordPrefixes.of(self.ids)
        self._tokens = {token_id: token for token, token_id in self.ids.items()}

    def encode(self, text: str) -> Encoding:
        _refuse_surrogates(text)
        encoding = self.split(text, True)
        # Tokenizers report the characters that a special token swallowed, not its name.
        encoding = replace(encoding, tokens=tuple(map(self.token, encoding.ids)))
        return replace(encoding, word_ids=number_words(encoding, self.mask_id))

    def encode_word(self, word: str, before: str = " ") -> tuple[int, ...]:
        _refuse_surrogates(word, f"word {word[:40]!r}")
        if self.prefixes.is_marked(word) and word in self.ids:
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
        return tuple(token_id for token_id, span in pairs if border <= span.start)

    def token(self, token_id: int) -> str:
        return self._tokens.get(token_id, f"[{token_id}]")

    def word(self, token_id: int) -> str:
        token = self.token(token_id)
        return self.prefixes.word(token) if self._is_text(token_id) else token

    def is_continuation(self, token_id: int) -> bool:
        return self._is_text(token_id) and self.prefixes.is_continuation(self.token(token_id))

    def _is_text(self, token_id: int) -> bool:
        return token_id in self._tokens and token_id not in self.special_ids


def load_vocabulary(source: Path | Any, name: str) -> TokenizerVocabulary:
    """The tokenizer of a folder, as transformers reads it, or a live one, for the model `name`.

    A ModelError if it cannot be read, or has no words or no mask token of its own.
    """
    if isinstance(source, Path):
        tokenizer = read_tokenizer(source, name)
    else:  # a copy, as calls of its owner switch cutting and padding on
        tokenizer = without_dropout(copy.deepcopy(source))
    mask, mask_id = tokenizer.mask_token, tokenizer.mask_token_id
    if mask_id is None:
        raise ModelError(
            f"the tokenizer of {name} has no mask token: choose a model for fill-mask, or its own "
            "tokenizer"
        )
    with opening("a tokenizer", name, ModelError):
        # Before `_over`, as a call switches cutting and padding.
        if unread := set(tokenizer(mask)) - _INPUTS:
            raise ModelError(
                f"the tokenizer of {name} also gives {', '.join(sorted(unread))}, which its model "
                "needs and which are not supported: choose another model"
            )
        vocabulary = _over(tokenizer, name)
    fault = ""
    if mask_id in (tokenizer.pad_token_id, tokenizer.unk_token_id):
        fault = f"uses its mask token, {mask!r}, also as padding or for unknown words"
    elif len(vocabulary.ids) <= len(vocabulary.special_ids):
        fault = (
            "knows no words, only special tokens: the file of its vocabulary is missing or empty"
        )
    elif vocabulary.split(f"{mask} a {mask}", True).ids.count(mask_id) != 2:
        fault = f"does not read its mask token, {mask!r}, as one token"
    if fault:
        raise ModelError(f"the tokenizer of {name} {fault}; fetch it again")
    vocabulary.note = _words_note(vocabulary)
    return vocabulary


def _words_note(vocabulary: TokenizerVocabulary) -> str:
    """What a reader should know of the words that the tokenizer cuts; blank if they are sound."""
    mark = vocabulary.prefixes.mark
    wide = (token for token in vocabulary.ids if mark in token.strip(mark))
    if mark in LONE_MARKS and (example := next(wide, "")):
        return f"some tokens are several words, such as {example!r}, and count as one"
    if fault := word_fault(vocabulary.encode(_PROBE)):
        return f"the words of a text may be cut wrongly: {fault}"
    return ""


def tokenizer_json(source: Path, name: str) -> str:
    """The tokenizer of a folder in the format of the library tokenizers.

    A ModelError if it is written in Python, which has no such format.
    """
    if (path := source / "tokenizer.json").is_file():
        return path.read_text(encoding="utf-8")
    tokenizer = read_tokenizer(source, name)
    if not tokenizer.is_fast:
        raise ModelError(f"the tokenizer of {name} runs in Python alone: no browser can run it")
    return str(tokenizer.backend_tokenizer.to_str())


def vocabulary_files(folder: Path) -> set[str]:
    """Names of the files that the tokenizer class of a folder reads; empty if it names no class."""
    with quiet_transformers():
        from transformers.models.auto import tokenization_auto as auto

    config = read_config(folder)
    tokenizer_config = read_config(folder, file="tokenizer_config.json")
    class_name = tokenizer_config.raw.get("tokenizer_class") or config.raw.get("tokenizer_class")
    for name in (class_name, auto.TOKENIZER_MAPPING_NAMES.get(config.model_type)):
        tokenizer = auto.tokenizer_class_from_name(name) if isinstance(name, str) else None
        if tokenizer is not None:
            with suppress(ImportError):  # of a library that the class needs
                return {*getattr(tokenizer, "vocab_files_names", {}).values()}
    return set()


def read_tokenizer(source: Path, name: str) -> Any:
    """The tokenizer of a folder as transformers makes it; a ModelError if that fails."""
    with quiet_transformers(), opening("a tokenizer", name, ModelError):
        from transformers import AutoTokenizer

        chooses_outputs = read_config(source).raw.get("output_attentions")
        tokenizer: Any = AutoTokenizer.from_pretrained(
            source,
            config=transformers_config(source) if chooses_outputs else None,
            local_files_only=True,
            trust_remote_code=False,
        )
        return without_dropout(tokenizer)


def without_dropout(tokenizer: Any) -> Any:
    """The same tokenizer; leaving merges of BPE out by chance is for training alone."""
    if tokenizer.is_fast and getattr(tokenizer.backend_tokenizer.model, "dropout", None):
        tokenizer.backend_tokenizer.model.dropout = None
    return tokenizer


def load_embedded_vocabulary(source: Path) -> TokenizerVocabulary:
    """The tokenizer of the embedded model, as transformers reads it, without importing that."""
    from tokenizers import Tokenizer

    backend = Tokenizer.from_file(str(source / "tokenizer.json"))
    config = json.loads((source / "tokenizer_config.json").read_bytes())
    kinds = ("cls", "mask", "pad", "sep", "unk")
    ids = backend.get_vocab()
    special_ids = {kind: ids[config[f"{kind}_token"]] for kind in kinds}
    return TokenizerVocabulary(
        split=_rust_splitter(backend, "embedded"),
        ids=ids,
        mask_token=config["mask_token"],
        mask_id=special_ids["mask"],
        pad_id=special_ids["pad"],
        unk_id=special_ids["unk"],
        special_ids=frozenset(special_ids.values()),
        limit=config["model_max_length"],
        packages=("tokenizers",),
    )


def _over(tokenizer: Any, name: str) -> TokenizerVocabulary:
    """The vocabulary over a tokenizer of transformers."""
    ids, limit = tokenizer.get_vocab(), tokenizer.model_max_length
    if tokenizer.is_fast:
        split = _rust_splitter(tokenizer.backend_tokenizer, name)
    else:
        split = _splitter(partial(_encode_in_python, tokenizer, SubwordPrefixes.of(ids)), name)
    return TokenizerVocabulary(
        split=split,
        ids=ids,
        mask_token=tokenizer.mask_token,
        mask_id=tokenizer.mask_token_id,
        pad_id=tokenizer.pad_token_id or 0,  # any token does, as padding is masked out
        unk_id=tokenizer.unk_token_id,
        special_ids=frozenset(tokenizer.all_special_ids),
        limit=int(limit) if 0 < limit < _NO_LIMIT else None,
        packages=("tokenizers", "transformers"),
    )


def _rust_splitter(backend: "RustTokenizer", name: str) -> Splitter:
    # Once: the wrapper in Python sets both at each call, which fails in two threads at a time.
    backend.no_truncation()
    backend.no_padding()
    return _splitter(partial(_encode_in_rust, backend), name)


def _splitter(encode: Splitter, name: str) -> Splitter:
    """The same function, whose errors name the model."""

    def split(text: str, special: bool) -> Encoding:
        with opening("a tokenizer", name, ModelError):
            return encode(text, special)

    return split


def _encode_in_rust(backend: "RustTokenizer", text: str, special: bool) -> Encoding:
    encoded = backend.encode(text, add_special_tokens=special)
    tokens, added = tuple(encoded.tokens), tuple(map(bool, encoded.special_tokens_mask))
    ranges = zip(tokens, encoded.offsets, strict=True)
    spans = tuple(visible_span(text, token, *offsets) for token, offsets in ranges)
    return Encoding(text, tuple(encoded.ids), tokens, spans, tuple(encoded.word_ids), added)


def _encode_in_python(
    tokenizer: Any, prefixes: SubwordPrefixes, text: str, special: bool
) -> Encoding:
    """By a tokenizer that knows neither spans nor words: all are of one unit."""
    tokens = tokenizer.tokenize(text)
    ids = tokenizer.convert_tokens_to_ids(tokens)
    added = [0] * len(ids)
    if special:
        added = tokenizer.get_special_tokens_mask(ids)
        ids = tokenizer.build_inputs_with_special_tokens(ids)
    special_tokens = tokenizer.all_special_tokens
    fragments = []
    for token in tokens:
        fragment = token if token in special_tokens else prefixes.word(token)
        # Blanks and lone marks stand in front of the next fragment, if the text has them at all.
        is_blank = fragment != token and not fragment.strip("␣⏎⇥")
        fragments.append("" if is_blank else fragment)
    found = zip(find_fragments(text, fragments), tokens, strict=True)
    spans, units = list[Span](), list[int | None]()
    for is_added in added:
        if is_added:
            border = len(text) if units else 0
            spans.append(Span(border, border))
            units.append(None)
        else:
            span, token = next(found)
            spans.append(span)
            units.append(None if token in special_tokens else 0)
    tokens = tuple(tokenizer.convert_ids_to_tokens(ids))
    flags = tuple(map(bool, added))
    return Encoding(text, tuple(ids), tokens, tuple(spans), tuple(units), flags)


def _refuse_surrogates(text: str, kind: str = "text") -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise TextError(
            f"character {error.start + 1} of the {kind} is U+{ord(text[error.start]):04X}, half of "
            "a character (a lone surrogate) that no tokenizer can read: delete it or paste it again"
        ) from error


def visible_span(text: str, token: str, start: int, end: int) -> Span:
    """A token's span without the blanks around it, unless it is nothing but blanks.

    Tokens that swallow the blank to their left (`Ġword`) report it in their range, and Unigram
    tokenizers give a lone mark (`▁`) the first letter of the word behind it.

    >>> visible_span("a cat", "Ġcat", 1, 5), visible_span("cat", "▁", 0, 1)
    (Span(start=2, end=5), Span(start=0, end=0))
    """
    covered = text[start:end]
    visible = covered.strip()
    is_mark = token in LONE_MARKS and visible != token  # Ġ is also a letter of Maltese
    if visible == covered and not is_mark:  # nearly all
        return Span(start, end)
    if visible:
        start = end - len(covered.lstrip())
        end = start if is_mark else start + len(visible)
    return Span(start, end)


def find_fragments(text: str, fragments: Sequence[str]) -> Iterator[Span]:
    """Find the fragments of a text in their order.

    A fragment that is not found (changed by the tokenizer, or unknown to it) gets the text up to
    the next blank or the next fragment.

    >>> [*find_fragments("MK <mask>", ["M", "K", "<mask>"])]
    [Span(start=0, end=1), Span(start=1, end=2), Span(start=3, end=9)]
    """
    # Lower case may change the length of a text (İ): then positions would shift.
    folded = text.lower() if len(text.lower()) == len(text) else text
    end = 0
    for index, fragment in enumerate(fragments):
        start = end
        while start < len(text) and text[start].isspace():
            start += 1
        if text.startswith(fragment, start) or folded.startswith(fragment.lower(), start):
            end = start + len(fragment)
        else:
            following = [re.escape(follower) for follower in fragments[index + 1 : index + 2]]
            border = re.compile("|".join([r"\s", *filter(None, following)])).search(text, start + 1)
            end = border.start() if border else len(text)
        yield Span(start, end)
