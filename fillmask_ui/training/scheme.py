"""Choose an int8 scheme by measured loss per byte.

A matrix that stays in full precision is shared with the safetensors file, so it makes the int8
graph smaller on disk; what it costs is the speed and memory of integer products. The search
starts with every product in int8, per channel, and gives back to full precision the role (all
layers' matrices of one kind) that wins the most loss per byte of int8, until the loss is close
enough to full precision.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import onnx

from fillmask_ui.models import load_model
from fillmask_ui.onnx_tools.quantize import Product, find_products
from fillmask_ui.training.folder import FULL, INT8, Int8Scheme, write_int8
from fillmask_ui.training.measure import measure_text

TOLERANCE = 0.01  # of the full-precision loss


@dataclass(frozen=True)
class SchemeTrial:
    """One measured scheme.

    Attributes:
        label: in words.
        nll_nats: loss on the calibration text.
        int8_bytes: bytes of the matrices that are in int8.
        file_bytes: of the int8 graph on disk.
    """

    label: str
    nll_nats: float
    int8_bytes: int
    file_bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return asdict(self)


@dataclass(frozen=True)
class SchemeSearch:
    """What was tried and what was chosen.

    Attributes:
        full_nll_nats: loss of the full-precision graph on the same text.
        trials: in the order of the search.
        chosen: the scheme that the folder now holds.
        chosen_label: its label.
    """

    full_nll_nats: float
    trials: tuple[SchemeTrial, ...]
    chosen: Int8Scheme
    chosen_label: str


def role(layer: str) -> str:
    """A layer's name without its number.

    >>> role("bert.encoder.layer.5.output.dense")
    'bert.encoder.layer.*.output.dense'
    """
    return re.sub(r"\.\d+\.", ".*.", layer)


def search_scheme(
    graph: onnx.ModelProto,
    folder: Path,
    paragraphs: list[str],
    report: Callable[[SchemeTrial], None] = lambda _: None,
) -> SchemeSearch:
    """Find the scheme with the fewest full-precision matrices whose loss is within 1 %.

    Args:
        graph: the float32 graph with its weights inside.
        folder: that holds the full-precision model; its int8 file is overwritten by each trial.
        paragraphs: calibration text; not the text of the final figures.
        report: called with each trial.
    """
    products = find_products(graph)
    roles: dict[str, list[Product]] = {}
    for product in products:
        roles.setdefault(role(product.layer), []).append(product)

    def layers(kept: list[str]) -> tuple[str, ...]:
        return tuple(product.layer for name in kept for product in roles[name])

    def trial(scheme: Int8Scheme, label: str) -> SchemeTrial:
        path = write_int8(graph, folder, scheme)
        model = load_model(folder, onnx_file=INT8)
        done = SchemeTrial(
            label,
            measure_text(model, paragraphs).nll_nats,
            sum(math.prod(p.shape) for p in products if p.layer not in scheme.keep),
            path.stat().st_size,
        )
        report(done)
        return done

    full = measure_text(load_model(folder, onnx_file=FULL), paragraphs).nll_nats
    trials = [
        trial(Int8Scheme(per_channel=False), "one scale a matrix"),
        trial(Int8Scheme(), "one scale a column (per channel)"),
    ]
    best, kept = trials[-1], []
    while best.nll_nats > full * (1 + TOLERANCE) and len(kept) < len(roles) - 1:
        options = {}
        for name in roles:
            if name not in kept:
                label = f"per channel, full precision: {', '.join([*kept, name])}"
                options[name] = trial(Int8Scheme(keep=layers([*kept, name])), label)
        base = best

        def gain(name: str, options=options, base=base) -> float:
            one = options[name]
            return (base.nll_nats - one.nll_nats) / (base.int8_bytes - one.int8_bytes)

        winner = max(options, key=gain)
        trials += options.values()
        if options[winner].nll_nats >= best.nll_nats:
            break
        best, kept = options[winner], [*kept, winner]
    chosen = Int8Scheme(keep=layers(kept))
    write_int8(graph, folder, chosen)
    return SchemeSearch(full, tuple(trials), chosen, best.label)
