"""Drop the tokens that a text does not need from a WordPiece vocabulary, and their weights.

A trimmed tokenizer still reads everything: a word whose token is gone is spelled with shorter
pieces, and every single character stays. What changes is the unit: losses per token of two
vocabularies are not comparable, losses per character are.
"""

from __future__ import annotations

import itertools
import json
import unicodedata
from typing import TYPE_CHECKING

import numpy as np
import torch

from fillmask_ui.errors import DataError, OptionError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


def _is_latin(token: str) -> bool:
    """Whether every character is a Latin letter, a digit, punctuation or a symbol."""
    letters = filter(str.isalpha, token)
    return all(unicodedata.name(letter, "").startswith("LATIN") for letter in letters)


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
    kept: dict[int, None] = {}  # in the order of their claim to stay
    for i, token in enumerate(tokens):
        body = token.removeprefix("##")
        greek = len(body) == 1 and unicodedata.name(body, "").startswith("GREEK SMALL")
        if token in special or (len(body) == 1 and (_is_latin(body) or greek)):
            kept[i] = None
    if not len(kept) <= size <= len(tokens):
        raise OptionError(
            f"cannot trim {len(tokens)} tokens to {size}; "
            f"between {len(kept)} and {len(tokens)} are possible"
        )
    by_count = [i for i in np.argsort(-counts, kind="stable").tolist() if counts[i] > 0]
    unused = [i for i, token in enumerate(tokens) if token.startswith("[unused")]
    used = sorted(set(range(len(tokens))).difference(unused))
    by_id = [i for i in used if _is_latin(tokens[i])]
    for pair in itertools.zip_longest(by_count, by_id):
        kept |= dict.fromkeys(i for i in pair if i is not None)
    kept |= dict.fromkeys([*used, *unused])
    return np.sort(np.fromiter(itertools.islice(kept, size), np.int64))


def trim(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, ids: np.ndarray, size: int
) -> PreTrainedTokenizerFast:
    """Trim both to what a text needs; the trimmed tokenizer, with contiguous ids, is returned.

    Args:
        model: changed in place.
        tokenizer: WordPiece.
        ids: int32, all token ids of the text.
        size: V', tokens to keep.

    Raises:
        OptionError: if the tokenizer is not WordPiece, or the size is impossible.
    """
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    content = json.loads(tokenizer.backend_tokenizer.to_str())
    if content["model"]["type"] != "WordPiece":
        raise OptionError(
            f"can only trim WordPiece vocabularies, this is {content['model']['type']}; "
            "leave the vocabulary as it is"
        )
    old = content["model"]["vocab"]
    tokens = sorted(old, key=old.get)
    special = {entry["content"] for entry in content["added_tokens"]}
    counts = np.bincount(ids, minlength=model.config.vocab_size)
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
    trim_model(model, kept)
    named = {name: getattr(tokenizer, name) for name in tokenizer.SPECIAL_TOKENS_ATTRIBUTES}
    # The class of a family would build its normalizer anew, from other arguments than its file's.
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(content)),
        model_input_names=tokenizer.model_input_names,
        model_max_length=tokenizer.model_max_length,
        **{name: token for name, token in named.items() if isinstance(token, str)},
    )


def trim_as(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, trimmed: PreTrainedTokenizerFast
) -> None:
    """Trim a model, in place, as was done when one tokenizer was made of the other.

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
    trim_model(model, np.array([old[token] for token in sorted(new, key=new.__getitem__)]))


def trim_model(model: PreTrainedModel, kept: np.ndarray) -> None:
    """Keep rows of the input embeddings, the output projection and its bias, in place.

    Args:
        model: a masked LM.
        kept: int64 [V'], the old id of each new one.
    """
    index = torch.from_numpy(kept)

    def by_token() -> dict[str, torch.nn.Parameter]:
        biases = {
            name: parameter
            for name, parameter in model.named_parameters()
            if name.endswith("bias") and parameter.shape == (model.config.vocab_size,)
        }
        embeddings, output = model.get_input_embeddings(), model.get_output_embeddings()
        return {"input": embeddings.weight, "output": output.weight, **biases}

    rows = {name: parameter.data[index].clone() for name, parameter in by_token().items()}
    model.resize_token_embeddings(len(kept), mean_resizing=False)
    parameters = by_token()
    with torch.no_grad():
        for name, values in rows.items():
            parameters[name].copy_(values)
