"""What an evaluation has measured, as HTML: its figures, and its tokens in their sentences."""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fillmask_ui.evaluation import EvaluatedText, Summary
from fillmask_ui.evaluation.alarms import UNCHANGED_ALARM
from fillmask_ui.evaluation.rows import TokenExample
from fillmask_ui.evaluation.running_sums import Largest
from fillmask_ui.masking import KINDS
from fillmask_ui.models.loading_progress import ProgressCallback
from fillmask_ui.records import SkippedText
from fillmask_ui.runs import Run, RunInfo
from fillmask_ui.runs.compare import ONE_RUN_ONLY
from fillmask_ui.runs.tokens import MeasuredToken
from fillmask_ui.show.answers import masked_figures, summary_html
from fillmask_ui.show.figures import (
    ROLES,
    comparison_table,
    figures_table,
    models_of,
)
from fillmask_ui.show.render import render
from fillmask_ui.show.sentences import (
    engines_text,
    model_label,
    sentence,
    slices_note,
    story_text,
)
from fillmask_ui.show.slice_tables import slice_tables
from fillmask_ui.show.words import ListedTokens, candidate_names, named
from fillmask_ui.ui.components import link_to, notice_html
from fillmask_ui.ui.job import Waiting
from fillmask_ui.ui.run_tokens import reading_values, replayed
from fillmask_ui.ui.session import Session

WORST, DIFFERENT, FLIPPED = "largest loss", "largest difference", "top prediction changed"
CAPTIONS = {
    WORST: "Tokens with the largest loss",
    DIFFERENT: "Tokens with the largest difference",
    FLIPPED: "Tokens whose top prediction changed",
}
# What the model saw in place of the hidden token -> its name on the page.
SAW = {
    "": "all",
    "mask": "hidden as mask",
    "random": "replaced by a random word",
    "unchanged": "left unchanged",
}
SHOWN = 100
# Texts searched while somebody waits.
MAX_TEXTS = 20_000
TOP_K = 10
# Tokens beside the chart: of two models so many each way, of one twice as many.
WORST_SHOWN = 3
_EXCERPT = 14  # characters on each side of those
_CONTEXT = 90  # characters of the text on each side of a token
_TOKENS_AROUND = 60  # the same in tokens, above the models' predictions


@dataclass(frozen=True)
class TokenFilter:
    """Which tokens to show."""

    order: str = WORST  # `WORST`, `DIFFERENT` or `FLIPPED`
    low: float = 0.0  # smallest loss under the model, or the candidate, in nats
    high: float = math.inf  # largest loss, exclusive
    saw: str = ""  # a kind of `masking.KINDS`; blank for any


@dataclass(frozen=True)
class FoundTokens:
    """Tokens that fit a filter."""

    tokens: tuple[TokenExample, ...] = ()  # the first `SHOWN`
    count: int = 0  # how many fit
    texts: int = 0  # searched
    all_texts: bool = True  # whether all were searched


def find_tokens(
    rows: Iterable[EvaluatedText | SkippedText], token_filter: TokenFilter
) -> FoundTokens:
    """The first tokens by a filter, ties in the order of the texts.

    `rows` are of a run or pairs of two; orders other than `WORST` need tokens that two models saw.
    """
    largest = Largest(SHOWN)
    count = texts = 0
    measured = (row for row in rows if isinstance(row, EvaluatedText))
    for row in itertools.islice(measured, MAX_TEXTS):
        values = _values(row, token_filter)
        texts += 1
        count += int((values > -np.inf).sum())
        largest.add(row, values, row.example)
    more = next(measured, None) is not None
    return FoundTokens(largest.items(), count, texts, not more)


def _values(row: EvaluatedText, token_filter: TokenFilter) -> np.ndarray:
    """float64 [M], larger first; -inf for tokens that do not fit."""
    values = nll = row.scores.nll_nats
    fits = (nll >= token_filter.low) & (nll < token_filter.high)
    if token_filter.saw:
        fits &= row.kinds == KINDS.index(token_filter.saw)
    if token_filter.order != WORST:
        if row.reference is None:
            return np.full(len(nll), -np.inf)
        values = np.abs(nll - row.reference.nll_nats)
        if token_filter.order == FLIPPED:
            fits &= row.scores.top_ids != row.reference.top_ids
    return np.where(fits & ~np.isnan(values), values, -np.inf)


def figures_html(summary: Summary, info: RunInfo, **options: Any) -> str:
    """`summary_html` of a run, with the names of its models; `shown` are its options."""
    models = [model for model in (info.baseline, info.model) if model is not None]
    labels = [model_label(model) for model in models[-len(models_of(summary)) :]]
    return summary_html(summary, labels, info, **options)


def so_far_text(summary: Summary, expected: int | None) -> str:
    """How many of the `expected` texts an unfinished run has; None if the total is unknown."""
    skipped = {**summary.skipped, ONE_RUN_ONLY: 0}
    seen = summary.texts + sum(skipped.values())
    return f"so far, {seen:,}{_of(expected)} texts"


def _of(expected: int | None) -> str:
    return f" of {expected:,}" if expected else ""


def pairs_html(summary: Summary, references: Sequence[str]) -> str:
    """Some pairs of sentences, each with a link to Explore; blank for a metric without pairs.

    `references` are of the models, that of the candidate first.
    """
    pairs = getattr(summary.model.extra, "examples", ())
    if not pairs:
        return ""
    state = {"mode": "sentences"}
    if references:
        state["model"] = references[0]
    rows = []
    for pair in pairs:
        link = link_to("explore", **state, text=pair.text, **{"with": pair.worse})
        rows.append((pair, link))
    return render("evaluate/pairs.html", rows=rows, pair=pairs[0].change_nats is not None)


def ending_html(status: Waiting, run: Run | None, expected: int | None = None) -> str:
    """How a job has ended, with the notes of its run if it made one."""
    notes = " ".join(sentence(note) for note in (run.info.notes if run else ()))
    measured = run.row_count if run else 0
    if status.state == "failed":
        continuation = " What was measured is kept in the list of runs." if measured else ""
        return notice_html("error", sentence(status.message) + continuation)
    if status.state == "stopped" and run and measured:
        continuation = "They are kept: resume the run below to measure the rest."
        summary = f"Stopped after {measured:,}{_of(expected)} texts. {continuation}"
        return notice_html("hint", f"{summary} {notes}".strip())
    if status.state == "stopped":
        return notice_html("hint", f"Stopped before anything was measured. {notes}".strip())
    return notice_html("hint" if notes else "none", notes)


def all_figures_html(summary: Summary, info: RunInfo) -> str:
    """Every figure in tables, and the signature of the run."""
    return render(
        "evaluate/all_figures.html",
        story=story_text(summary, "") if summary.comparison else "",
        masked=masked_figures(summary),
        tables=[figures_table(summary), comparison_table(summary)],
        unchanged=UNCHANGED_ALARM if UNCHANGED_ALARM in summary.alarms else "",
        info=info,
        measured_by=engines_text(info.engines),
    )


def slices_html(summary: Summary, info: RunInfo) -> str:
    """Groups of the texts and of the tokens in tables."""
    return render(
        "evaluate/slices.html",
        tables=[*slice_tables(summary, info.texts.get("group_column") or "")],
        notes=[sentence(note) for note in summary.group_notes],
        about=slices_note(summary),
    )


def tokens_html(matches: FoundTokens, token_filter: TokenFilter, *, pair: bool) -> dict[str, str]:
    """The tokens of a filter as a table, `tokens`, and a few of them as sentences, `worst`.

    Of a `pair` of models the few are those whose loss grew most, then those whose loss shrank most.
    """
    few = numbered = [*enumerate(matches.tokens)]
    each_way = pair and token_filter.order == DIFFERENT
    if each_way:
        change = {number: round(token.difference_nats or 0.0, 2) for number, token in numbered}
        rise = [token for token in numbered if change[token[0]] > 0]
        fall = [token for token in numbered if change[token[0]] < 0]
        few = [*rise[:WORST_SHOWN], *fall[:WORST_SHOWN]]
    names = {""}
    for token in matches.tokens:
        names |= {token.token, token.top_token, token.reference_top_token or ""}
    caption = CAPTIONS[token_filter.order]
    if token_filter.saw:
        caption += f", {SAW[token_filter.saw]}"
    values: dict[str, Any] = {
        "caption": caption,
        "narrowed": token_filter.low > 0 or token_filter.high < math.inf,
        "low": token_filter.low,
        "high": f"{token_filter.high:g}" if token_filter.high < math.inf else "any",
        "pair": pair,
        "names": partial(named, ListedTokens({name: name for name in names})),
    }
    worst = [(number, token, excerpt(token)) for number, token in few[: 2 * WORST_SHOWN]]
    values |= {"found": matches, "saw": SAW, "around": _CONTEXT, "few": worst, "each_way": each_way}
    return {name: render(f"evaluate/{name}.html", **values) for name in ("tokens", "worst")}


def excerpt(token: TokenExample) -> tuple[str, str]:
    """About `_EXCERPT` characters before and after a token, cut between words."""
    before, after = token.text[: token.start], token.text[token.end :]
    if len(before) > _EXCERPT:
        before = before[-_EXCERPT:]
        before = "… " + (before.partition(" ")[2] or before)
    if len(after) > _EXCERPT:
        after = after[:_EXCERPT]
        after = (after.rpartition(" ")[0] or after) + " …"
    return before, after


def side_by_side_html(
    session: Session, tokens: Sequence[MeasuredToken], on_progress: ProgressCallback | None = None
) -> str:
    """Each model's best words for one token, side by side, with the run's options.

    `tokens` holds that of the candidate, and of the reference if there is one.
    """
    panels: list[dict[str, Any]] = []
    roles = ROLES if len(tokens) > 1 else ("model",)
    for role, token in zip(roles, reversed(tokens), strict=True):
        again = replayed(
            session, token, top_k=TOP_K, load=lambda choice: session.model(choice, on_progress)
        )
        candidates, true = again.mask.candidates, again.mask.scored[0]
        names = candidate_names(candidates, again.model.vocabulary)
        reading = reading_values(again, _TOKENS_AROUND)
        read = [token.token for token in reading["tokens"]]
        loss = f"Loss in the run: {true.nll_nats:.4f} nats, rank {true.rank:,}."
        chosen = reading["chosen"]
        if chosen.step:
            loss = f"Step {chosen.step} wrote “{chosen.written}”. {loss}"
        panels.append(
            {
                **reading,
                # Models with the same tokenizer read the same input.
                "reads_otherwise": read not in [panel["read"] for panel in panels],
                "read": read,
                "caption": f"{role.capitalize()}: {again.model.signature.name}",
                "note": f"{loss} {again.changed}",
                "candidates": [*zip(names, candidates, strict=True)],
                "true": true,
            }
        )
    return render("evaluate/sides.html", panels=panels)
