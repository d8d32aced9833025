"""What the Explore tab shows of records: HTML and files, no Gradio events."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Sequence
from typing import Any

from fillmask_ui.filling import mask_positions
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Encoding, Filling, JointFilling, MaskFilling, ScoredWord
from fillmask_ui.show.charts.explore import candidate_names
from fillmask_ui.show.render import render
from fillmask_ui.ui.explore.editing import Draft, can_hide

_CSV_COLUMNS = (
    *("mask", "position", "rank", "word", "token", "token_id"),
    *("probability", "nll_nats", "nll_bits", "cumulative_probability"),
)
# A longer text is read in the box, not as a thousand buttons.
MAX_STRIP_TOKENS = 600


def version_of(text: str) -> str:
    """Short name of a text, so that a click on what showed an older text is recognised."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def hidden_id(hidden: ScoredWord | None) -> int | None:
    """The token that a mask hides, where it is known and a single one."""
    return hidden.parts[0].token_id if hidden and len(hidden.parts) == 1 else None


def strip_html(
    draft: Draft,
    encoding: Encoding,
    vocabulary: Vocabulary,
    filling: Filling | None = None,
    selected: int = 0,
) -> str:
    """The sentence as the tokens that the model sees, each a button; nothing for a long text.

    Args:
        draft: the text and the words behind its masks.
        encoding: of that text.
        vocabulary: of the model.
        filling: gives each mask its best guess.
        selected: number of the mask whose candidates are shown.
    """
    if len(encoding) > MAX_STRIP_TOKENS:
        return ""
    numbers = {place: mask for mask, place in enumerate(mask_positions(encoding, vocabulary))}
    words = encoding.word_ids
    tokens = [
        {
            "index": index,
            "mask": numbers.get(index),
            "shown": vocabulary.word(encoding.ids[index]).strip() or token,
            "about": f"token {token}, id {encoding.ids[index]}",
            "can_hide": can_hide(encoding, vocabulary, index),
            "joined": index > 0 and words[index] is not None and words[index] == words[index - 1],
        }
        for index, token in enumerate(encoding.tokens)
    ]
    masks = [
        {"word": draft.word(mask), "guess": filling and _guess(filling.masks[mask])}
        for mask in numbers.values()
    ]
    version = version_of(draft.text)
    return render("page/strip.html", tokens=tokens, masks=masks, selected=selected, version=version)


def _guess(mask: MaskFilling) -> dict[str, Any]:
    best = mask.candidates[:1]
    return {"name": candidate_names(best)[0], "probability": best[0].probability}


def stats_html(
    mask: MaskFilling, vocabulary_size: int, unit: str, hidden: ScoredWord | None
) -> str:
    """The figures that describe one mask's whole distribution, and the hidden word if known."""
    return render(
        "page/stats.html", mask=mask, vocabulary_size=vocabulary_size, unit=unit, hidden=hidden
    )


def choices_html(names: Sequence[str], selected: int) -> str:
    """One button per mask; nothing where there is no choice."""
    return render("page/choices.html", choices=names, selected=selected)


def candidates_html(
    mask: MaskFilling, unit: str, key_prefix: str, hidden: ScoredWord | None = None
) -> str:
    """The candidates of one mask as a table; the row of the hidden word is marked."""
    return render(
        "page/candidates.html",
        mask=mask,
        unit=unit,
        key_prefix=key_prefix,
        hidden_id=hidden_id(hidden),
    )


def scored_html(words: Sequence[ScoredWord], unit: str, hidden: ScoredWord | None = None) -> str:
    """The words that the reader asked about, and the hidden one where it is known."""
    return render("page/scored.html", words=words, unit=unit, hidden=hidden)


def joint_html(fillings: Sequence[JointFilling], unit: str, version: str) -> str:
    """The best fillings of all masks together; nothing where there are none."""
    return render("page/joint.html", fillings=fillings, unit=unit, version=version)


def details_html(filling: Filling, mask: MaskFilling) -> str:
    """Every choice that shaped the numbers."""
    versions = ", ".join(f"{name} {number}" for name, number in filling.signature.versions.items())
    return render("page/details.html", filling=filling, mask=mask, versions=versions)


def filling_csv(filling: Filling) -> str:
    """All candidates of all masks, one per line, numbers unrounded."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_CSV_COLUMNS)
    for number, mask in enumerate(filling.masks, start=1):
        cumulative = 0.0
        for c in mask.candidates:
            cumulative += c.probability
            names = (c.rank, c.word, c.token, c.token_id)
            figures = (c.probability, c.nll_nats, c.nll_bits, cumulative)
            writer.writerow([number, mask.position, *names, *map(repr, figures)])
    return out.getvalue()
