"""Which part of one graph is which part of another, of the same model.

Two files of one model name and order things differently. A part is known by the value that it
yields, where whoever wrote the files kept those names; else by what stands around it: the order in
which the outputs need the parts, their kinds, shapes and layers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from fillmask_ui.onnx_tools.parts import Part

# Names are trusted where at least so many of the parts agree in them and in what stands around.
_TRUSTED = 0.5


@dataclass(frozen=True)
class Pair:
    """One part in two graphs."""

    first: Part
    second: Part


@dataclass(frozen=True)
class Matching:
    """The parts of two graphs, side by side."""

    pairs: tuple[Pair, ...]  # in the order of the first graph
    only_first: tuple[Part, ...]  # without a partner
    only_second: tuple[Part, ...]


def match_parts(first: Sequence[Part], second: Sequence[Part]) -> Matching:
    """Match the parts of two graphs, each in the order of `find_parts`."""
    partners: dict[int, int] = _by_output(first, second)
    if len(partners) < _TRUSTED * min(len(first), len(second)):
        partners = {}
    taken = set(partners.values())
    left = [place for place in range(len(first)) if place not in partners]
    right = [place for place in range(len(second)) if place not in taken]
    keys = [_key(first[place]) for place in left], [_key(second[place]) for place in right]
    for block in SequenceMatcher(None, *keys, autojunk=False).get_matching_blocks():
        for step in range(block.size):
            partners[left[block.a + step]] = right[block.b + step]
    # Terms of a sum may stand in another order: those that nothing else looks like.
    taken = set(partners.values())
    rest = {_key(second[place]): place for place in right if place not in taken}
    counts = Counter(_key(second[place]) for place in right if place not in taken)
    for place in left:
        key = _key(first[place])
        if place not in partners and counts[key] == 1:
            partners[place] = rest[key]
            counts[key] = 0
    taken = set(partners.values())
    return Matching(
        tuple(Pair(first[a], second[b]) for a, b in sorted(partners.items())),
        tuple(part for place, part in enumerate(first) if place not in partners),
        tuple(part for place, part in enumerate(second) if place not in taken),
    )


def _key(part: Part) -> tuple[object, ...]:
    """What equal parts of two graphs have in common."""
    return part.kind, part.shape, part.layer


def _by_output(first: Sequence[Part], second: Sequence[Part]) -> dict[int, int]:
    """Places of parts that yield a value of one name, as the same kind, shape and layer."""
    known = {key: place for place, key in enumerate(_named(second))}
    return {place: known[key] for place, key in enumerate(_named(first)) if key in known}


def _named(parts: Sequence[Part]) -> list[tuple[object, ...]]:
    """A key of each part with the name of its output; a norm's weight and bias share that."""
    seen: Counter[tuple[object, ...]] = Counter()
    keys = []
    for part in parts:
        key = (part.output, *_key(part))
        keys.append((*key, seen[key]))
        seen[key] += 1
    return keys
