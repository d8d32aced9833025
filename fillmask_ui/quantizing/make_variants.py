"""Variants of a model, made one by one; each has its name when it is complete and has been run."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from fillmask_ui import __version__
from fillmask_ui.errors import DataError, FillmaskError, ModelError
from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.evaluation.summary import UNCHANGED_ALARM
from fillmask_ui.models import ModelChoice, load_choice
from fillmask_ui.models.model_choice import parse_reference
from fillmask_ui.models.weights import weights_sha256
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.quantizing.float32_source import (
    MEASURED,
    Loader,
    Source,
    calibration_feeds,
    exported,
    named_model,
    read_source,
    read_texts,
)
from fillmask_ui.quantizing.hub_folder import (
    FULL,
    Draft,
    check_output,
    command,
    copy_beside,
    draft,
    plain_reference,
)
from fillmask_ui.quantizing.measure_variants import Stamp
from fillmask_ui.records import Example
from fillmask_ui.texts import TextSource

_LOOKED_AT = 16  # texts that show whether a variant still knows anything
_TOOLS = ("onnxruntime", "onnx")
# Options of a source that a card repeats.
_RETRACED = ("runtime", "onnx_file", "tokenizer")


@dataclass(frozen=True)
class Making:
    """How far the work is."""

    message: str  # what is being done
    fraction: float | None  # part done of all, in [0, 1]; None where it is not known


@dataclass(frozen=True)
class Variant:
    """A model that is complete under its final name."""

    scheme: str  # that made it; `export` for full precision
    path: Path  # of its ONNX file
    reference: str  # that loads it
    size_bytes: int  # of the file
    baseline_bytes: int  # of the weights that it was made of
    stamp: Stamp  # what it was loaded and run with
    alarms: tuple[str, ...] = ()  # what a reader must know, in words
    parity: float | None = None  # largest difference of a logit from PyTorch; None if not exported

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return {**asdict(self), "path": str(self.path)}


def quantize(
    source: ModelChoice,
    output: Path,
    schemes: Sequence[str] = (),
    *,
    exclude: Sequence[str] = (),
    calibration: TextSource | None = None,
    force: bool = False,
    load: Loader = load_choice,
) -> Generator[Making | Variant]:
    """Make variants of a model; one on PyTorch is exported first.

    Close the generator to stop: variants that it has yielded stay, and nothing else does. Where a
    scheme fails the others are still tried, and the error comes at the end.

    Args:
        source: the model, in full precision.
        output: folder to write; it may hold other variants of the same model.
        schemes: names of `onnx_tools.schemes.SCHEMES`, or `all`; none for the recipe of
            `embedded:int8`.
        exclude: what stays in full precision: names, kinds or layers, as of
            `onnx_tools.graph_parts.choose_parts`.
        calibration: texts for the schemes that run the model; embedded ones by default.
        force: overwrite variants, and write into a folder that holds other things.
        load: how models are loaded.

    Raises:
        OptionError: for an unknown scheme or part, or a folder that must not be written.
        ModelError: if the model cannot be loaded or worked on, or a result does not run.
        DataError: if no calibration text can be used, or the folder cannot be written.
    """
    from fillmask_ui.onnx_tools.schemes import find_scheme, write_variant

    names = _scheme_names(schemes)
    failures = _not_installed(names)
    if len(failures) == len(names):
        raise _failed(failures, names)
    rows = {name: find_scheme(name) for name in names}
    files = {name: f"{Path(FULL).parent}/{row.file}" for name, row in rows.items()}
    texts = read_texts(calibration)
    yield Making(f"Reading {source.reference}…", 0.0)
    named = named_model(source, load)
    check_output(output, named, list(files.values()), force=force)
    with draft(output) as drafted:
        copy_beside(named.files, drafted.folder)
        if named.files.runtime == "torch":
            yield Making(f"Exporting {source.reference}…", 0.0)
        base = read_source(source, named, load, drafted)
        nodes = _excluded(base, exclude)
        for number, (name, row) in enumerate(rows.items()):

            def step(message: str, part: float, number: int = number) -> Making:
                return Making(message, (number + part) / len(names))

            if name in failures:
                continue
            yield step(f"Making {name}…", 0.1)
            path = drafted.folder / files[name]
            try:
                used = calibration_feeds(base.model, texts) if row.calibrated else []
                write_variant(name, base.whole, path, exclude=nodes, feeds=used)
                yield step(f"Checking {name}…", 0.7)
                checked = _check(path, source, load, texts)
            except FillmaskError as error:
                failures[name] = error
                continue
            own = calibration if used else None
            entry = {
                "scheme": name,
                "description": row.description,
                "settings": dict(row.settings),
                "exclude": list(exclude),
                "calibration": _calibration(calibration, texts, len(used)) if used else None,
                "command": _command(
                    *("quantize", source, output),
                    scheme=name,
                    exclude=exclude,
                    calibration=own and Path(own.where).name,
                ),
            }
            yield _publish(drafted, files[name], entry, base, checked)
    if failures:
        raise _failed(failures, names)
    yield Making("Done", 1.0)


def _not_installed(names: Iterable[str]) -> dict[str, FillmaskError]:
    """The schemes that this machine lacks something for."""
    found = {name: _lacking(name) for name in names}
    return {name: error for name, error in found.items() if error is not None}


def _lacking(name: str) -> FillmaskError | None:
    from fillmask_ui.onnx_tools.schemes import find_scheme

    row = find_scheme(name)
    try:
        row.check()
    except ModelError as error:
        return error
    return None


def _failed(failures: Mapping[str, FillmaskError], names: Sequence[str]) -> FillmaskError:
    """One error for all schemes that failed; their own where there was only one scheme."""
    if len(names) == 1:
        return failures[names[0]]
    reasons = {name: str(failures[name]) for name in names if name in failures}
    return ModelError("; ".join(f"{name} was not made: {why}" for name, why in reasons.items()))


def export(
    source: ModelChoice, output: Path, *, force: bool = False, load: Loader = load_choice
) -> Generator[Making | Variant]:
    """Write a model on PyTorch as ONNX in float32, and compare it with PyTorch.

    Arguments and errors as of `quantize`.
    """
    yield Making(f"Reading {source.reference}…", 0.0)
    torch = source if source.runtime == "torch" else replace(source, runtime="torch")
    named = named_model(torch, load)
    check_output(output, named, [FULL], force=force)
    with draft(output) as drafted:
        copy_beside(named.files, drafted.folder)
        yield Making(f"Exporting {source.reference}…", 0.2)
        base = exported(torch, named, load, drafted)
        yield Making("Checking the export…", 0.9)
        entry: dict[str, Any] = {
            "scheme": "export",
            "description": "Full precision, float32.",
            "settings": {},
            "exclude": [],
            "calibration": None,
            "command": _command("export", source, output),
        }
        yield _publish(drafted, FULL, entry, base, _Checked(base.model, ()))
    yield Making("Done", 1.0)


def _scheme_names(schemes: Iterable[str]) -> list[str]:
    """Each once, in the order given; `all` stands for all."""
    from fillmask_ui.onnx_tools.schemes import DEFAULT_SCHEME, SCHEMES

    chosen = schemes or [DEFAULT_SCHEME]
    return list(dict.fromkeys(n for s in chosen for n in (SCHEMES if s == "all" else [s])))


def _excluded(source: Source, patterns: Sequence[str]) -> set[str]:
    """Names of the nodes of the parts that the patterns mean."""
    if not patterns:
        return set()
    from fillmask_ui.onnx_tools.graph_parts import choose_parts, find_parts, nodes_of

    return nodes_of(source.whole, choose_parts(find_parts(source.whole), patterns))


@dataclass(frozen=True, eq=False)
class _Checked:
    """A result that was loaded and run."""

    model: MaskedLM
    alarms: tuple[str, ...]


def _check(path: Path, source: ModelChoice, load: Loader, texts: list[Example]) -> _Checked:
    """Load a result, which runs the probe, and look at its loss on a few texts."""
    choice, config = ModelChoice(str(path), threads=source.threads), EvaluationConfig()
    try:
        model = load(choice)
        rows = list(evaluate(model, texts[:_LOOKED_AT], config))
    except FillmaskError as error:
        raise ModelError(f"the result does not run and was not kept: {error}") from error
    size = model.signature.vocabulary_size
    alarms: tuple[str, ...] = ()
    with contextlib.suppress(DataError):  # short texts may have no hidden token
        alarms = summarize(rows, config=config, vocabulary_size=size).alarms
    return _Checked(model, tuple(alarm for alarm in alarms if alarm != UNCHANGED_ALARM))


def _publish(
    drafted: Draft, name: str, entry: dict[str, Any], source: Source, checked: _Checked
) -> Variant:
    """Give a result its final name."""
    path = drafted.folder / name
    size, target = path.stat().st_size, drafted.home / name
    stamp = Stamp.of(checked.model.signature)
    signature = source.signature
    parsed = parse_reference(source.reference)
    made = {
        **entry,
        "made_of": signature.runtime,
        "size_bytes": size,
        "sha256": weights_sha256([path]),
        "parity": source.parity,
        "versions": {tool: metadata.version(tool) for tool in _TOOLS},
        "stamp": asdict(stamp),
        "alarms": list(checked.alarms),
        "figures": None,
    }
    about = {
        "reference": signature.name,
        "hub_id": parsed.hub_id,
        "revision": parsed.revision,
        "version": __version__,
        **{
            part: getattr(signature, part)
            for part in ("architecture", "runtime", "precision", "sha256", "size_bytes")
        },
    }
    drafted.publish_variant(name, made, about)
    return Variant(
        entry["scheme"],
        target,
        str(target),
        size,
        signature.size_bytes,
        stamp,
        checked.alarms,
        source.parity,
    )


def _calibration(source: TextSource | None, texts: list[Example], used: int) -> dict[str, Any]:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.text.encode("utf-8", "surrogatepass") + b"\0")
    return {
        "texts": str(source) if source else f"{TextSource()}|behind:{MEASURED}",
        "used": used,
        "sha256": digest.hexdigest(),
    }


def _command(name: str, source: ModelChoice, output: Path, **options: Any) -> str:
    """With plain file names."""
    given = {key: value for key, value in source.given().items() if key in _RETRACED}
    home = output.absolute().name
    return command(name, plain_reference(source.reference), o=home, **given, **options)
