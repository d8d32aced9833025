"""From a training run to the folder that ships, measured and with its card."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from fillmask_ui.models import load_model
from fillmask_ui.models.weights import refuse_missing
from fillmask_ui.training.card import CARD, Package, card_text
from fillmask_ui.training.corpus import read_paragraphs, tokenize
from fillmask_ui.training.folder import FULL, INT8, folder_bytes, write_folder
from fillmask_ui.training.measure import (
    ModelFigures,
    check_parity,
    measure_cloze,
    measure_text,
    read_cloze,
)
from fillmask_ui.training.request import PackageRequest
from fillmask_ui.training.run import read_request
from fillmask_ui.training.scheme import search_scheme
from fillmask_ui.training.trim import trim
from fillmask_ui.training.weights import load_weights

CALIBRATION_PARAGRAPHS = 100


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
    output = request.output
    items = read_cloze(request.cloze) if request.cloze else None
    held_out = read_paragraphs([request.evaluate]).texts if request.evaluate else None
    loaded = load_weights(request.source)
    model, tokenizer = loaded.model, loaded.tokenizer
    refuse_missing(str(request.source), type(model).__name__, loaded.missing)
    if request.vocabulary_size is not None:
        ids = tokenize(read_paragraphs(request.texts).texts, tokenizer, 512).ids
        tokenizer = trim(model, tokenizer, ids, request.vocabulary_size)
        report(f"vocabulary trimmed to {request.vocabulary_size:,} tokens")
    graph = write_folder(model, tokenizer, output)
    report(f"weights and graphs written to {output}")
    parity = check_parity(load_model(output, onnx_file=FULL), load_model(output, runtime="torch"))
    report(f"ONNX and PyTorch agree to {parity:.1e} in every logit")

    search = None
    if request.calibration is not None:
        thinned = read_paragraphs([request.calibration]).texts
        thinned = thinned[:: max(1, len(thinned) // CALIBRATION_PARAGRAPHS)]
        search = search_scheme(
            graph,
            output,
            thinned[:CALIBRATION_PARAGRAPHS],
            lambda trial: report(f"int8, {trial.label}: {trial.nll_nats:.4f} nats"),
        )
        report(f"int8 scheme: {search.chosen_label}")

    references: list[tuple[str, str | Path, str | None]] = []
    if request.compare:
        references.append(("start", request.compare, None))
    references += [("full precision", output, FULL), ("int8", output, INT8)]
    figures = []
    for name, reference, onnx_file in references if items or held_out else ():
        measured = load_model(reference, onnx_file=onnx_file)
        figures.append(
            ModelFigures(
                name,
                measured.signature.vocabulary_size,
                measure_text(measured, held_out) if held_out else None,
                measure_cloze(measured, items) if items else None,
            )
        )
        report(f"measured {name}")
    made = Package(
        folder=output,
        size_bytes=folder_bytes(output),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        parity=parity,
        search=search,
        figures=tuple(figures),
    )
    asked = read_request(request.source)
    (output / CARD).write_text(card_text(request, made, asked), encoding="utf-8")
    made = replace(made, size_bytes=folder_bytes(output))
    if asked is not None:
        content = {**asdict(made), "folder": str(output)}
        text = json.dumps(content, indent=2) + "\n"
        (request.source / "package.json").write_text(text, encoding="utf-8")
    return made
