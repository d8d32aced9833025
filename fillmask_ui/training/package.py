"""From a training run to the folder that ships, measured and with its card."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from fillmask_ui.errors import ModelError, OptionError
from fillmask_ui.models import load_model
from fillmask_ui.models.weights import refuse_missing
from fillmask_ui.training.card import write_card
from fillmask_ui.training.corpus import CorpusPart, read_paragraphs, tokenize
from fillmask_ui.training.folder import (
    FULL,
    INT8,
    Int8Scheme,
    folder_bytes,
    write_folder,
)
from fillmask_ui.training.measure import (
    MAX_TOKENS,
    ClozeFigures,
    HeldOutFigures,
    largest_difference,
    measure_cloze,
    measure_text,
    read_cloze,
)
from fillmask_ui.training.run import trim
from fillmask_ui.training.scheme import SchemeSearch, SchemeTrial, search_scheme
from fillmask_ui.training.weights import load_weights

PARITY = 1e-3  # largest allowed difference of a logit between ONNX and PyTorch
CALIBRATION_PARAGRAPHS = 100


@dataclass(frozen=True)
class PackageRequest:
    """What to make of a trained model.

    Attributes:
        source: folder of a training run, or any Hugging Face masked-LM folder.
        output: folder to write.
        texts: whose tokens decide what a trimmed vocabulary keeps.
        vocabulary_size: trim to so many tokens; None keeps all.
        calibration: text by which the int8 scheme is chosen; None takes per channel throughout.
        evaluate: held-out text for the card's figures.
        cloze: cloze list for the card's figures.
        compare: a model to measure beside it, such as the one that training started from.
        notes: Markdown that the card begins with: provenance, licences, limits.
    """

    source: Path
    output: Path
    texts: tuple[CorpusPart, ...] = ()
    vocabulary_size: int | None = None
    calibration: CorpusPart | None = None
    evaluate: CorpusPart | None = None
    cloze: Path | None = None
    compare: str | None = None
    notes: Path | None = None

    def __post_init__(self) -> None:
        if self.vocabulary_size is not None and not self.texts:
            raise OptionError("trimming the vocabulary needs --text: whose tokens should stay?")
        if self.source.resolve() == self.output.resolve():
            raise OptionError("the package must go into another folder than the training run")
        if not self.source.is_dir():
            raise OptionError(f"no folder {str(self.source)!r}; give that of a training run")
        for path in (self.cloze, self.notes):
            if path is not None and not path.is_file():
                raise OptionError(f"no file {str(path)!r}")


@dataclass(frozen=True)
class ModelFigures:
    """What one model scores.

    Attributes:
        name: as the card calls it.
        vocabulary_size: V, the unit of its loss per token.
        text: on the held-out text; None where not measured.
        cloze: on the cloze list; None where not measured.
    """

    name: str
    vocabulary_size: int
    text: HeldOutFigures | None
    cloze: ClozeFigures | None


@dataclass(frozen=True)
class Package:
    """What was made.

    Attributes:
        folder: the packaged model.
        size_bytes: of all its files.
        parameters: number of weights, after trimming.
        parity: largest |difference| of a logit between the ONNX graph and PyTorch.
        search: how the int8 scheme was chosen; None where it was not searched.
        figures: of each measured model.
    """

    folder: Path
    size_bytes: int
    parameters: int
    parity: float
    search: SchemeSearch | None
    figures: tuple[ModelFigures, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return {**asdict(self), "folder": str(self.folder)}


def package(request: PackageRequest, report: Callable[[str], None] = lambda _: None) -> Package:
    """Write the folder, check that its runtimes agree, choose the int8 scheme, measure, describe.

    In the folder of a training run, `package.json` keeps the figures.

    Args:
        request: what to do.
        report: called with a line of progress.

    Raises:
        ModelError: if the source is no masked LM with all its weights, or the exported graph
            disagrees with PyTorch.
        FillmaskError: for texts or lists that cannot be read.
    """
    items = read_cloze(request.cloze) if request.cloze else None
    held_out = read_paragraphs([request.evaluate]).texts if request.evaluate else None
    loaded = load_weights(request.source)
    refuse_missing(str(request.source), type(loaded.model).__name__, loaded.missing)
    model, tokenizer = loaded.model, loaded.tokenizer
    if request.vocabulary_size is not None:
        ids = tokenize(read_paragraphs(request.texts).texts, tokenizer, 512).ids
        tokenizer = trim(model, tokenizer, ids, request.vocabulary_size)
        report(f"vocabulary trimmed to {request.vocabulary_size:,} tokens")
    graph = write_folder(model, tokenizer, request.output, Int8Scheme())
    report(f"weights and graphs written to {request.output}")
    parity = check_parity(request.output, tokenizer.mask_token)
    report(f"ONNX and PyTorch agree to {parity:.1e} in every logit")

    search = None
    if request.calibration is not None:

        def tell(trial: SchemeTrial) -> None:
            report(f"int8, {trial.label}: {trial.nll_nats:.4f} nats")

        thinned = read_paragraphs([request.calibration]).texts
        thinned = thinned[:: max(1, len(thinned) // CALIBRATION_PARAGRAPHS)]
        search = search_scheme(graph, request.output, thinned[:CALIBRATION_PARAGRAPHS], tell)
        report(f"int8 scheme: {search.chosen_label}")

    references = [("full precision", request.output, FULL), ("int8", request.output, INT8)]
    if request.compare:
        references.insert(0, ("start", request.compare, None))
    figures = []
    if items or held_out:
        for name, reference, onnx_file in references:
            loaded = load_model(reference, onnx_file=onnx_file)
            figures.append(
                ModelFigures(
                    name,
                    loaded.signature.vocabulary_size,
                    measure_text(loaded, held_out) if held_out else None,
                    measure_cloze(loaded, items) if items else None,
                )
            )
            report(f"measured {name}")
    made = Package(
        request.output,
        folder_bytes(request.output),
        sum(parameter.numel() for parameter in model.parameters()),
        parity,
        search,
        tuple(figures),
    )
    write_card(request, made)
    made = replace(made, size_bytes=folder_bytes(request.output))
    if (request.source / "run.json").exists():
        content = json.dumps(made.to_dict(), indent=2) + "\n"
        (request.source / "package.json").write_text(content, encoding="utf-8")
    return made


def check_parity(folder: Path, mask_token: str) -> float:
    """Largest difference of a logit between the folder's ONNX graph and PyTorch.

    Raises:
        ModelError: if it is above 1e-3.
    """
    texts = [
        f"The {mask_token} is on the table.",
        f"{mask_token}",
        f"In 1969 the first people walked on the {mask_token}, and the whole world {mask_token}. "
        * 8,
    ]
    full = load_model(folder, onnx_file=FULL)
    longest = min(full.max_tokens, MAX_TOKENS)
    texts = [text for text in texts if len(full.vocabulary.encode(text)) <= longest]
    parity = largest_difference(full, load_model(folder, runtime="torch"), texts)
    if not parity <= PARITY:
        raise ModelError(
            f"the exported graph differs from PyTorch by {parity:g} in a logit; at most {PARITY:g} "
            "is allowed: the export is wrong, please report it"
        )
    return parity
