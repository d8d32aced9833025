"""Variants of a model, made one by one; each has its name when it is complete and has been run."""

import contextlib
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import fillmask_ui.features.quantize.graphs as graphs
from fillmask_ui import __version__
from fillmask_ui.errors import DataError, FillmaskError, ModelError
from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.features.quantize.measure_variants import Stamp, alarms_of, texts_sha256
from fillmask_ui.models import ModelChoice, load_choice
from fillmask_ui.models.load import local_files
from fillmask_ui.models.model_choice import parse_reference
from fillmask_ui.models.weights import weights_sha256
from fillmask_ui.onnx_tools.graph_parts import choose_parts, find_parts, nodes_of
from fillmask_ui.onnx_tools.schemes import DEFAULT_SCHEME, SCHEMES, find_scheme, write_variant
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.publishing import hub_folder
from fillmask_ui.publishing.hub_folder import FULL, ModelDraft
from fillmask_ui.records import Example, Progress
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.texts.calibration import MEASURED, calibration_feeds, calibration_texts

_CHECKED_TEXTS = 16  # to see whether a variant still predicts anything
_TOOLS = ("onnxruntime", "onnx")
_RETRACED = ("runtime", "onnx_file", "tokenizer")  # options of a source that a card repeats


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
        return {**asdict(self), "path": str(self.path)}


def quantize(
    source: ModelChoice,
    output: Path,
    schemes: Sequence[str] = (),
    *,
    exclude: Sequence[str] = (),
    calibration: TextSource | None = None,
    force: bool = False,
    load: graphs.Loader = load_choice,
) -> Generator[Progress | Variant]:
    """Make variants of a model in full precision; one on PyTorch is exported first.

    Close the generator to stop: variants that it has yielded stay, and nothing else does. If a
    scheme fails the others are still tried, and the error comes at the end.

    Args:
        source: the model.
        output: folder to write; it may hold other variants of the same model.
        schemes: names of `onnx_tools.schemes.SCHEMES`, or `all`; `int8` if empty.
        exclude: what stays in full precision, as of `onnx_tools.graph_parts.choose_parts`.
        calibration: texts for the schemes that run the model; embedded ones by default.
        force: overwrite variants, and write into a folder that is not empty.
        load: how models are loaded.
    """
    files = check_order(source, output, schemes, force=force)
    rows = {name: find_scheme(name) for name in files}
    if calibration is None:
        texts = calibration_texts()
    else:
        with open_texts(calibration) as opened:
            texts = list(opened)
    yield Progress(f"Reading {source.reference}…", 0.0)
    loaded = graphs.load_source(source, load)
    names = [*files.values()]
    hub_folder.check_output(output, loaded.files, names, force=force, signature=loaded.signature)
    failures: dict[str, FillmaskError] = {}
    with hub_folder.draft(output) as drafted:
        hub_folder.copy_beside(loaded.files, drafted.folder)
        if loaded.files.runtime == "torch":
            yield Progress(f"Exporting {source.reference}…", 0.0)
        base = graphs.read_source(source, loaded, load, drafted.folder)
        excluded = nodes_of(base.whole, choose_parts(find_parts(base.whole), exclude))
        for number, (name, row) in enumerate(rows.items()):
            path = drafted.folder / files[name]
            try:
                yield Progress(f"Making {name}…", (number + 0.1) / len(rows))
                feeds = calibration_feeds(base.model, texts) if row.calibrated else []
                write_variant(name, base.whole, path, exclude=excluded, feeds=feeds)
                yield Progress(f"Checking {name}…", (number + 0.7) / len(rows))
                model, alarms = _check(path, source, load, texts)
            except FillmaskError as error:
                failures[name] = error
                continue
            calibrated = {
                "texts": str(calibration or f"{TextSource()}|behind:{MEASURED}"),
                "used": len(feeds),
                "sha256": texts_sha256(texts),
            }
            entry = {
                "scheme": name,
                "description": row.description,
                "settings": dict(row.settings),
                "exclude": list(exclude),
                "calibration": calibrated if feeds else None,
                "command": _command(
                    "quantize",
                    source,
                    output,
                    scheme=name,
                    exclude=exclude,
                    calibration=Path(calibration.where).name if feeds and calibration else None,
                ),
            }
            yield _publish(drafted, files[name], entry, base, model, alarms)
    if failures and len(rows) == 1:
        raise next(iter(failures.values()))
    if failures:
        messages = (f"{name} was not made: {error}" for name, error in failures.items())
        raise ModelError("; ".join(messages))
    yield Progress("Done", 1.0)


def check_order(
    source: ModelChoice, output: Path, schemes: Sequence[str], *, force: bool
) -> dict[str, str]:
    """File of each scheme of `quantize`; an error for what is refused before a model is read."""
    chosen: list[str] = []
    for scheme in schemes or [DEFAULT_SCHEME]:
        chosen += SCHEMES if scheme == "all" else [scheme]
    files = {name: f"{Path(FULL).parent}/{find_scheme(name).file}" for name in chosen}
    hub_folder.check_output(output, local_files(source), [*files.values()], force=force)
    return files


def export(
    source: ModelChoice, output: Path, *, force: bool = False, load: graphs.Loader = load_choice
) -> Generator[Progress | Variant]:
    """Write a model on PyTorch as ONNX in float32, and compare it with PyTorch; as `quantize`."""
    torch = source if source.runtime == "torch" else replace(source, runtime="torch")
    hub_folder.check_output(output, local_files(torch), [FULL], force=force)
    yield Progress(f"Reading {source.reference}…", 0.0)
    loaded = graphs.load_source(torch, load)
    hub_folder.check_output(output, loaded.files, [FULL], force=force, signature=loaded.signature)
    with hub_folder.draft(output) as drafted:
        hub_folder.copy_beside(loaded.files, drafted.folder)
        yield Progress(f"Exporting {source.reference}…", 0.2)
        base = graphs.read_source(torch, loaded, load, drafted.folder)
        yield Progress("Checking the export…", 0.9)
        entry = {
            "scheme": "export",
            "description": "Full precision, float32.",
            "command": _command("export", source, output),
        }
        yield _publish(drafted, FULL, entry, base, base.model, ())
    yield Progress("Done", 1.0)


def _check(
    path: Path, source: ModelChoice, load: graphs.Loader, texts: Sequence[Example]
) -> tuple[MaskedLM, tuple[str, ...]]:
    """Load a result, which runs the probe, and look at its loss on a few texts, for alarms."""
    config = EvaluationConfig()
    try:
        model = load(ModelChoice(str(path), threads=source.threads))
        rows = list(evaluate(model, texts[:_CHECKED_TEXTS], config))
    except FillmaskError as error:
        raise ModelError(f"the result does not run and was not kept: {error}") from error
    size = model.signature.vocabulary_size
    with contextlib.suppress(DataError):  # short texts may have no hidden token
        return model, alarms_of(summarize(rows, config=config, vocabulary_size=size))
    return model, ()


def _publish(
    drafted: ModelDraft,
    name: str,
    entry: Mapping[str, Any],
    source: graphs.Source,
    model: MaskedLM,
    alarms: tuple[str, ...],
) -> Variant:
    """Give a result, which was loaded and run, its final name."""
    path, target = drafted.folder / name, drafted.output / name
    signature, parsed = source.signature, parse_reference(source.reference)
    variant = Variant(
        scheme=entry["scheme"],
        path=target,
        reference=str(target),
        size_bytes=path.stat().st_size,
        baseline_bytes=signature.size_bytes,
        stamp=Stamp.of(model.signature),
        alarms=alarms,
        parity=source.parity,
    )
    record = {
        "settings": {},
        "exclude": [],
        "calibration": None,
        **entry,
        "made_of": signature.runtime,
        "size_bytes": variant.size_bytes,
        "sha256": weights_sha256([path]),
        "parity": source.parity,
        "versions": {tool: metadata.version(tool) for tool in _TOOLS},
        "stamp": asdict(variant.stamp),
        "alarms": list(alarms),
        "figures": None,
    }
    about = {
        "reference": signature.name,
        "hub_id": parsed.hub_id,
        "revision": parsed.revision,
        "version": __version__,
    }
    for part in ("architecture", "runtime", "precision", "sha256", "size_bytes"):
        about[part] = getattr(signature, part)
    drafted.publish_variant(name, record, about)
    return variant


def _command(name: str, source: ModelChoice, output: Path, **options: Any) -> str:
    """The command line that makes a variant, with plain file names, for its card."""
    retraced = {key: value for key, value in source.changed_options().items() if key in _RETRACED}
    reference = hub_folder.plain_reference(source.reference)
    return hub_folder.command(name, reference, o=output.absolute().name, **retraced, **options)
