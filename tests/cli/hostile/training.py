"""Hostile inputs: trainings that cannot begin, which leave no folder behind."""

import shutil
from pathlib import Path

from cli.hostile.attempt import Attempt


def _text(folder: Path, model: Path) -> None:
    (folder / "a.txt").write_text("The cat sat on the mat today.\n" * 9, encoding="utf-8")


def _model(folder: Path, model: Path) -> None:
    _text(folder, model)
    shutil.copytree(model, folder / "m")


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
