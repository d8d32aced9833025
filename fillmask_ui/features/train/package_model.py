"""From a training run to the folder that ships, measured and with its card.

config.json  tokenizer.json  tokenizer_config.json  README.md
model.safetensors        float16
model.onnx               full precision; its weights are those of model.safetensors beside it
onnx/model_int8.onnx     dynamic int8, with all its weights

Figures on the card come from the run's log and from measurements, never from the notes. Those on
held-out text are BERT's objective (15% of the tokens, 80/10/10, each paragraph on its own); a loss
per token falls when the vocabulary is trimmed to longer spellings, so that per character stands
beside it. Cloze accuracy is the share of sentences whose first guess (one of the first five) is an
accepted word.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from pathlib import Path
from typing import Any, cast

import numpy as np
from huggingface_hub import ModelCard, ModelCardData
from onnx import ModelProto

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluationConfig, Summary, evaluate, summarize
from fillmask_ui.features.train.corpus import CorpusPart, read_paragraphs, tokenize
from fillmask_ui.features.train.torch_weights import (
    load_weights,
    trim,
    write_tokenizer,
    write_weights,
)
from fillmask_ui.features.train.training_recipe import PackageRequest, TrainingRecipe
from fillmask_ui.features.train.training_run import (
    StoredRequest,
    missing_note,
    read_log,
    read_request,
)
from fillmask_ui.files import write_text
from fillmask_ui.filling import fill
from fillmask_ui.models import load_model
from fillmask_ui.models.onnx_model import OnnxMaskedLM
from fillmask_ui.models.runtimes import WEIGHTS
from fillmask_ui.models.torch_model import check_parity
from fillmask_ui.models.weights import read_header, refuse_missing
from fillmask_ui.onnx_tools.constant_folding import copy_model
from fillmask_ui.onnx_tools.external_weights import share_weights
from fillmask_ui.onnx_tools.onnx_export import export_onnx
from fillmask_ui.onnx_tools.schemes import Feeds, write_variant
from fillmask_ui.options import options_of
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.publishing import hub_folder
from fillmask_ui.publishing.hub_folder import CARD, INT8, SHARED
from fillmask_ui.records import Example
from fillmask_ui.schema import from_json
from fillmask_ui.texts.calibration import calibration_feeds, calibration_texts
from fillmask_ui.texts.files import file_bytes

CALIBRATION_PARAGRAPHS = 100
TOLERANCE = 0.01  # of the full-precision loss, where the int8 scheme is chosen by measuring
_CURVE_ROWS = 12
TEXTS = 600
MAX_TOKENS = 256


def measure_text(model: MaskedLM, paragraphs: list[str]) -> Summary:
    """Cross-entropy of the first 600 paragraphs at 15% masks, seed 42, 256 tokens at most."""
    config = EvaluationConfig(max_tokens=min(MAX_TOKENS, model.max_tokens))
    return summarize(evaluate(model, paragraphs[:TEXTS], config), config=config)


@dataclass(frozen=True)
class ClozeItem:
    """A sentence with one mask and the words that are right there."""

    text: str  # with `[MASK]`
    accepted: tuple[str, ...]  # lower-case words
    kind: str = ""  # to group by


def read_cloze(path: Path) -> list[ClozeItem]:
    """Items from JSON lines with `text`, `accepted` and optionally `kind`."""
    items = [
        from_json(ClozeItem, line, f"line {number} of {path}")
        for number, line in enumerate(file_bytes(str(path)).lines(), start=1)
    ]
    if not items:
        raise DataError(f"{path} holds no cloze item")
    return items


@dataclass(frozen=True)
class ClozeFigures:
    """Accuracy on a cloze list."""

    items: int  # sentences
    top1: float  # share whose first guess is accepted
    top5: float  # share with an accepted word among the first five guesses
    top5_by_kind: dict[str, float]


def measure_cloze(model: MaskedLM, items: list[ClozeItem]) -> ClozeFigures:
    """The model's guesses at each sentence's mask, against the accepted words."""
    kinds: dict[str, list[bool]] = {}  # whether an accepted word is among the first five
    right = 0
    for item in items:
        masks = fill(model, item.text, top_k=5).masks if "[MASK]" in item.text else ()
        if len(masks) != 1:
            raise DataError(f"a cloze item has one [MASK]; {len(masks)} stand in {item.text!r}")
        words = [candidate.word.lower() for candidate in masks[0].candidates]
        right += words[0] in item.accepted
        kinds.setdefault(item.kind, []).append(not set(words).isdisjoint(item.accepted))
    return ClozeFigures(
        items=len(items),
        top1=right / len(items),
        top5=sum(map(sum, kinds.values())) / len(items),
        top5_by_kind={kind: float(np.mean(hits)) for kind, hits in sorted(kinds.items())},
    )


@dataclass(frozen=True)
class CardFigures:
    """What one model scores."""

    name: str  # on the card
    vocabulary_size: int  # V, the unit of its loss per token
    text: Summary | None  # of held-out text; None if not measured
    cloze: ClozeFigures | None


@dataclass(frozen=True)
class SchemeTrial:
    """One measured int8 scheme."""

    label: str  # its name in `fillmask-ui quantize`
    nll_nats: float  # loss on the calibration text
    file_bytes: int  # of the int8 graph on disk


@dataclass(frozen=True)
class SchemeSearch:
    """How the int8 scheme was chosen."""

    full_nll_nats: float  # loss of the full-precision graph on the same text
    trials: tuple[SchemeTrial, ...]
    chosen_label: str


@dataclass(frozen=True)
class Package:
    """A model that was packaged."""

    folder: Path  # the packaged model
    parameters: int  # number of weights, after trimming
    parity: float  # largest |difference| of a logit between the ONNX graph and PyTorch
    search: SchemeSearch | None  # None without calibration text
    # Of each measured model, those of full precision and int8 last.
    figures: tuple[CardFigures, ...] = ()

    @property
    def files(self) -> dict[str, int]:
        """Name and size in bytes of every file in the folder."""
        paths = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return {path.relative_to(self.folder).as_posix(): path.stat().st_size for path in paths}

    @property
    def size_bytes(self) -> int:
        return sum(self.files.values())

    @property
    def parity_text(self) -> str:
        """`parity` rounded up to two digits, so that no difference exceeds what the card says."""
        digits = Context(prec=2, rounding=ROUND_CEILING)
        return f"{float(digits.create_decimal(self.parity)):.1e}"


def package(request: PackageRequest, report: Callable[[str], None] = lambda _: None) -> Package:
    """Write the folder, check that its runtimes agree, choose the int8 scheme, measure, describe.

    A `FillmaskError` for what cannot be read, for a model without all its weights, or if the graph
    disagrees with PyTorch.
    """
    source, notes = request.source, f"# {request.output.name}\n\nA masked language model."
    if request.notes is not None:
        notes = "\n".join(file_bytes(str(request.notes)).lines()).rstrip()
    history = {"notes": notes, **training_history(source, read_request(source))}
    vocabulary_parts = [CorpusPart.parse(text) for text in request.text or ()]
    calibration = CorpusPart.parse(request.calibration) if request.calibration else None
    evaluation = CorpusPart.parse(request.evaluate) if request.evaluate else None
    items = read_cloze(request.cloze) if request.cloze else None
    held_out = read_paragraphs([evaluation]).texts if evaluation else None
    loaded = load_weights(source)
    model, tokenizer = loaded.model, loaded.tokenizer
    refuse_missing(str(source), type(model).__name__, loaded.missing)
    if request.vocabulary_size is not None:
        ids = tokenize(read_paragraphs(vocabulary_parts), tokenizer, 512).ids
        tokenizer = trim(model, tokenizer, ids, request.vocabulary_size)
        report(f"vocabulary trimmed to {request.vocabulary_size:,} tokens")
    with hub_folder.draft(request.output) as drafted:
        folder = drafted.folder
        write_tokenizer(tokenizer, folder)
        # In `onnx/`, where transformers.js looks, lies the int8 graph alone.
        model.config.update({"transformers.js_config": {"dtype": "int8"}})
        write_weights(model, folder)
        graph = export_onnx(model)
        shared = copy_model(graph)
        share_weights(shared, folder / WEIGHTS, read_header(folder / WEIGHTS))
        (folder / SHARED).write_bytes(shared.SerializeToString(deterministic=True))
        full = cast("OnnxMaskedLM", load_model(folder, onnx_file=SHARED))
        paragraphs = read_paragraphs([calibration]).texts if calibration else []
        step = max(1, len(paragraphs) // CALIBRATION_PARAGRAPHS)
        paragraphs = paragraphs[::step][:CALIBRATION_PARAGRAPHS]
        examples = [Example(number, text) for number, text in enumerate(paragraphs)]
        feeds = calibration_feeds(full, examples or calibration_texts())
        write_variant("int8", graph, folder / INT8, feeds=feeds)
        report("weights and graphs written")
        parity = check_parity(full, load_model(folder, runtime="torch"))
        report(f"ONNX and PyTorch agree to {parity:.1e} in every logit")
        search = None
        if calibration:
            search = _choose_scheme(graph, folder, paragraphs, feeds, report)
            report(f"int8 scheme: {search.chosen_label}")
        references: list[tuple[str, str | Path, str | None]] = []
        if request.baseline:
            references.append(("start", request.baseline, None))
        references += [("full precision", folder, SHARED), ("int8", folder, INT8)]
        figures = []
        for name, reference, onnx_file in references if items or held_out else ():
            measured = load_model(reference, onnx_file=onnx_file)
            text = measure_text(measured, held_out) if held_out else None
            cloze = measure_cloze(measured, items) if items else None
            size = measured.signature.vocabulary_size
            figures.append(CardFigures(name, size, text, cloze))
            report(f"measured {name}")
        drafted.publish(SHARED, INT8)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    packaged = Package(request.output, parameters, parity, search, tuple(figures))
    write_text(card_text(request, packaged, history), packaged.folder / CARD)
    return packaged


def _choose_scheme(
    graph: ModelProto,
    folder: Path,
    paragraphs: list[str],
    feeds: Feeds,
    report: Callable[[str], None],
) -> SchemeSearch:
    """Keep the first int8 scheme whose loss is within 1% of full precision, or the best one.

    What stays in half precision costs bytes, and the speed and memory of integer products: the
    schemes with the least of it come first.
    """

    def loss(name: str) -> float:
        return measure_text(load_model(folder, onnx_file=name), paragraphs).model.mean_nll_nats

    full, trials = loss(SHARED), []
    for scheme in ("int8-tensor", "int8-channel", "int8"):
        write_variant(scheme, graph, folder / INT8, feeds=feeds)
        trials.append(SchemeTrial(scheme, loss(INT8), (folder / INT8).stat().st_size))
        report(f"{scheme}: {trials[-1].nll_nats:.4f} nats")
    near = [trial for trial in trials if trial.nll_nats <= full * (1 + TOLERANCE)]
    chosen = near[0] if near else min(trials, key=lambda trial: trial.nll_nats)
    write_variant(chosen.label, graph, folder / INT8, feeds=feeds)
    return SchemeSearch(full, tuple(trials), chosen.label)


def training_history(source: Path, run: StoredRequest | None) -> dict[str, Any]:
    """The values that the card says about the training in `source`; `run` is its `read_request`."""
    log = source / "log.jsonl"
    if run is None or not log.exists():
        return {"run": run}
    rows = read_log(log)
    measured = [row for row in rows if row.validation_nll_nats is not None]
    step = max(1, -(-len(measured) // _CURVE_ROWS))
    # Without how often the run was validated and saved.
    recipe = {name: getattr(run.recipe, name) for name in options_of(TrainingRecipe)}
    del recipe["checkpoint_minutes"]
    return {
        "run": run,
        "log": rows,
        "curve": measured[::-1][::step][::-1],
        "missing": run.missing_in_init and missing_note(run.missing_in_init),
        "trials": json.loads((source / "blend.json").read_bytes()) if run.recipe.blend else None,
        "train_command": hub_folder.command(
            "train",
            text=[CorpusPart(Path(text["file"]), text["share"]).argument for text in run.texts],
            init=run.init and hub_folder.plain_reference(run.init),
            config=Path(run.config).name if run.config and not run.init else None,
            vocabulary_size=run.vocabulary_size,
            **{
                name: choice
                for name, choice in recipe.items()
                if choice != getattr(TrainingRecipe, name)
            },
            o="run",
        ),
    }


def card_text(request: PackageRequest, package: Package, history: dict[str, Any]) -> str:
    """The card of a package; `history` has the notes and the `training_history`."""
    texts = request.text or [] if request.vocabulary_size is not None else []
    command = hub_folder.command(  # with plain file names
        "package",
        "run",
        o="model",
        vocabulary_size=request.vocabulary_size,
        text=[Path(name).name for name in texts],
        calibration=request.calibration and Path(request.calibration).name,
        evaluate=request.evaluate and Path(request.evaluate).name,
        cloze=request.cloze and request.cloze.name,
        notes=request.notes and request.notes.name,
        baseline=request.baseline and hub_folder.plain_reference(request.baseline),
    )
    files = {name: size for name, size in package.files.items() if name != CARD}
    content = {**history, "package": package, "files": files, "command": command}
    # The notes bring the header that the hub reads.
    template = str(hub_folder.TEMPLATES / "trained.md")
    return ModelCard.from_template(ModelCardData(), template, **content).text + "\n"
