"""Drop the tokens that a text does not need from a WordPiece vocabulary, and their weights.

A trimmed tokenizer still reads everything: a word whose token is gone is spelled with shorter
pieces, and every single character stays. What changes is the unit: losses per token of two
vocabularies are not comparable, losses per character are.
"""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from typing import Any

import numpy as np

from fillmask_ui.errors import DataError, OptionError


@dataclass(frozen=True)
class Trimming:
    """A trimmed tokenizer.

    Attributes:
        kept: int64 [V'], the old id of each new one, ascending.
        tokenizer_json: the tokenizer's file content with the new vocabulary.
    """

    kept: np.ndarray
    tokenizer_json: str


def token_counts(ids: np.ndarray, vocabulary_size: int) -> np.ndarray:
    """int64 [V], how often each id occurs."""
    return np.bincount(ids, minlength=vocabulary_size).astype(np.int64)


def _is_latin(token: str) -> bool:
    """Whether every character is a Latin letter, a digit, punctuation or a symbol."""
    for character in token:
        if character.isalpha() and not unicodedata.name(character, "").startswith("LATIN"):
            return False
    return True


def choose_tokens(
    tokens: list[str], special: set[str], counts: np.ndarray, size: int
) -> np.ndarray:
    """Which ids stay when a vocabulary shrinks to `size`.

    Special tokens and single Latin or Greek letters, digits, marks and symbols stay always. The
    rest is the union of two lists of equal length: the tokens most frequent in the corpus, and the
    first tokens of the vocabulary in Latin script (WordPiece vocabularies are sorted by frequency
    in the text they were trained on, so words that the corpus happens to lack survive).

    Args:
        tokens: V raw tokens by id.
        special: those that must stay.
        counts: int64 [V], occurrences in the corpus.
        size: V', how many stay.

    Returns:
        int64 [V'], ascending ids.

    Raises:
        OptionError: if `size` is below what must stay or above V.
    """
    placeholder = [token.startswith("[unused") for token in tokens]
    keep = np.zeros(len(tokens), bool)
    for i, token in enumerate(tokens):
        body = token.removeprefix("##")
        greek = len(body) == 1 and unicodedata.name(body, "").startswith("GREEK SMALL")
        keep[i] = token in special or (len(body) == 1 and (_is_latin(body) or greek))
    if not keep.sum() <= size <= len(tokens):
        raise OptionError(
            f"cannot trim {len(tokens)} tokens to {size}; "
            f"between {int(keep.sum())} and {len(tokens)} are possible"
        )
    by_count = [i for i in np.argsort(-counts, kind="stable").tolist() if counts[i] > 0]
    by_id = [i for i, token in enumerate(tokens) if _is_latin(token) and not placeholder[i]]
    rest = [i for i in range(len(tokens)) if not placeholder[i]] + np.flatnonzero(
        placeholder
    ).tolist()
    left = size - int(keep.sum())
    for pair in zip(_padded(by_count, len(tokens)), _padded(by_id, len(tokens)), strict=True):
        for i in pair:
            if i is not None and left and not keep[i]:
                keep[i] = True
                left -= 1
    for i in rest:
        if left and not keep[i]:
            keep[i] = True
            left -= 1
    return np.flatnonzero(keep)


def _padded(items: list[int], length: int) -> list[int | None]:
    return [*items, *[None] * (length - len(items))]


def trim_tokenizer(tokenizer: Any, counts: np.ndarray, size: int) -> Trimming:
    """A `tokenizers`-backed WordPiece tokenizer cut to `size` tokens with contiguous ids.

    Raises:
        OptionError: if the tokenizer is not WordPiece, or the size is impossible.
    """
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    if content["model"]["type"] != "WordPiece":
        raise OptionError(
            f"can only trim WordPiece vocabularies, this is {content['model']['type']}; "
            "leave the vocabulary as it is"
        )
    old = content["model"]["vocab"]
    tokens = sorted(old, key=old.get)
    special = {entry["content"] for entry in content["added_tokens"]}
    kept = choose_tokens(tokens, special, counts, size)
    new_id = {tokens[i]: n for n, i in enumerate(kept.tolist())}
    content["model"]["vocab"] = new_id
    for entry in content["added_tokens"]:
        entry["id"] = new_id[entry["content"]]
    post = content.get("post_processor") or {}
    for name, entry in post.get("special_tokens", {}).items():
        entry["ids"] = [new_id[token] for token in entry.get("tokens", [name])]
    for side in ("sep", "cls"):
        if side in post:
            post[side] = [post[side][0], new_id[post[side][0]]]
    content["truncation"] = content["padding"] = None
    return Trimming(kept, json.dumps(content, ensure_ascii=False, separators=(",", ":")))


def kept_ids(tokenizer: Any, trimmed: Any) -> np.ndarray:
    """The `kept` of the trimming that made one tokenizer of another.

    Raises:
        DataError: if it was made of a third one.
    """
    old, new = tokenizer.get_vocab(), trimmed.get_vocab()
    foreign = sorted(new.keys() - old.keys())
    if foreign:
        raise DataError(
            f"{len(foreign)} tokens of the run, such as {foreign[0]!r}, are not in the vocabulary "
            "of --init; give the model that the run was started from"
        )
    return np.array([old[token] for token in sorted(new, key=new.get)], np.int64)


def trim_model(model: Any, kept: np.ndarray) -> None:
    """Keep these rows of the input embeddings, the output projection and its bias, in place.

    Args:
        model: a Hugging Face masked LM of torch.
        kept: int64 [V'].
    """
    import torch

    old_size = model.config.vocab_size
    index = torch.from_numpy(kept)
    embeddings = model.get_input_embeddings()
    output = model.get_output_embeddings()
    biases = {
        name: parameter.data[index].clone()
        for name, parameter in model.named_parameters()
        if name.endswith("bias") and parameter.shape == (old_size,)
    }
    rows = embeddings.weight.data[index].clone()
    out_rows = output.weight.data[index].clone()
    model.resize_token_embeddings(len(kept), mean_resizing=False)
    with torch.no_grad():
        model.get_input_embeddings().weight.copy_(rows)
        model.get_output_embeddings().weight.copy_(out_rows)
        for name, parameter in model.named_parameters():
            if name in biases:
                parameter.copy_(biases[name])
