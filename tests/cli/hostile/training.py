"""Hostile inputs: trainings that cannot begin, which leave no folder behind."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from cli.hostile.attempt import Attempt

_ASKED = {"texts": [], "characters": 1, "recipe": {}, "init": None, "config": "c.json"}
_ASKED |= {"vocabulary_size": 9}


def _altered(**values: object) -> str:
    return json.dumps(_ASKED | values)


def _text(folder: Path, model: Path) -> None:
    (folder / "a.txt").write_text("The cat sat on the mat today.\n" * 9, encoding="utf-8")


def _negative(folder: Path, model: Path) -> None:
    _text(folder, model)
    (folder / "c.json").write_text('{"model_type": "bert", "hidden_size": -4}', "utf-8")


def _model(folder: Path, model: Path) -> None:
    _text(folder, model)
    shutil.copytree(model, folder / "m")


def _of_run(name: str, content: str) -> Callable[[Path, Path], None]:
    """A model as a training run leaves it, with one of its records altered."""

    def make(folder: Path, model: Path) -> None:
        shutil.copytree(model, folder / "m")
        (folder / "m" / "run.json").write_text(json.dumps(_ASKED), "utf-8")
        (folder / "m" / name).write_text(content, "utf-8")

    return make


def _package(name: str, record: str, content: str, *words: str) -> Attempt:
    command = ("package", "{}/m", "-o", "{}/out")
    return Attempt(name, command, words, 1, _of_run(record, content), absent="out")


def _try(name: str, arguments: tuple[str, ...], *words: str, code: int = 2) -> Attempt:
    command = ("train", "--text", "{}/a.txt", "-o", "{}/run", *arguments)
    return Attempt(name, command, words, code, _text, absent="run")


_SCRATCH = ("--config", "{model}/config.json", "--steps", "1")
_FROM_MODEL = ("--init", "{model}")

ATTEMPTS: list[Attempt] = [
    Attempt(
        "into the folder of the model that it begins with",
        ("train", "--text", "{}/a.txt", "-o", "{}/m", "--init", "{}/m", "--steps", "1"),
        ("m holds a model (model.safetensors)", "name another folder"),
        2,
        _model,
        absent="m/tokens.npz",
    ),
    _try(
        "a new vocabulary of 10^9 tokens",
        (*_SCRATCH, "--vocabulary-size", str(10**9)),
        "--vocabulary-size must be at most 16,777,216",
    ),
    *(
        _try(f"{minutes} minutes", (*_FROM_MODEL, "--minutes", minutes), "minutes must be", minutes)
        for minutes in ("inf", "nan")
    ),
    _package("a run of texts that are a number", "run.json", _altered(texts=7), "texts must be"),
    _package("a run whose recipe is a list", "run.json", _altered(recipe=[]), "recipe must be an"),
    _package("a run whose start is a number", "run.json", _altered(init=5), "init must be text"),
    _package("a log with a step alone", "log.jsonl", '{"step": 1}\n', "is no training log"),
    _package("a log of words", "log.jsonl", '{"step": "x"}\n', "has more than numbers"),
    Attempt(
        "a model of a negative size",
        ("train", "--text", "{}/a.txt", "-o", "{}/run", "--config", "{}/c.json", "--steps", "1"),
        ("c.json cannot be read as a model", "negative dimension"),
        1,
        _negative,
        absent="run",
    ),
    _try(
        "checkpoints never",
        (*_FROM_MODEL, "--minutes", "1", "--checkpoint-minutes", "inf"),
        "checkpoint minutes must be a finite number",
    ),
    _try(
        "rows of 10^12 tokens",
        (*_SCRATCH, "--block-tokens", str(10**12)),
        "--block-tokens",
        "32767",
    ),
    _try(
        "rows longer than any text",
        (*_FROM_MODEL, "--steps", "1", "--block-tokens", "30000"),
        "--block-tokens must be at most",
        "the longest text",
    ),
    _try(
        "a seed of 30 digits",
        (*_FROM_MODEL, "--steps", "1", "--seed", 30 * "9"),
        "--seed",
        "less than",
    ),
    _try(
        "too little text",
        (*_FROM_MODEL, "--steps", "1", "--block-tokens", "16"),
        "give more text",
        code=1,
    ),
    _try(
        "a device that is a name alone",
        (*_FROM_MODEL, "--steps", "1", "--block-tokens", "16", "--device", "privateuseone:0"),
        "unknown device 'privateuseone:0'",
    ),
]
