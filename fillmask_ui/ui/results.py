"""Records as the tables, strips and files of the Explore tab: no Gradio events here."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Sequence

from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Encoding, Filling, JointFilling, MaskFilling, ScoredWord
from fillmask_ui.show.charts.explore import candidate_names, percent
from fillmask_ui.ui.editing import Draft, can_hide
from fillmask_ui.ui.widgets import Cell, Column, Row, facts_html, table_html, text_html

_CSV_COLUMNS = (
    *("mask", "position", "rank", "word", "token", "token_id"),
    *("probability", "nll_nats", "nll_bits", "cumulative_probability"),
)
# A longer text is read in the box, not as a thousand buttons.
MAX_STRIP_TOKENS = 600


def version_of(text: str) -> str:
    """Short name of a text, so that a click on what showed an older text is recognised."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def in_unit(nats: float, unit: str) -> float:
    """Nats as the unit that the reader chose.

    >>> in_unit(math.log(8), "bits")
    3.0
    """
    return nats / math.log(2) if unit == "bits" else nats


def strip_html(
    draft: Draft,
    encoding: Encoding,
    vocabulary: Vocabulary,
    filling: Filling | None = None,
    selected: int = 0,
) -> str:
    """The sentence as the tokens that the model sees, each a button.

    Args:
        draft: the text and the words behind its masks.
        encoding: of that text.
        vocabulary: of the model.
        filling: gives each mask its best guess.
        selected: number of the mask whose candidates are shown.
    """
    if len(encoding) > MAX_STRIP_TOKENS:
        return ""
    parts: list[str] = []
    mask = 0
    previous: int | None = None
    for index, token_id in enumerate(encoding.ids):
        word_id = encoding.word_ids[index]
        joined = word_id is not None and word_id == previous
        previous = word_id
        if token_id == vocabulary.mask_id:
            parts.append(_mask_html(draft, filling, mask, index, selected))
            mask += 1
        else:
            parts.append(_token_html(encoding, vocabulary, index, joined))
    return (
        f'<div class="fm-strip" role="toolbar" aria-label="Tokens of the sentence" dir="auto" '
        f'data-version="{version_of(draft.text)}">{"".join(parts)}</div>'
    )


def _token_html(encoding: Encoding, vocabulary: Vocabulary, index: int, joined: bool) -> str:
    token_id = encoding.ids[index]
    shown = text_html(vocabulary.word(token_id).strip() or encoding.tokens[index])
    about = f"token {encoding.tokens[index]}, id {token_id}"
    if not can_hide(encoding, vocabulary, index):
        return f'<span class="fm-token fm-special" title="{text_html(about)}">{shown}</span>'
    classes = "fm-token fm-joined" if joined else "fm-token"
    return (
        f'<button type="button" tabindex="-1" class="{classes}" dir="auto" data-token="{index}" '
        f'data-place="{index}" data-action="hide" title="{text_html(about)}; click to hide it" '
        f'aria-label="hide {shown}">{shown}</button>'
    )


def _mask_html(draft: Draft, filling: Filling | None, mask: int, index: int, selected: int) -> str:
    """A mask: its number chooses it, the rest brings the word back (or chooses it as well)."""
    word = draft.hidden[mask] if mask < len(draft.hidden) else None
    number = mask + 1
    several = len(draft.hidden) > 1
    guess = ""
    if filling is not None:
        best = filling.masks[mask].candidates[0]
        name = candidate_names(filling.masks[mask].candidates[:1])[0]
        guess = (
            f'<span class="fm-guess" dir="auto">{text_html(name)}'
            f"<small>{percent(best.probability)}</small></span>"
        )
    chosen = " fm-chosen" if several and mask == selected else ""
    if word is None:
        action, title = (
            "choose",
            "a hidden word" + ("; click to see its candidates" if several else ""),
        )
        label = f"mask {number}: show its candidates"
    else:
        action, title = "restore", f"hides {word}; click to put it back"
        label = f"mask {number}: put {word} back"
    pick = (
        f'<button type="button" tabindex="-1" class="fm-mask-number" data-token="{mask}" '
        f'data-place="{index}" data-action="choose" aria-label="show candidates of mask {number}" '
        f'title="show the candidates of mask {number}">{number}</button>'
        if several
        else ""
    )
    return (
        f'<span class="fm-mask{chosen}">{pick}<button type="button" tabindex="-1" '
        f'class="fm-mask-word" data-token="{mask}" data-place="{index}" data-action="{action}" '
        f'title="{text_html(title)}" aria-label="{text_html(label)}">'
        f'<span class="fm-mask-name">MASK</span>{guess}</button></span>'
    )


def stats_html(
    mask: MaskFilling, vocabulary_size: int, unit: str, original: ScoredWord | None
) -> str:
    """The figures that describe one mask's whole distribution."""
    facts = [
        ("Entropy", f"{in_unit(mask.entropy_nats, unit):.3f} {unit}"),
        ("Perplexity", f"{mask.perplexity:,.{1 if mask.perplexity < 100 else 0}f} words"),
        ("Vocabulary", f"{vocabulary_size:,} tokens"),
    ]
    if original is not None:
        rank = "" if original.rank is None else f", rank {original.rank:,}"
        nll = in_unit(original.nll_nats, unit)
        facts.insert(
            0,
            (
                f"Hidden word “{original.word}”",
                f"{percent(original.probability)}{rank}, loss {nll:.3f} {unit}",
            ),
        )
    return facts_html(facts, "This mask in figures")


def selector_html(choices: Sequence[str], selected: int) -> str:
    """One button a mask; nothing where there is no choice."""
    if len(choices) < 2:
        return ""
    buttons = "".join(
        f'<button type="button" class="fm-choice" dir="auto" data-key="{number}" '
        f'aria-pressed="{str(number == selected).lower()}">{text_html(name)}</button>'
        for number, name in enumerate(choices)
    )
    return f'<div class="fm-choices" role="group" aria-label="Mask shown">{buttons}</div>'


def candidates_html(
    mask: MaskFilling, unit: str, key_prefix: str, original: ScoredWord | None = None
) -> str:
    """The candidates of one mask as a table, a click on a row fills its word in."""
    columns = [
        Column("#", "Rank among all tokens of the vocabulary", number=True),
        Column("Word"),
        Column("Token", "As the vocabulary writes it", narrow=False),
        Column("Id", "Its number in the vocabulary", number=True, narrow=False),
        Column("Probability", "Softmax over the whole vocabulary", number=True),
        Column(f"NLL ({unit})", "Negative logarithm of the probability", number=True),
        Column("Cumulative", "Probability of this and all better words", number=True),
    ]
    widest = mask.candidates[0].probability
    true_id = original.parts[0].token_id if original and len(original.parts) == 1 else None
    rows = []
    cumulative = 0.0
    for candidate in mask.candidates:
        cumulative += candidate.probability
        nll = in_unit(candidate.nll_nats, unit)
        word = candidate.word if candidate.word.strip() else candidate.token
        share = candidate.probability / widest if widest else 0.0
        rows.append(
            Row(
                [
                    Cell(f"{candidate.rank:,}", candidate.rank, kind="number"),
                    Cell(word, kind="action", title=f"fill in {word}"),
                    Cell(candidate.token, kind="code"),
                    Cell(str(candidate.token_id), candidate.token_id, kind="number"),
                    Cell(percent(candidate.probability), candidate.probability, share, "number"),
                    Cell(f"{nll:.4f}", nll, kind="number"),
                    Cell(percent(min(cumulative, 1.0)), cumulative, kind="number"),
                ],
                key=f"{key_prefix}{candidate.token_id}",
                marked=candidate.token_id == true_id,
            )
        )
    return table_html(
        "Most probable words", columns, rows, "Click a row or a bar to write the word there."
    )


def scored_html(words: Sequence[ScoredWord], unit: str, original: ScoredWord | None = None) -> str:
    """The words that the reader asked about, and the hidden one where it is known."""
    columns = [
        Column("Word"),
        Column("Rank", "Among all tokens; only single tokens have one", number=True),
        Column("Probability", "Of the whole word, all its sub-tokens", number=True),
        Column(f"NLL ({unit})", "The sum over its sub-tokens", number=True),
        Column("Sub-tokens", "Each with its share of the NLL, given those before it"),
    ]
    everything = [*words] if original is None else [original, *words]
    rows = []
    for index, word in enumerate(everything):
        true = original is not None and index == 0
        nll = in_unit(word.nll_nats, unit)
        parts = " + ".join(f"{p.token} {in_unit(p.nll_nats, unit):.3f}" for p in word.parts)
        rows.append(
            Row(
                [
                    Cell(f"{word.word} (hidden word)" if true else word.word),
                    Cell("" if word.rank is None else f"{word.rank:,}", word.rank, kind="number"),
                    Cell(percent(word.probability), word.probability, kind="number"),
                    Cell(f"{nll:.4f}", nll, kind="number"),
                    Cell(parts, kind="code"),
                ],
                marked=true,
            )
        )
    return table_html("Words you asked about" if words else "The hidden word", columns, rows)


def joint_html(joint: Sequence[JointFilling], unit: str, version: str) -> str:
    """The best fillings of all masks together, a click on a row fills them in."""
    columns = [
        Column("#", "Best first", number=True),
        Column("Filled text"),
        Column("Joint probability", "Product of the factors", number=True, narrow=False),
        Column(f"Joint NLL ({unit})", "Sum of the factors' NLL", number=True),
        Column("Factors", "NLL of each word, given the words before it in this list", narrow=False),
    ]
    rows = []
    for rank, filling in enumerate(joint, start=1):
        nll = in_unit(filling.nll_nats, unit)
        parts = " + ".join(
            f"{part.word.strip() or part.token} {in_unit(part.nll_nats, unit):.3f}"
            for part in filling.parts
        )
        ids = ",".join(str(part.token_id) for part in filling.parts)
        rows.append(
            Row(
                [
                    Cell(str(rank), rank, kind="number"),
                    Cell(filling.text, kind="action", title=f"fill in: {filling.text}"),
                    Cell(percent(filling.probability), filling.probability, kind="number"),
                    Cell(f"{nll:.4f}", nll, kind="number"),
                    Cell(parts, kind="code"),
                ],
                key=f"{version}:all:{ids}",
            )
        )
    return table_html(
        "All masks together",
        columns,
        rows,
        "Filled from left to right, each word given the words before it.",
    )


def details_html(filling: Filling, mask: MaskFilling) -> str:
    """Every choice that shaped the numbers."""
    signature = filling.signature
    versions = ", ".join(f"{name} {version}" for name, version in signature.versions.items())
    facts = [
        ("Entropy of this mask", f"{mask.entropy_nats:.6f} nats"),
        ("Perplexity e^H", f"{mask.perplexity:,.3f}"),
        ("Vocabulary size", f"{signature.vocabulary_size:,}"),
        ("Tokens in the text", f"{len(filling.encoding)} of at most {signature.max_tokens:,}"),
        ("Model", signature.name),
        ("Architecture", signature.architecture),
        ("Runtime", f"{signature.runtime} on {signature.device}"),
        ("Precision", signature.precision),
        (
            "Parameters",
            "not known" if signature.parameters is None else f"{signature.parameters:,}",
        ),
        ("Size", f"{signature.size_bytes / 1e6:,.1f} MB"),
        ("SHA-256 of the weights", signature.sha256),
        ("Versions", versions or "not known"),
        ("CPU features", ", ".join(signature.cpu_features) or "none that matter"),
        *[("Note", note) for note in signature.notes],
        ("Signature", str(signature)),
    ]
    return facts_html(facts, "Details of the model and the prediction")


def filling_csv(filling: Filling) -> str:
    """All candidates of all masks, one a line, numbers unrounded."""
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
