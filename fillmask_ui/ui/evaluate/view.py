"""What the Evaluate tab shows at each moment: plain functions, no Gradio events."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fillmask_ui.errors import FillmaskError
from fillmask_ui.evaluation import MeanSoFar, Summary, TokenExample
from fillmask_ui.runs.tokens import TokenPlace, measured_tokens
from fillmask_ui.show.charts import Chart, charts
from fillmask_ui.show.render import render
from fillmask_ui.ui.background import Done, run_in_background
from fillmask_ui.ui.components import link_to, notice_html, noticing
from fillmask_ui.ui.evaluate.evaluate_form import SetControls
from fillmask_ui.ui.evaluate.evaluation_jobs import PageJobs, Selection
from fillmask_ui.ui.evaluate.measuring import Result
from fillmask_ui.ui.evaluate.result_view import (
    all_figures_html,
    ending_html,
    figures_html,
    so_far_text,
    worst_html,
)
from fillmask_ui.ui.evaluate.tokens import (
    DIFFERENT,
    SHOWN,
    WORST,
    FoundTokens,
    TokenFilter,
    side_by_side_html,
    tokens_html,
)
from fillmask_ui.ui.job import Status
from fillmask_ui.ui.run_tokens import link_of

if TYPE_CHECKING:
    from fillmask_ui.models.loading_progress import ProgressCallback

_OF_STATE = {
    "stopped": "This run was stopped: these are the figures of the texts measured so far.",
    "failed": "This run failed: {error}",
    "running": "This run is being measured: these are the figures of the texts so far.",
}


@dataclass(frozen=True, eq=False)
class TokenTable:
    """A table of tokens."""

    html: str = ""  # blank to remove the table
    worst: str = ""  # HTML of its first few tokens in their sentences
    found: tuple[TokenExample, ...] = ()  # the tokens of its rows, for clicks
    order: str = WORST  # see `TokenFilter`
    pair: bool = False  # whether two models saw the tokens
    kinds: bool = False  # whether the model saw hidden tokens in several ways


@dataclass(frozen=True)
class RunList:
    """The stored runs, as a table and by name for the menus; the chosen one may be blank."""

    html: str
    names: tuple[str, ...]
    chosen: str


@dataclass(frozen=True, eq=False)
class Update:
    """A change of the page; None leaves a part as it stands."""

    notice: str | None = None  # HTML of the message
    busy: bool | None = None  # whether a job runs
    figures: str | None = None  # HTML of the story of what was measured
    every: str | None = None  # HTML of all figures; blank to remove it
    # by name; missing ones are removed
    charts: Mapping[str, Chart] | None = None
    tokens: TokenTable | None = None  # the table of tokens
    selection: Selection | None = None  # the run shown
    side: str | None = None  # HTML of the models' predictions of one token
    runs: RunList | None = None  # the list of runs
    controls: SetControls | None = None  # values for the controls


def _said(notice: str) -> Update:
    return Update(notice=notice)


def told(page_jobs: PageJobs, status: Status) -> Update:
    """The page for a new status of its job."""
    result: Result | None = status.so_far
    if status.ended:
        page_jobs.drawn = None
        return _ended(page_jobs, status, result)
    page = Update(notice=notice_html("busy", status.message, status.fraction), busy=True)
    if result is None:
        return page
    if page_jobs.taken_up:
        page_jobs.taken_up = False
        page = replace(page, controls=page_jobs.controls(result.info))
    summary = result.summary
    # Sending the same charts again would close an opened table and end a drag.
    if summary is None or summary is page_jobs.drawn:
        return page
    page_jobs.drawn = summary
    so_far = so_far_text(summary, result.expected)
    return replace(
        page,
        figures=figures_html(summary, result.info, final=False, so_far=so_far),
        every="",
        charts=_charts(summary, result.history, live=True),
        tokens=TokenTable(),
        # Requests must not be answered from the previous run.
        selection=Selection(),
        side="",
    )


def _ended(page_jobs: PageJobs, status: Status, result: Result | None) -> Update:
    """The page once a job has ended, as far as its run is stored."""
    if result is None:
        return Update(notice=ending_html(status, None), busy=False)
    selection, page, run = Selection(result.info.name), Update(), None
    with contextlib.suppress(FillmaskError):  # deleted meanwhile, or nothing was measured
        run = page_jobs.store.open(selection.run)
        if status.state == "stopped" and run.state == "done":
            status = replace(status, state="done")
        if status.state != "done":
            result = page_jobs.result(selection)
        page = _page(page_jobs, result, selection)
    notice = ending_html(status, run, result.expected)
    return replace(page, notice=notice, busy=False, runs=run_list(page_jobs, selection.run))


@noticing(_said)
def stored(page_jobs: PageJobs, selection: Selection) -> Update:
    """The page for a stored run, or for two compared."""
    if not selection.run:
        words = "Pick a run first: press Run above, or choose one in the list."
        return Update(notice=notice_html("hint", words))
    result = page_jobs.result(selection)
    run = page_jobs.store.open(selection.run)
    said = [_OF_STATE.get(run.state, "").format(error=run.info.error)]
    controls = None
    if not selection.other:
        controls = page_jobs.controls(run.info)
        said.append(controls.note)
    text = " ".join(filter(None, said))
    return replace(
        _page(page_jobs, result, selection),
        notice=notice_html("hint" if text else "none", text),
        controls=controls,
        runs=run_list(page_jobs, selection.run),
    )


def _page(page_jobs: PageJobs, result: Result, selection: Selection) -> Update:
    summary = result.summary
    if summary is None:
        return Update()
    pair, so_far = bool(summary.most_different), ""
    if not result.done:
        so_far = so_far_text(summary, result.expected)
    wanted = TokenFilter(DIFFERENT if pair else WORST)
    first = summary.most_different if pair else summary.worst
    found = FoundTokens(first[:SHOWN], summary.model.tokens, summary.texts)
    table = replace(_token_table(found, wanted, pair=pair), kinds=len(summary.model.by_kind) > 1)
    return Update(
        figures=figures_html(summary, result.info, so_far=so_far, link=_link(page_jobs, selection)),
        every=all_figures_html(summary, result.info),
        charts=_charts(summary, result.history),
        tokens=table,
        selection=selection,
        side="",
    )


def _link(page_jobs: PageJobs, selection: Selection) -> str:
    """Opens the page with this result; blank on a public page, whose runs are private."""
    if page_jobs.session.public:
        return ""
    other = {"other": selection.other} if selection.other else {}
    return link_to("evaluate", run=selection.run, **other)


def linked(link: Mapping[str, str]) -> Selection:
    """The runs named in an address."""
    return Selection(link.get("run", ""), link.get("other", ""))


def _charts(
    summary: Summary, history: Sequence[MeanSoFar], *, live: bool = False
) -> dict[str, Chart]:
    found = charts(summary, history=history, live=live)
    return {chart.name: chart for chart in found}


def _token_table(found: FoundTokens, wanted: TokenFilter, *, pair: bool) -> TokenTable:
    html, worst = tokens_html(found, wanted, pair=pair), worst_html(found, wanted, pair=pair)
    return TokenTable(html, worst, found.tokens, wanted.order, pair)


@noticing(_said)
def chosen_tokens(
    page_jobs: PageJobs,
    selection: Selection,
    order: str,
    low: float | None,
    high: float | None,
    saw: str = "",
) -> Update:
    """The table of tokens for a filter.

    Args:
        page_jobs: of the visitor.
        selection: the run on the page.
        order: see `TokenFilter`.
        low: smallest loss under the model, or the candidate, in nats; None for any.
        high: largest loss, exclusive; None for any.
        saw: see `TokenFilter`.
    """
    if not selection.run:
        return Update()
    # No loss is below 0.
    high = math.inf if high is None else max(0.0, high)
    wanted = TokenFilter(order, max(0.0, low or 0.0), high, saw)
    found = page_jobs.tokens(selection, wanted)
    pair = len(page_jobs.models(selection)) > 1
    pair = pair and (not found.tokens or found.tokens[0].baseline_nll_nats is not None)
    return Update(tokens=_token_table(found, wanted, pair=pair), side="")


def explore_state(page_jobs: PageJobs, selection: Selection, token: TokenExample) -> dict[str, str]:
    """The state of Explore for a token of the table: its place in its run, and the models."""
    place = link_of(place_of(selection, token))
    try:
        models = page_jobs.models(selection)
    except FillmaskError:
        return place  # Explore reports what is wrong with the run
    names = ("model", "compare") if len(models) > 1 else ()
    default = page_jobs.session.default_model
    references = (choice.reference.strip() or default for choice in models)
    return place | dict(zip(names, references, strict=False))


def place_of(selection: Selection, token: TokenExample) -> TokenPlace:
    """The place of a token of the table."""
    return TokenPlace(selection.run, token.id, token.position, selection.other)


@noticing(str)
def side_by_side(page_jobs: PageJobs, selection: Selection, token: TokenExample) -> Iterator[str]:
    """HTML of the models' predictions of a token; a notice while one is loading."""

    def ask(report: ProgressCallback) -> str:
        met = measured_tokens(page_jobs.store, place_of(selection, token))
        return side_by_side_html(page_jobs.session, [own for own in met if own], report)

    for state in run_in_background(ask):
        if isinstance(state, Done):
            yield state.result
        else:
            yield notice_html("busy", state.message or "Asking the models…", state.fraction)


@noticing(lambda notice: RunList(notice, (), ""))
def run_list(page_jobs: PageJobs, chosen: str = "") -> RunList:
    """The stored runs, with the shown one marked."""
    listing = page_jobs.runs()
    # Includes unreadable runs, so that they can be deleted.
    names = (*(run.info.name for run in listing.runs), *listing.unreadable)
    html = render("page/evaluate/runs.html", listing=listing, chosen=chosen)
    return RunList(html, names, chosen if chosen in names else "")


@noticing(_said)
def deleted(page_jobs: PageJobs, name: str) -> Update:
    """The page after a run was deleted."""
    gone = page_jobs.delete(name)
    return Update(notice=notice_html("hint", f"Run {gone} was deleted."), runs=run_list(page_jobs))
