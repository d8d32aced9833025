"""Hostile inputs: model folders that somebody damaged or made to harm."""

import base64
import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cli.hostile.attempt import Attempt

_DEEP = "[" * 100_000
Change = Callable[[dict[str, Any]], object]


def _copied(damage: Callable[[Path], object]) -> Callable[[Path, Path], None]:
    """A copy of the tiny model as `m` in the folder of the test, then damaged."""

    def make(folder: Path, model: Path) -> None:
        shutil.copytree(model, folder / "m")
        damage(folder / "m")

    return make


def _bytes(name: str, content: bytes) -> Callable[[Path, Path], None]:
    return _copied(lambda folder: (folder / name).write_bytes(content))


def _edited(name: str, change: Change) -> Callable[[Path, Path], None]:
    """With one of its JSON files changed."""

    def damage(folder: Path) -> None:
        path = folder / name
        content = json.loads(path.read_text(encoding="utf-8"))
        change(content)
        path.write_text(json.dumps(content), encoding="utf-8")

    return _copied(damage)


def _replaced(name: str, make: Callable[[Path], object]) -> Callable[[Path, Path], None]:
    """With a file replaced by something else."""

    def damage(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return _copied(damage)


def _header(header: bytes) -> Callable[[Path, Path], None]:
    return _bytes("model.safetensors", struct.pack("<Q", len(header)) + header)


def _try(
    name: str, make: Any, *words: str, runtime: str = "onnx", text: str = "A [MASK]."
) -> Attempt:
    command = ("predict", "-m", "{}/m", "--runtime", runtime, text)
    return Attempt(name, command, words, make=make)


def _config(name: str, *words: str, **changes: Any) -> Attempt:
    change = _edited("config.json", lambda config: config.update(changes))
    return _try(f"config.json: {name}", change, *words, runtime="torch")


def _tokenizer(name: str, change: Change, *words: str, text: str = "A [MASK].") -> Attempt:
    # Of other classes transformers reads the vocabulary alone.
    plain = _edited(
        "tokenizer_config.json",
        lambda settings: settings.update(tokenizer_class="PreTrainedTokenizerFast"),
    )

    def make(folder: Path, model: Path) -> None:
        plain(folder, model)
        path = folder / "m" / "tokenizer.json"
        content = json.loads(path.read_text(encoding="utf-8"))
        change(content)
        path.write_text(json.dumps(content), encoding="utf-8")

    return _try(f"tokenizer.json: {name}", make, *words, text=text)


def _settings(name: str, *words: str, **changes: Any) -> Attempt:
    change = _edited("tokenizer_config.json", lambda settings: settings.update(changes))
    return _try(f"tokenizer_config.json: {name}", change, *words)


def _normalizer(name: str, normalizer: dict[str, Any], *words: str) -> Attempt:
    return _tokenizer(name, lambda content: content.update(normalizer=normalizer), *words)


def _replace(pattern: dict[str, str], content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def _split(regex: str) -> dict[str, Any]:
    return {
        "type": "Split",
        "pattern": {"Regex": regex},
        "behavior": "Isolated",
        "invert": False,
    }


_NO_SUCH_TOKEN = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "[NONE]", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
    "special_tokens": {},
}
_EMPTY_TABLE = base64.b64encode(struct.pack("<I", 0)).decode()
_ENDLESS_TABLE = base64.b64encode(b"\xff" * 6 + b"\0\0").decode()


def _alike(content: dict[str, Any]) -> None:
    known = content["model"]["vocab"]
    known.update({token: 7 for token, number in known.items() if number > 5})


def _mask_as_word(content: dict[str, Any]) -> None:
    known = content["model"]["vocab"]
    word = next(token for token in known if token.isalpha())
    known[word] = known["[MASK]"]


def _beyond(content: dict[str, Any]) -> None:
    token = content["post_processor"]["special_tokens"]["[CLS]"]
    token["ids"] = [999_999]


def _without_unknown(content: dict[str, Any]) -> None:
    del content["model"]["vocab"]["[UNK]"]
    content["added_tokens"] = [t for t in content["added_tokens"] if t["content"] != "[UNK]"]


def _outside(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder.parent / "a.safetensors")
    index = {"weight_map": {"x": "../a.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


def _alone(arguments: tuple[str, ...], name: str, *words: str, code: int = 1) -> Attempt:
    return Attempt(name, ("predict", *arguments, "A [MASK]."), words, code=code)


def _made(name: str, reference: str, make: Callable[[Path], object], *words: str) -> Attempt:
    """A reference that is no folder of a model."""
    command = ("predict", "-m", reference, "A [MASK].")
    return Attempt(name, command, words, make=lambda folder, model: make(folder))


ATTEMPTS: list[Attempt] = [
    _try("config.json is a pipe", _replaced("config.json", os.mkfifo), "config.json is no file"),
    _try("config.json is a folder", _replaced("config.json", os.mkdir), "config.json is no file"),
    _try(
        "a graph that is a pipe",
        _replaced("onnx/model.onnx", os.mkfifo),
        "model.onnx is no file",
    ),
    _try(
        "config.json links to itself",
        _replaced("config.json", lambda path: path.symlink_to(path.name)),
        "config.json is no file",
    ),
    _try(
        "tokenizer.json is a pipe",
        _replaced("tokenizer.json", os.mkfifo),
        "tokenizer.json is no file",
    ),
    _config("no heads", "num_attention_heads 0", "at least 1", num_attention_heads=0),
    _settings("the mask is no token", "'<none>'", "vocabulary lacks", mask_token="<none>"),
    _tokenizer("words with one id", _alike, "an id that others have"),
    _tokenizer("the mask has the id of a word", _mask_as_word, "as another token has"),
    _settings("the mask is the unknown", "as mask and for what it", mask_token="[UNK]"),
    _settings("the mask is the padding", "one token, '[PAD]', as mask", mask_token="[PAD]"),
    _tokenizer(
        "a template with a token beyond the vocabulary",
        _beyond,
        "gives the token 999999",
        "do not fit together",
    ),
    _try(
        "a graph of 3 GB",
        _copied(lambda folder: os.truncate(folder / "onnx" / "model.onnx", 3 << 30)),
        "3.2 GB, and a graph has 2 at most",
    ),
    _try(
        "safetensors of 10 TB",
        _copied(lambda folder: os.truncate(folder / "model.safetensors", 10 << 40)),
        "no complete safetensors file",
        runtime="torch",
    ),
    # JSON
    _try("config.json: deep", _bytes("config.json", _DEEP.encode()), "nested too deeply"),
    _try(
        "config.json: a list", _bytes("config.json", b"[1]"), "config.json", "an object is wanted"
    ),
    _try("config.json: Latin-1", _bytes("config.json", b'{"a": "\xe9"}'), "config.json", "utf-8"),
    _try(
        "config.json: 5,000 digits",
        _bytes("config.json", b'{"vocab_size": ' + 5000 * b"9" + b"}"),
        "config.json cannot be read",
    ),
    _try(
        "tokenizer_config.json: deep",
        _bytes("tokenizer_config.json", _DEEP.encode()),
        "tokenizer_config.json cannot be read as JSON",
        "nested too deeply",
    ),
    _try(
        "an index of parts: deep",
        _copied(
            lambda folder: (
                (folder / "model.safetensors").unlink(),
                (folder / "model.safetensors.index.json").write_text(_DEEP),
            )
        ),
        "index",
        "nested too deeply",
        runtime="torch",
    ),
    _try(
        "an index of parts: a list",
        _copied(
            lambda folder: (
                (folder / "model.safetensors").unlink(),
                (folder / "model.safetensors.index.json").write_text('{"weight_map": ["a"]}'),
            )
        ),
        "weight_map must be an object",
        runtime="torch",
    ),
    _try(
        "an index of parts: outside the folder",
        _copied(_outside),
        "not in its folder",
        runtime="torch",
    ),
    _try(
        "a header of safetensors: deep",
        _header(b'{"a":' * 100_000),
        "no complete safetensors",
        runtime="torch",
    ),
    _try(
        "a header of safetensors: 2^63 bytes",
        _bytes("model.safetensors", b"\xff" * 8),
        "no complete safetensors",
        runtime="torch",
    ),
    # tokenizers
    _normalizer(
        "a table of characters without any",
        {"type": "Precompiled", "precompiled_charsmap": "AAAA"},
        "precompiled_charsmap is cut short",
    ),
    _normalizer(
        "a table of characters of 4 GB in 8 bytes",
        {"type": "Precompiled", "precompiled_charsmap": _ENDLESS_TABLE},
        "precompiled_charsmap is cut short",
    ),
    _normalizer(
        "an empty table of characters",
        {"type": "Precompiled", "precompiled_charsmap": _EMPTY_TABLE},
        "tokenizer of",
    ),
    _tokenizer(
        "a token in front that there is not",
        lambda content: content.update(post_processor=_NO_SUCH_TOKEN),
        "tokenizer of",
        "damaged",
    ),
    _tokenizer("no [UNK]", _without_unknown, "Missing [UNK]", text="A [MASK] ☃."),
    _tokenizer("no vocabulary", lambda content: content["model"].update(vocab={}), "tokenizer"),
    _tokenizer(
        "an expression that backtracks",
        lambda content: content.update(pre_tokenizer=_split("(a+)+$")),
        "tokenizer of",
        "retry-limit",
    ),
    _tokenizer(
        "an expression that backtracks on the text alone",
        lambda content: content.update(pre_tokenizer=_split("(q+)+$")),
        "cannot split a text",
        text=f"[MASK] {50 * 'q'}.",
    ),
    _normalizer("one replacement that grows", _replace({"String": "a"}, 10**6 * "a"), "memory"),
    _normalizer(
        "replacements that grow together",
        {"type": "Sequence", "normalizers": 6 * [_replace({"String": "a"}, 100 * "a")]},
        "could make",
        "memory",
    ),
    _normalizer(
        "a text in front that grows",
        {"type": "Sequence", "normalizers": 100 * [{"type": "Prepend", "prepend": 100 * "a"}]},
        "10,000 in front",
    ),
    _tokenizer(
        "words of 10^15 characters",
        lambda content: content["model"].update(max_input_chars_per_word=10**15),
        "max_input_chars_per_word",
    ),
    _settings("a blank mask token", "mask token", mask_token="  "),
    _settings("a word as the mask token", "a plain word", mask_token="the"),
    _settings("no mask token", "mask token", mask_token=None),
    # configs that ask for other models
    _config("a million layers", "num_hidden_layers 1000000", num_hidden_layers=10**6),
    _config("10^9 words", "vocab_size 1000000000", vocab_size=10**9),
    _config("10^7 wide", "hidden_size 10000000", hidden_size=10**7),
    _config("100,000 wide", "weights or more", hidden_size=100_000),
    _config("a negative size", "intermediate_size -5", intermediate_size=-5),
    _config("a size in words", "hidden_size 'large'", hidden_size="large"),
    _config("400 digits", "max_position_embeddings", max_position_embeddings=10**400),
    _config("10^9 labels", "num_labels", num_labels=10**9),
    _config("an activation that is an object", "'hidden_act': ", hidden_act={"a": 1}),
    _config(
        "a table of positions of another length", "position_embeddings", max_position_embeddings=7
    ),
    # files
    _try("an empty graph", _bytes("onnx/model.onnx", b""), "empty, damaged"),
    _try("a graph of nothing but zeros", _bytes("onnx/model.onnx", bytes(10_000)), "damaged"),
    _try(
        "weights that are a link to themselves",
        _replaced("model.safetensors", lambda path: path.symlink_to(path.name)),
        "model.safetensors is no file",
        runtime="torch",
    ),
    _made("a pipe as a model", "{}/x.onnx", lambda folder: os.mkfifo(folder / "x.onnx"), "a pipe"),
    _made(
        "a link to itself as a model",
        "{}/x.onnx",
        lambda folder: (folder / "x.onnx").symlink_to("x.onnx"),
        "no such model",
    ),
    _made(
        "a name that is not UTF-8",
        "{}/m\udcff",
        lambda folder: (folder / "m\udcff").mkdir(),
        "not UTF-8",
    ),
    _alone(("-m", "/dev/zero"), "a device as a model", "/dev/zero is a pipe, a device"),
    _alone(("-m", "x" * 5000), "a name of 5,000 characters", "no such model"),
    # threads
    _alone(("--threads", str(2**31)), "2^31 threads", "threads must be from 1 to", code=2),
    _alone(("--threads", "100000"), "100,000 threads", "four for each of", "100000", code=2),
]
