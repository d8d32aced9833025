"""Choose how a model is quantized to int8 by measured loss per byte.

A matrix that stays in full precision is shared with the safetensors file, so it makes the int8
graph smaller on disk; what it costs is the speed and memory of integer products. The search
starts with every product in int8, per channel, and gives back to full precision the role (all
layers' matrices of one kind) that wins the most loss per byte of int8, until the loss is close
enough to full precision.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path

import onnx

from fillmask_ui.models import load_model
from fillmask_ui.onnx_tools.dynamic_int8 import dynamic_int8
from fillmask_ui.onnx_tools.graph_parts import find_parts, nodes_of
from fillmask_ui.quantizing.hub_folder import FULL, INT8, write_graph
from fillmask_ui.training.held_out import measure_text

TOLERANCE = 0.01  # of the full-precision loss


@dataclass(frozen=True)
class Int8Scheme:
    """How the int8 graph is made."""

    per_channel: bool = True  # one scale per output column, or one per matrix
    keep: tuple[str, ...] = ()  # layers that stay in full precision, by their names in the model


@dataclass(frozen=True)
class SchemeTrial:
    """One measured scheme."""

    label: str  # in words
    nll_nats: float  # loss on the calibration text
    int8_bytes: int  # bytes of the matrices that are in int8
    file_bytes: int  # of the int8 graph on disk


@dataclass(frozen=True)
class SchemeSearch:
    """What was tried and what was chosen."""

    full_nll_nats: float  # loss of the full-precision graph on the same text
    trials: tuple[SchemeTrial, ...]  # in the order of the search
    chosen: Int8Scheme  # the scheme that the folder now holds
    chosen_label: str  # its label


def write_int8(graph: onnx.ModelProto, folder: Path, scheme: Int8Scheme) -> Path:
    """Quantize the float32 graph and save it as the folder's int8 model."""
    kept = nodes_of(graph, (part for part in find_parts(graph) if part.name in scheme.keep))
    quantized = dynamic_int8(graph, exclude=kept, per_channel=scheme.per_channel)
    return write_graph(quantized, folder, INT8)


def search_scheme(
    graph: onnx.ModelProto,  # in float32 with its weights inside
    folder: Path,  # holds the full-precision model; its int8 file is overwritten by each trial
    paragraphs: list[str],  # to calibrate with; not those of the final figures
    report: Callable[[str], None],
) -> SchemeSearch:
    """Find the scheme with the fewest full-precision matrices whose loss is within 1 %."""
    products = [part for part in find_parts(graph) if part.kind in ("product", "projection")]
    layers_of: dict[str, list[str]] = {}  # by role, such as bert.encoder.layer.*.output.dense
    for product in products:
        role = re.sub(r"\.\d+\.", ".*.", product.name)
        layers_of.setdefault(role, []).append(product.name)

    def keeping(roles: list[str]) -> Int8Scheme:
        return Int8Scheme(keep=tuple(layer for role in roles for layer in layers_of[role]))

    def trial(scheme: Int8Scheme, label: str) -> SchemeTrial:
        path = write_int8(graph, folder, scheme)
        nll_nats = measure_text(load_model(folder, onnx_file=INT8), paragraphs).nll_nats
        sizes = (prod(product.shape) for product in products if product.name not in scheme.keep)
        report(f"int8, {label}: {nll_nats:.4f} nats")
        return SchemeTrial(label, nll_nats, sum(sizes), path.stat().st_size)

    full = measure_text(load_model(folder, onnx_file=FULL), paragraphs).nll_nats
    per_matrix = trial(Int8Scheme(per_channel=False), "one scale a matrix")
    best, kept = trial(Int8Scheme(), "one scale a column (per channel)"), list[str]()
    trials = [per_matrix, best]
    while best.nll_nats > full * (1 + TOLERANCE) and len(kept) < len(layers_of) - 1:
        options: dict[str, SchemeTrial] = {}
        gains: dict[str, float] = {}  # nats per byte of int8 that is given back
        for role in (role for role in layers_of if role not in kept):
            label = f"per channel, full precision: {', '.join([*kept, role])}"
            one = options[role] = trial(keeping([*kept, role]), label)
            gains[role] = (best.nll_nats - one.nll_nats) / (best.int8_bytes - one.int8_bytes)
        trials += options.values()
        winner = max(gains, key=gains.__getitem__)
        if options[winner].nll_nats >= best.nll_nats:
            break
        best, kept = options[winner], [*kept, winner]
    write_int8(graph, folder, keeping(kept))
    return SchemeSearch(full, tuple(trials), keeping(kept), best.label)
