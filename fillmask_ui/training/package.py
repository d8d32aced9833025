"""From a training run to the folder that ships, measured and with its card."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from fillmask_ui.files import write_text
from fillmask_ui.models import load_model
from fillmask_ui.models.torch_model import check_parity
from fillmask_ui.models.weights import refuse_missing
from fillmask_ui.quantizing.hub_folder import CARD, FULL, INT8
from fillmask_ui.training.card import Package, PackageRequest, card_text, history_of
from fillmask_ui.training.corpus import read_paragraphs, tokenize
from fillmask_ui.training.folder import write_folder
from fillmask_ui.training.measure import measure, read_cloze
from fillmask_ui.training.run import read_request
from fillmask_ui.training.scheme import search_scheme
from fillmask_ui.training.trim import trim
from fillmask_ui.training.weights import load_weights

CALIBRATION_PARAGRAPHS = 100


def package(request: PackageRequest, report: Callable[[str], None] = lambda _: None) -> Package:
    """Write the folder, check that its runtimes agree, choose the int8 scheme, measure, describe.

    In the folder of a training run, `package.json` keeps the figures.

    Raises:
        ModelError: if the source is no masked LM with all its weights, or the exported graph
            disagrees with PyTorch.
        FillmaskError: for texts or lists that cannot be read, and a source that no run wrote.
    """
    output = request.output
    asked = read_request(request.source)
    told = history_of(request.source, asked) if asked is not None else {}
    items = read_cloze(request.cloze) if request.cloze else None
    held_out = read_paragraphs([request.evaluate]).texts if request.evaluate else None
    loaded = load_weights(request.source)
    model, tokenizer = loaded.model, loaded.tokenizer
    refuse_missing(str(request.source), type(model).__name__, loaded.missing)
    if request.vocabulary_size is not None:
        ids = tokenize(read_paragraphs(request.texts).texts, tokenizer, 512).ids
        tokenizer = trim(model, tokenizer, ids, request.vocabulary_size)
        report(f"vocabulary trimmed to {request.vocabulary_size:,} tokens")
    parameters = sum(parameter.numel() for parameter in model.parameters())
    graph = write_folder(model, tokenizer, output)
    report(f"weights and graphs written to {output}")
    parity = check_parity(load_model(output, onnx_file=FULL), load_model(output, runtime="torch"))
    report(f"ONNX and PyTorch agree to {parity:.1e} in every logit")

    search = None
    if request.calibration is not None:
        texts = read_paragraphs([request.calibration]).texts
        texts = texts[:: max(1, len(texts) // CALIBRATION_PARAGRAPHS)][:CALIBRATION_PARAGRAPHS]
        search = search_scheme(graph, output, texts, report)
        report(f"int8 scheme: {search.chosen_label}")

    references: list[tuple[str, str | Path, str | None]] = []
    if request.compare:
        references.append(("start", request.compare, None))
    references += [("full precision", output, FULL), ("int8", output, INT8)]
    figures = []
    for name, reference, onnx_file in references if items or held_out else ():
        measured = load_model(reference, onnx_file=onnx_file)
        figures.append(measure(name, measured, held_out, items))
        report(f"measured {name}")
    made = Package(output, parameters, parity, search, tuple(figures))
    write_text(card_text(request, made, asked, told), output / CARD)
    if asked is not None:
        content = {"folder": str(output), "size_bytes": made.size_bytes, **asdict(made)}
        text = json.dumps(content, indent=2, default=str) + "\n"
        write_text(text, request.source / "package.json")
    return made
