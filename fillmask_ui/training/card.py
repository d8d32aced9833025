"""The model card: the notes that a person wrote, then everything that was measured.

Figures come from the run's log and the package's measurements, never from the notes, so a card
cannot claim what was not seen.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fillmask_ui.errors import DataError, FillmaskError
from fillmask_ui.models.reference import parse_reference
from fillmask_ui.training.recipe import LogRow, Recipe
from fillmask_ui.training.run import read_log
from fillmask_ui.training.weights import dropout_values, tell_missing

if TYPE_CHECKING:
    from fillmask_ui.training.package import Package, PackageRequest

CARD = "README.md"
_CURVE_ROWS = 12


def write_card(request: PackageRequest, made: Package) -> Path:
    """Write `README.md` of the packaged model."""
    parts = []
    if request.notes is not None:
        parts.append(request.notes.read_text(encoding="utf-8").rstrip())
    else:
        parts.append(f"# {request.output.name}\n\nA masked language model.")
    if made.figures:
        parts.append(figures_section(made))
    asked = read_request(request.source)
    log = request.source / "log.jsonl"
    if asked is not None and log.exists():
        parts.append(training_section(asked, read_log(log), made.parameters))
        if asked["recipe"].get("blend"):
            parts.append(blend_section(request.source))
        parts.append(retrace_section(asked, request))
    if made.search is not None:
        parts.append(scheme_section(made))
    parts.append(files_section(made.folder))
    path = made.folder / CARD
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path


def read_request(source: Path) -> dict[str, Any] | None:
    """What the training run was asked for; None if the folder is no run.

    Raises:
        DataError: if `run.json` or the model's `config.json` cannot be read.
    """
    if not (source / "run.json").exists():
        return None
    asked = _read_json(source / "run.json")
    # Runs of earlier versions do not tell their dropout; the model's config does.
    if "dropout" not in asked and (source / "config.json").exists():
        asked["dropout"] = dropout_values(_read_json(source / "config.json"))
    return asked


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} cannot be read as JSON: {error}") from error


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table.

    >>> print(table(["a", "b"], [["1", "2"]]))
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def figures_section(made: Package) -> str:
    """Held-out and cloze figures of each measured model, side by side."""
    header = ["", *(one.name for one in made.figures)]
    rows = [["vocabulary", *(f"{one.vocabulary_size:,}" for one in made.figures)]]
    texts = [one.text for one in made.figures if one.text is not None]
    clozes = [one.cloze for one in made.figures if one.cloze is not None]
    about = []
    if texts:
        rows += [
            ["cross-entropy (nats per hidden token)", *(f"{t.nll_nats:.3f}" for t in texts)],
            ["nats per character", *(f"{t.nll_per_character_nats:.4f}" for t in texts)],
            ["top-1", *(f"{t.top1:.1%}" for t in texts)],
            ["top-5", *(f"{t.top5:.1%}" for t in texts)],
        ]
        one = texts[-1]
        about.append(
            f"Held-out text: {one.texts} paragraphs, {one.tokens:,} hidden tokens, "
            f"`{one.signature}`. Losses per token of different vocabularies have different units; "
            "those per character compare."
        )
    if clozes:
        rows += [
            ["cloze top-1", *(f"{c.top1:.1%}" for c in clozes)],
            ["cloze top-5", *(f"{c.top5:.1%}" for c in clozes)],
        ]
        kinds = ", ".join(
            f"{kind} {share:.0%}"
            for kind, share in clozes[-2 if len(clozes) > 1 else -1].top5_by_kind.items()
        )
        about.append(
            f"Cloze: {clozes[-1].items} sentences; a guess is right if it is one of the accepted "
            f"words. Top-5 in full precision by kind: {kinds}."
        )
    if len(texts) > 1:
        loss = texts[-1].nll_nats / texts[-2].nll_nats - 1
        about.append(f"int8 against full precision: {loss:+.2%} cross-entropy.")
    about.append(
        f"ONNX in full precision and PyTorch differ by at most {made.parity:.0e} in any logit of "
        "the probe texts."
    )
    return "\n\n".join(["## Figures", table(header, rows), *about])


def training_section(asked: dict[str, Any], log: list[LogRow], parameters: int) -> str:
    """The recipe, and the loss over the run.

    Args:
        asked: as of `read_request`.
        log: of the run, one row or more.
        parameters: number of weights in the package.
    """
    recipe, last = asked["recipe"], log[-1]
    held = min(recipe["validation_segments"], asked["segments"] // 10)
    texts = ", ".join(map(_text, asked["texts"]))
    separate = asked["segment_form"]["separate"]
    # Where the text changed on the way, a count of passes over it would mean nothing.
    passes = "" if asked.get("earlier") else f"{last.epoch:.2f} passes, "
    rows = [
        ["weights", _weights(asked, parameters)],
        ["text", f"{texts}: {asked['tokens']:,} tokens, {asked['characters']:,} characters"],
        ["tokens seen", f"{last.tokens:,}, {passes}padding not counted"],
        ["steps", f"{last.step:,} in {last.elapsed_seconds / 60:.0f} minutes"],
        [
            "batch",
            f"{recipe['batch_blocks']} rows of {recipe['block_tokens']} tokens; paragraphs packed, "
            + ("attention and positions for each alone" if separate else "read as one text"),
        ],
        ["objective", _objective(recipe)],
        [
            "optimizer",
            f"{recipe['optimizer']}, peak rate {recipe['learning_rate']:g}, warm-up "
            f"{recipe['warmup']:.0%}, linear decay to zero, weight decay "
            f"{recipe['weight_decay']:g}, gradient norm {recipe['clip']:g}, {_dropout(asked)}",
        ],
        ["precision", recipe["precision"]],
        ["versions", ", ".join(f"{name} {v}" for name, v in asked["versions"].items())],
    ]
    measured = [row for row in log if row.validation_nll_nats is not None]
    step = max(1, -(-len(measured) // _CURVE_ROWS))
    shown = measured[::-1][::step][::-1]
    curve = [
        [
            f"{row.elapsed_seconds / 60:.0f}",
            f"{row.tokens:,}",
            f"{row.rate:.1e}",
            f"{row.validation_nll_nats:.3f}",
            f"{row.validation_top1:.1%}",
        ]
        for row in shown
    ]
    return "\n\n".join(
        [
            "## Training",
            table(["", ""], rows),
            *earlier_section(asked),
            f"Loss on {held:,} paragraphs kept out of the training text (15 % hidden, 80/10/10):",
            table(["minutes", "tokens", "rate", "cross-entropy", "top-1"], curve),
        ]
    )


def earlier_section(asked: dict[str, Any]) -> list[str]:
    """What the run was asked for before it was resumed with other texts or another recipe."""
    lines = []
    for one in asked.get("earlier", []):
        texts = ", ".join(map(_text, one["texts"]))
        changed = [
            f"{name.replace('_', ' ')} {value}"
            for name, value in one["recipe"].items()
            if value != asked["recipe"].get(name)
        ]
        size = f"{one['characters']:,} characters"
        lines.append(f"- until step {one['until_step']:,}: {'; '.join([texts, size, *changed])}")
    if not lines:
        return []
    return [
        "The run was interrupted and went on with other choices; before that:",
        "\n".join(lines),
    ]


def _weights(asked: dict[str, Any], parameters: int) -> str:
    """How many were trained and how many are left; which of them began as random numbers."""
    text = f"{asked['parameters']:,}"
    if parameters != asked["parameters"]:
        text += f" in training, {parameters:,} with the trimmed vocabulary"
    missing = asked.get("missing_in_init")
    return f"{text}; {tell_missing(missing)}" if missing else text


def _dropout(asked: dict[str, Any]) -> str:
    values = asked.get("dropout", {}).items()
    return ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in values) or (
        "no dropout"
    )


def _text(one: dict[str, Any]) -> str:
    """A text and its share."""
    if one["share"] < 1:
        return f"{one['file']} ({one['share']:.0%} of its paragraphs)"
    return one["file"] + (f" ({one['share']:g} times an epoch)" if one["share"] > 1 else "")


def blend_section(source: Path) -> str:
    """The shares of trained weights that were measured, and the one that was taken."""
    trials = json.loads((source / "blend.json").read_text(encoding="utf-8"))
    rows = [
        [f"{one['share']:.0%}", f"{one['nll_nats']:.3f}", f"{one['top1']:.1%}"]
        for one in sorted(trials, key=lambda one: -one["share"])
    ]
    return "\n\n".join(
        [
            "## Average with the start",
            "The final weights are an average of the trained weights and those that training "
            f"started from; {trials[0]['share']:.0%} of the trained ones was best on the same "
            "validation paragraphs:",
            table(["trained weights", "cross-entropy", "top-1"], rows),
        ]
    )


def retrace_section(asked: dict[str, Any], request: PackageRequest) -> str:
    """The two commands, with plain file names."""
    train = ["fillmask-ui", "train"]
    for one in asked["texts"]:
        train += ["--text", _argument(one["file"], one["share"])]
    if asked["init"]:
        train += ["--init", _reference(asked["init"]), "--vocabulary-size"]
        train.append(str(asked["vocabulary_size"]))
    else:
        train += ["--config", Path(asked["config"]).name, "--vocabulary-size"]
        train.append(str(asked["vocabulary_size"]))
    defaults = {one.name: one.default for one in fields(Recipe)}
    for name, option in _OPTIONS.items():
        value = asked["recipe"][name]
        if value is not None and value != defaults[name]:
            train += [option, f"{value:g}" if isinstance(value, float) else str(value)]
    train += [option for name, option in _FLAGS.items() if asked["recipe"].get(name)]
    train += ["-o", "run"]
    package = ["fillmask-ui", "package", "run", "-o", "model"]
    if request.vocabulary_size is not None:
        package += ["--vocabulary-size", str(request.vocabulary_size)]
        for source in request.texts:
            package += ["--text", _argument(source.path.name, source.share)]
    texts = {"--calibration": request.calibration, "--evaluate": request.evaluate}
    for option, source in texts.items():
        if source is not None:
            package += [option, _argument(source.path.name, source.share)]
    for option, path in (("--cloze", request.cloze), ("--notes", request.notes)):
        if path is not None:
            package += [option, path.name]
    if request.compare:
        package += ["--compare", _reference(request.compare)]
    commands = "\n".join(shlex.join(command) for command in (train, package))
    return f"## Retrace\n\n```sh\n{commands}\n```"


_OPTIONS = {
    "minutes": "--minutes",
    "steps": "--steps",
    "block_tokens": "--block-tokens",
    "batch_blocks": "--batch-blocks",
    "mask_share": "--mask-share",
    "optimizer": "--optimizer",
    "learning_rate": "--learning-rate",
    "warmup": "--warmup",
    "weight_decay": "--weight-decay",
    "precision": "--precision",
    "device": "--device",
    "seed": "--seed",
}


_FLAGS = {"whole_word": "--whole-word", "compile": "--compile", "blend": "--blend"}


def _objective(recipe: dict[str, Any]) -> str:
    unit = "words, with all their tokens," if recipe.get("whole_word") else "tokens"
    return f"{recipe['mask_share']:.0%} of the {unit} chosen, 80/10/10"


def _reference(text: str) -> str:
    """A folder by its name, an id of the hub whole.

    >>> _reference("google-bert/bert-base-uncased@v1"), _reference("/nowhere/run/")
    ('google-bert/bert-base-uncased@v1', 'run')
    """
    try:
        path = parse_reference(text).path
    except FillmaskError:  # a folder of another machine or of another time
        path = Path(text)
    return text if path is None else path.absolute().name


def _argument(name: str, share: float) -> str:
    """What `CorpusPart.parse` reads."""
    return name if share == 1 else f"{name}:{share:g}"


def scheme_section(made: Package) -> str:
    """The int8 schemes that were measured, and the one that was taken."""
    search = made.search
    rows = [
        [
            trial.label,
            f"{trial.nll_nats:.4f}",
            f"{trial.nll_nats / search.full_nll_nats - 1:+.2%}",
            f"{trial.int8_bytes / 1e6:.1f}",
            f"{trial.file_bytes / 1e6:.1f}",
        ]
        for trial in search.trials
    ]
    header = ["scheme", "cross-entropy", "against full", "int8 weights (MB)", "file (MB)"]
    return "\n\n".join(
        [
            "## int8",
            f"Measured on calibration text, full precision {search.full_nll_nats:.4f} nats; "
            f"taken: {search.chosen_label}.",
            table(header, rows),
        ]
    )


def files_section(folder: Path) -> str:
    """What lies in the folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != CARD)
    rows = [[f"`{p.relative_to(folder).as_posix()}`", f"{p.stat().st_size:,}"] for p in paths]
    total = sum(path.stat().st_size for path in paths)
    rows.append(["together", f"{total:,}"])
    note = (
        "The ONNX graphs take the weights that they share with `model.safetensors` from there "
        "(external data), so the folder has to stay together."
    )
    return "\n\n".join(["## Files", table(["file", "bytes"], rows), note])
