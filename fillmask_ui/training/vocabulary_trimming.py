"""Drop the tokens that a text does not need from a WordPiece vocabulary, and their weights.

A trimmed tokenizer still reads everything: a word whose token is gone is spelled with shorter
pieces, and every single character stays. What changes is the unit: losses per token of two
vocabularies are not comparable, losses per character are.
"""

from __future__ import annotations

import itertools
import json
import unicodedata

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from fillmask_ui.errors import DataError, OptionError


def _is_latin(token: str) -> bool:
    letters = filter(str.isalpha, token)  # digits, punctuation and symbols are of every script
    return all(unicodedata.name(letter, "").startswith("LATIN") for letter in letters)


def choose_tokens(
    tokens: list[str],  # V, raw, by id
    special: set[str],
    counts: np.ndarray,  # int64 [V], occurrences in the corpus
    size: int,
) -> np.ndarray:
    """Which ids stay when a vocabulary shrinks to `size`: int64 [size], ascending.

    Special tokens and single Latin or Greek letters, digits, marks and symbols stay always. The
    rest is the union of two lists of equal length: the tokens most frequent in the corpus, and the
    first tokens of the vocabulary in Latin script (WordPiece vocabularies are sorted by frequency
    in the text they were trained on, so words that the corpus happens to lack survive).
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
    used = [i for i, token in enumerate(tokens) if not token.startswith("[unused")]
    by_id = [i for i in used if _is_latin(tokens[i])]
    for pair in itertools.zip_longest(by_count, by_id):
        kept |= dict.fromkeys(i for i in pair if i is not None)
    kept |= dict.fromkeys([*used, *range(len(tokens))])
    return np.sort(np.fromiter(itertools.islice(kept, size), np.int64))


def trim(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, ids: np.ndarray, size: int
) -> PreTrainedTokenizerFast:
    """Trim a model, in place, and its tokenizer, which is returned, to what a text needs.

    `ids` are all token ids of the text, int32, and `size` tokens are kept.

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
    _trim_model(model, kept)
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
    """Trim a model, in place, as was done when one tokenizer was made of the other."""
    old, new = tokenizer.get_vocab(), trimmed.get_vocab()
    foreign = sorted(new.keys() - old.keys())
    if foreign:
        raise DataError(
            f"{len(foreign)} tokens of the run, such as {foreign[0]!r}, are not in the vocabulary "
            "of --init; give the model that the run was started from"
        )
    _trim_model(model, np.array([old[token] for token in sorted(new, key=new.__getitem__)]))


def _trim_model(model: PreTrainedModel, kept: np.ndarray) -> None:
    """Keep rows of the input embeddings, the output projection and its bias, in place.

    `kept`, int64 [V'], is the old id of each new one.
    """
    matrices = (model.get_input_embeddings().weight, model.get_output_embeddings().weight)
    with torch.no_grad():
        for name, parameter in model.named_parameters():  # tied weights come once
            is_bias = name.endswith("bias") and parameter.shape == (model.config.vocab_size,)
            if is_bias or any(parameter is matrix for matrix in matrices):
                parameter[: len(kept)] = parameter[torch.from_numpy(kept)]
    model.resize_token_embeddings(len(kept), mean_resizing=False)  # which keeps the first rows
