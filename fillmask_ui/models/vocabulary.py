"""Tokenizers, as the core needs them; texts are never cut or padded here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from fillmask_ui.errors import ModelError, TextError, first_line
from fillmask_ui.models.marks import Marks
from fillmask_ui.models.quiet import quiet_transformers
from fillmask_ui.models.splitters import Splitter, fast_splitter, slow_splitter
from fillmask_ui.records import Encoding

# A tokenizer that knows no limit reports about 1e30.
_NO_LIMIT = 10_000_000

# The names under which tokenizer_config.json lists special tokens.
_SPECIAL_NAMES = tuple(
    f"{kind}_token" for kind in ("bos", "cls", "eos", "mask", "pad", "sep", "unk")
)


@dataclass(eq=False)
class TokenizerVocabulary:
    """`Vocabulary` over a Hugging Face tokenizer.

    Attributes:
        split: text, and whether to add special tokens, to an encoding.
        ids: token to id.
        mask_token: its string.
        mask_id: its id.
        pad_id: id that fills up shorter texts.
        unk_id: id that stands for what the vocabulary cannot spell; None where there is none.
        special_ids: ids of all special tokens.
        limit: the tokenizer's own longest text in tokens, None where it has no sane one.
        packages: whose versions take part in the result.
        size: number of tokens, gaps between ids counted.
    """

    split: Splitter
    ids: Mapping[str, int]
    mask_token: str
    mask_id: int
    pad_id: int
    unk_id: int | None
    special_ids: frozenset[int]
    limit: int | None
    packages: tuple[str, ...]
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = max(self.ids.values()) + 1
        self._tokens = {token_id: token for token, token_id in self.ids.items()}
        self._marks = Marks.of(self.ids)

    def encode(self, text: str) -> Encoding:
        _refuse_surrogates(text)
        encoding = self.split(text, True)
        # Tokenizers report the characters that a special token swallowed, not its name.
        return replace(encoding, tokens=tuple(map(self.token, encoding.ids)))

    def encode_word(self, word: str, before: str = " ") -> tuple[int, ...]:
        _refuse_surrogates(word)
        if self._marks.is_marked(word) and word in self.ids:
            return (self.ids[word],)
        if not word.strip():
            return ()
        if not before:
            return self.split(word, False).ids
        if before.isspace():
            return self._behind_mask(f"{self.mask_token} {word}")
        # `(` stands in where the real neighbour merges with the word into one token.
        return (
            self._after(before, word)
            or self._after("(", word)
            or self._behind_mask(self.mask_token + word)
        )

    def _behind_mask(self, text: str) -> tuple[int, ...]:
        """Ids of what follows the mask that the text begins with."""
        ids = self.split(text, False).ids
        return ids[ids.index(self.mask_id) + 1 :]

    def _after(self, context: str, word: str) -> tuple[int, ...]:
        """Ids of a word behind a context; empty if a token spans the border between them."""
        encoding = self.split(context + word, False)
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
        return self._marks.word(token) if self._is_text(token_id) else token

    def is_continuation(self, token_id: int) -> bool:
        return self._is_text(token_id) and self._marks.is_continuation(self.token(token_id))

    def _is_text(self, token_id: int) -> bool:
        return token_id in self._tokens and token_id not in self.special_ids


def load_vocabulary(source: Path, name: str) -> TokenizerVocabulary:
    """The tokenizer of a folder, as transformers reads it.

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
            raise ModelError(
                f"the tokenizer of {name} cannot be loaded from {source}: {first_line(error)}"
            ) from error
    if tokenizer.mask_token_id is None:
        raise ModelError(
            f"the tokenizer of {name} has no mask token, so this is no masked language model "
            "or the tokenizer belongs to another one: choose a model for fill-mask"
        )
    ids = tokenizer.get_vocab()
    marks = Marks.of(ids)
    limit, pad_id = tokenizer.model_max_length, tokenizer.pad_token_id
    return TokenizerVocabulary(
        split=(
            fast_splitter(tokenizer.backend_tokenizer, marks)
            if tokenizer.is_fast
            else slow_splitter(tokenizer, marks)
        ),
        ids=ids,
        mask_token=tokenizer.mask_token,
        mask_id=tokenizer.mask_token_id,
        # Any token does where none is named, as padding is masked out.
        pad_id=pad_id if pad_id is not None else 0,
        unk_id=tokenizer.unk_token_id,
        special_ids=frozenset(tokenizer.all_special_ids),
        limit=int(limit) if limit and 0 < limit < _NO_LIMIT else None,
        packages=("tokenizers", "transformers"),
    )


def load_own_vocabulary(source: Path) -> TokenizerVocabulary:
    """The tokenizer of the embedded model, without the seconds that transformers takes to import.

    Other folders may rely on what transformers makes of their files; this one is known to mean
    the same, which a test holds.
    """
    from tokenizers import Tokenizer

    backend = Tokenizer.from_file(str(source / "tokenizer.json"))
    config = json.loads((source / "tokenizer_config.json").read_text(encoding="utf-8"))
    ids = backend.get_vocab(with_added_tokens=True)
    named = {name: config[name] for name in _SPECIAL_NAMES if config.get(name)}
    return TokenizerVocabulary(
        split=fast_splitter(backend, Marks.of(ids)),
        ids=ids,
        mask_token=named["mask_token"],
        mask_id=ids[named["mask_token"]],
        pad_id=ids[named["pad_token"]],
        unk_id=ids[named["unk_token"]],
        special_ids=frozenset(ids[token] for token in named.values()),
        limit=config["model_max_length"],
        packages=("tokenizers",),
    )


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise TextError(
            f"character {error.start + 1} of the text is U+{ord(text[error.start]):04X}, half of "
            "a character (a lone surrogate) that no tokenizer can read: delete it or paste the "
            "text again"
        ) from error
