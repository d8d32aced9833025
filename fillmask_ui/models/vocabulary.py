"""Tokenizers, as the core needs them; texts are never cut or padded here."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fillmask_ui.errors import ModelError, TextError
from fillmask_ui.models.marks import Marks
from fillmask_ui.models.quiet import quiet_transformers
from fillmask_ui.models.splitters import FastSplitter, SlowSplitter, Splitter
from fillmask_ui.records import Encoding

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# A tokenizer that knows no limit reports about 1e30.
_NO_LIMIT = 10_000_000

# The names under which tokenizer_config.json lists special tokens.
_SPECIAL_NAMES = tuple(
    f"{kind}_token" for kind in ("bos", "cls", "eos", "mask", "pad", "sep", "unk")
)


@dataclass(frozen=True)
class SpecialTokens:
    """What a tokenizer says about itself.

    Attributes:
        mask_token: its string.
        mask_id: its id.
        pad_id: what fills up shorter texts.
        unk_id: stands for what the vocabulary cannot spell; None where there is none.
        ids: of all special tokens.
        limit: the tokenizer's own longest text in tokens, None where it has no sane one.
    """

    mask_token: str
    mask_id: int
    pad_id: int
    unk_id: int | None
    ids: frozenset[int]
    limit: int | None


class TokenizerVocabulary:
    """`Vocabulary` over a Hugging Face tokenizer.

    Attributes:
        limit: the tokenizer's own longest text in tokens, None where it has no sane one.
        unk_id: id that stands for what the vocabulary cannot spell; None where there is none.
        packages: whose versions take part in the result.
    """

    def __init__(
        self,
        splitter: Splitter,
        ids: dict[str, int],
        special: SpecialTokens,
        packages: tuple[str, ...],
    ) -> None:
        self.size: int = max(ids.values()) + 1
        self.mask_id = special.mask_id
        self.mask_token = special.mask_token
        self.pad_id = special.pad_id
        self.unk_id = special.unk_id
        self.special_ids = special.ids
        self.limit = special.limit
        self.packages = packages
        self._ids = ids
        self._tokens = {token_id: token for token, token_id in ids.items()}
        self._marks = Marks.of(ids)
        self._splitter = splitter

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
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise ModelError(
                f"the tokenizer of {name} cannot be loaded from {source}: {first[:300]}"
            ) from error
    if tokenizer.mask_token_id is None:
        raise ModelError(
            f"the tokenizer of {name} has no mask token, so this is no masked language model "
            "or the tokenizer belongs to another one: choose a model for fill-mask"
        )
    ids = tokenizer.get_vocab()
    marks = Marks.of(ids)
    splitter: Splitter = (
        FastSplitter(tokenizer.backend_tokenizer, marks)
        if tokenizer.is_fast
        else SlowSplitter(tokenizer, marks)
    )
    return TokenizerVocabulary(
        splitter, ids, _special_tokens(tokenizer), ("tokenizers", "transformers")
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
    special = SpecialTokens(
        mask_token=named["mask_token"],
        mask_id=ids[named["mask_token"]],
        pad_id=ids[named["pad_token"]],
        unk_id=ids[named["unk_token"]],
        ids=frozenset(ids[token] for token in named.values()),
        limit=config["model_max_length"],
    )
    splitter = FastSplitter(backend, Marks.of(ids))
    return TokenizerVocabulary(splitter, ids, special, ("tokenizers",))


def _special_tokens(tokenizer: PreTrainedTokenizerBase) -> SpecialTokens:
    limit, pad_id = tokenizer.model_max_length, tokenizer.pad_token_id
    return SpecialTokens(
        mask_token=tokenizer.mask_token,
        mask_id=tokenizer.mask_token_id,
        # Any token does where none is named, as padding is masked out.
        pad_id=pad_id if pad_id is not None else 0,
        unk_id=tokenizer.unk_token_id,
        ids=frozenset(tokenizer.all_special_ids),
        limit=int(limit) if limit and 0 < limit < _NO_LIMIT else None,
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
