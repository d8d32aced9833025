"""Parts of a diagnosis in groups: those stored alike, and layer by layer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from fillmask_ui.quantizing.diagnosis import EXACT_DB, LayerNoise, PartNoise
from fillmask_ui.quantizing.noise import Power

if TYPE_CHECKING:
    from fillmask_ui.onnx_tools.graph_edits import Pair


def with_usual(parts: Sequence[PartNoise]) -> list[PartNoise]:
    """With the median ratio of those that are stored alike: as matrices, or as single rows."""
    alike = defaultdict[tuple[str, bool], list[float]](list)
    for part in parts:
        alike[part.stored, len(part.shape) > 1].append(min(part.weight_snr_db, EXACT_DB))
    return [
        replace(part, usual_snr_db=median(alike[part.stored, len(part.shape) > 1]))
        for part in parts
    ]


def _label(layer: int | None, *, before: bool) -> str:
    if layer is not None:
        return f"layer {layer}"
    return "embeddings" if before else "head"


def by_layer(parts: Sequence[PartNoise], powers: dict[str, Power]) -> tuple[LayerNoise, ...]:
    """The layers in order of depth; `parts` are in the order of the graph."""
    groups: dict[str, list[PartNoise]] = {}
    before = True
    for part in parts:
        before = before and part.layer is None
        groups.setdefault(_label(part.layer, before=before), []).append(part)
    layers = []
    for label, own in groups.items():
        whole = Power()
        for part in own:
            whole.merge(powers[part.name])
        sizes = [
            sum(getattr(part, name) for part in own) for name in ("size_bytes", "baseline_bytes")
        ]
        layers.append(LayerNoise(label, whole.snr_db, *sizes))
    return tuple(layers)


def handed_on(pairs: Sequence[Pair]) -> dict[str, Pair]:
    """By a layer's label the first product behind it, whose source is what the layer hands on."""
    found: dict[str, Pair] = {}
    label, before = "embeddings", True
    for pair in pairs:
        part = pair.second
        before = before and part.layer is None
        own = _label(part.layer, before=before)
        if own != label and part.kind in ("product", "projection"):
            found[label] = pair
            label = own
    return found
