"""A masked LM of torch and its tokenizer: loaded, made anew, trimmed, written.

A trimmed WordPiece vocabulary still reads everything: a word whose token is gone is spelled with
shorter pieces. Losses per token of two vocabularies are not comparable, losses per character are.
"""

import copy
import itertools
import json
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer
from transformers import AutoModelForMaskedLM, PreTrainedModel, PreTrainedTokenizerFast

from fillmask_ui.errors import DataError, ModelError, OptionError, opening
from fillmask_ui.files import asset, write_text
from fillmask_ui.models.load import find_files
from fillmask_ui.models.loading_progress import quiet_transformers
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.models.runtimes import WEIGHTS
from fillmask_ui.models.torch_model import read_incomplete
from fillmask_ui.models.vocabulary import read_tokenizer
from fillmask_ui.schema import from_json


@dataclass(frozen=True)
class TrainableModel:
    """A model in float32 and its tokenizer, both of transformers."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast  # with a mask token
    missing: tuple[str, ...] = ()  # names of the weights that the files lack: random numbers


def _attention(device: str) -> str | None:
    # On cuda transformers takes its fused attention if the architecture has one. On the CPU, with
    # head sizes of 32 to 64 and rows of a few hundred tokens, torch's fused kernel spends more time
    # in its backward pass than two plain matrix products do.
    return None if device.startswith("cuda") else "eager"


def load_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """The tokenizer in a folder, of any family."""
    tokenizer: Any = read_tokenizer(folder, str(folder))
    return tokenizer


def load_weights(reference: str | Path, device: str = "cpu") -> TrainableModel:
    """Model and tokenizer of `embedded`, a folder or a hub id, for work on a device."""
    files = find_files(ModelChoice(str(reference), runtime="torch"))
    tokenizer = load_tokenizer(files.folder)
    if tokenizer.mask_token_id is None:
        raise ModelError(
            f"the tokenizer of {files.name!r} has no mask token, so nothing can be hidden; choose "
            "a model for fill-mask"
        )
    model, missing = read_incomplete(files, torch.float32, torch.device("cpu"))
    if kind := _attention(device):
        model.set_attn_implementation(kind)
    return TrainableModel(model, tokenizer, tuple(missing))


def train_tokenizer(paragraphs: list[str], vocabulary_size: int) -> PreTrainedTokenizerFast:
    """An uncased WordPiece tokenizer like the embedded model's, of at most so many tokens.

    The trainer breaks ties by the order of a hash map, so two trainings may differ in a few rare
    tokens: a run keeps its tokenizer and resumes with it.
    """
    if vocabulary_size < 100:
        raise OptionError(
            f"a vocabulary of {vocabulary_size} tokens is too small; take 100 or more"
        )
    embedded: Any = load_tokenizer(asset("model"))
    tokenizer: Any = embedded.train_new_from_iterator(
        paragraphs, vocabulary_size, show_progress=False
    )
    tokenizer.model_input_names = ["input_ids", "attention_mask"]  # which every architecture takes
    return tokenizer


def new_model(
    config_path: Path, tokenizer: PreTrainedTokenizerFast, device: str = "cpu"
) -> PreTrainedModel:
    """Random weights for a Hugging Face config; V and the special ids are the tokenizer's."""
    content = from_json(dict[str, Any], config_path.read_bytes(), str(config_path))
    model_type = content.pop("model_type", None)
    if model_type is None:
        raise OptionError(
            f'{config_path} has no "model_type"; write one such as "bert" or "modernbert"'
        )
    content |= {
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "cls_token_id": tokenizer.cls_token_id,
        "sep_token_id": tokenizer.sep_token_id,
        "bos_token_id": tokenizer.cls_token_id,
        "eos_token_id": tokenizer.sep_token_id,
    }
    kind = _attention(device)
    with opening("a model", config_path, ModelError):
        config = transformers.AutoConfig.for_model(model_type, **content)
        model = AutoModelForMaskedLM.from_config(config, attn_implementation=kind)
    limit = getattr(config, "max_position_embeddings", None)
    if isinstance(limit, int):
        tokenizer.model_max_length = limit
    return model.float()


def write_tokenizer(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """`tokenizer.json` without blanks, and its configuration for the plain class.

    The class of a family would build the normalizer and the splitting anew from own arguments.
    """
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    content["truncation"] = content["padding"] = None
    compact = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    write_text(compact, folder / "tokenizer.json")
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": list(tokenizer.model_input_names),
        "model_max_length": tokenizer.model_max_length,
    }
    for kind in ("unk", "cls", "sep", "pad", "mask", "bos", "eos"):
        if token := getattr(tokenizer, f"{kind}_token"):
            config[f"{kind}_token"] = str(token)
    text = json.dumps(config, indent=2, sort_keys=True, ensure_ascii=False)
    write_text(text + "\n", folder / "tokenizer_config.json")


def write_weights(model: PreTrainedModel, folder: Path) -> None:
    """`config.json` and float16 weights; a `ModelError` if one does not fit into float16.

    The model's own weights are rounded in place and stay float32: what every runtime will compute
    with. Buffers that no file holds, such as the frequencies of rotary positions, are not rounded.
    """
    largest = max(float(p.detach().abs().max()) for p in model.parameters())
    if not largest < torch.finfo(torch.float16).max:
        raise ModelError(f"a weight of {largest:g} does not fit into float16")
    half = copy.deepcopy(model).half()
    with quiet_transformers():
        half.save_pretrained(folder)
    model.load_state_dict(half.state_dict())
    (folder / WEIGHTS).chmod(0o644)  # safetensors writes files that only the owner may read
    (folder / "generation_config.json").unlink(missing_ok=True)


def _is_latin(token: str) -> bool:
    letters = filter(str.isalpha, token)  # digits, punctuation and symbols are of every script
    return all(unicodedata.name(letter, "").startswith("LATIN") for letter in letters)


def choose_tokens(
    tokens: list[str], special: set[str], counts: np.ndarray, size: int
) -> np.ndarray:
    """Which of V `tokens`, by id, stay when a vocabulary shrinks to `size`: int64, ascending.

    Special tokens and single Latin or Greek letters, digits, marks and symbols stay always. The
    rest is the union of two lists of equal length: the tokens most frequent in the corpus, by
    `counts`, int64 [V], and the first tokens of the vocabulary in Latin script (WordPiece
    vocabularies are sorted by frequency in the text they were trained on, so words that the corpus
    happens to lack survive).
    """
    chosen: dict[int, None] = {}  # those that must stay first
    for i, token in enumerate(tokens):
        body = token.removeprefix("##")
        greek = len(body) == 1 and unicodedata.name(body, "").startswith("GREEK SMALL")
        if token in special or (len(body) == 1 and (_is_latin(body) or greek)):
            chosen[i] = None
    if not len(chosen) <= size <= len(tokens):
        raise OptionError(
            f"cannot trim {len(tokens)} tokens to {size}; "
            f"between {len(chosen)} and {len(tokens)} are possible"
        )
    by_count = [i for i in np.argsort(-counts, kind="stable").tolist() if counts[i] > 0]
    used = [i for i, token in enumerate(tokens) if not token.startswith("[unused")]
    by_id = [i for i in used if _is_latin(tokens[i])]
    for pair in itertools.zip_longest(by_count, by_id):
        chosen |= dict.fromkeys(i for i in pair if i is not None)
    chosen |= dict.fromkeys([*used, *range(len(tokens))])
    return np.sort(np.fromiter(itertools.islice(chosen, size), np.int64))


def trim(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, ids: np.ndarray, size: int
) -> PreTrainedTokenizerFast:
    """Trim a model, in place, to `size` tokens that a text of `ids` needs; its new tokenizer."""
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
    kept_ids = choose_tokens(tokens, special, counts, size)
    new_id = {tokens[i]: n for n, i in enumerate(kept_ids.tolist())}
    content["model"]["vocab"] = new_id
    for entry in content["added_tokens"]:
        entry["id"] = new_id[entry["content"]]
    post = content.get("post_processor") or {}
    for name, entry in post.get("special_tokens", {}).items():
        entry["ids"] = [new_id[token] for token in entry.get("tokens", [name])]
    for token_kind in ("sep", "cls"):
        if token_kind in post:
            post[token_kind] = [post[token_kind][0], new_id[post[token_kind][0]]]
    content["truncation"] = content["padding"] = None
    _keep_rows(model, kept_ids)
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
    """Trim a model, in place, to the tokens of a tokenizer that was trimmed from its own."""
    old, new = tokenizer.get_vocab(), trimmed.get_vocab()
    foreign = sorted(new.keys() - old.keys())
    if foreign:
        raise DataError(
            f"{len(foreign)} tokens of the run, such as {foreign[0]!r}, are not in the vocabulary "
            "of --init; give the model that the run was started from"
        )
    _keep_rows(model, np.array([old[token] for token in sorted(new, key=new.__getitem__)]))


def _keep_rows(model: PreTrainedModel, kept_ids: np.ndarray) -> None:
    """Keep the tokens int64 [V'], by their old ids, in embeddings, output projection and bias."""
    matrices = (model.get_input_embeddings().weight, model.get_output_embeddings().weight)
    with torch.no_grad():
        for name, parameter in model.named_parameters():  # tied weights come once
            is_bias = name.endswith("bias") and parameter.shape == (model.config.vocab_size,)
            if is_bias or any(parameter is matrix for matrix in matrices):
                parameter[: len(kept_ids)] = parameter[torch.from_numpy(kept_ids)]
    model.resize_token_embeddings(len(kept_ids), mean_resizing=False)  # which keeps the first rows
