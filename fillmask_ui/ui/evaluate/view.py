"""What the Evaluate tab shows at each moment: functions that return new values of its parts.

Values are by the names that `tab.py` gives the parts; what is not named stays as it is.
"""

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import gradio as gr

import fillmask_ui.ui.evaluate.result_view as results
from fillmask_ui.errors import FillmaskError
from fillmask_ui.evaluation.rows import TokenExample
from fillmask_ui.runs.listed import MOST_RUNS, ListedRun
from fillmask_ui.runs.tokens import TokenPlace
from fillmask_ui.show.charts import (
    CHANGES,
    CHARTS,
    MAIN_CHART,
    SLICE_CHARTS,
    Chart,
    charts,
    main_chart,
)
from fillmask_ui.show.charts.run_charts import runs_chart
from fillmask_ui.show.render import render
from fillmask_ui.show.run_tables import interval
from fillmask_ui.ui.components import Parts, chart_in, link_to, notice_html, noticing
from fillmask_ui.ui.evaluate.evaluation_jobs import PageJobs, Result, Selection
from fillmask_ui.ui.job import Waiting
from fillmask_ui.ui.run_tokens import link_of

_OF_STATE = {
    "stopped": "This run was stopped. The figures are of the texts measured so far.",
    "failed": "This run failed: {error}",
    "running": "This run is in progress. The figures are of the texts measured so far.",
}


def status_changes(page_jobs: PageJobs, status: Waiting) -> Parts:
    """What a new status of its job changes on the page."""
    result: Result | None = status.so_far
    if status.ended:
        page_jobs.drawn = None
        return _ended(page_jobs, status, result)
    page = Parts()
    if result is None:
        return page
    if page_jobs.taken_up:
        page_jobs.taken_up = False
        page = set_controls(page_jobs.controls(result.info)[0])
    summary = result.summary
    # Sending the same charts again would close an opened table and end a drag.
    if summary is None or summary is page_jobs.drawn:
        return page
    page_jobs.drawn = summary
    so_far = results.so_far_text(summary, result.expected)
    # Requests must not be answered from the previous run.
    return page | _result(
        Selection(),
        figures=results.figures_html(summary, result.info, final=False, so_far=so_far),
        drawn=charts(summary, history=result.history, live=True),
    )


def _ended(page_jobs: PageJobs, status: Waiting, result: Result | None) -> Parts:
    """The page once a job has ended, as far as its run is stored."""
    if result is None:
        return {"notice": results.ending_html(status, None)}
    selection, page, run = Selection(result.info.name), Parts(), None
    with contextlib.suppress(FillmaskError):  # deleted meanwhile, or nothing was measured
        run = page_jobs.store.open(selection.run)
        if status.state == "stopped" and run.state == "done":
            status = replace(status, state="done")
        if status.state != "done":
            result = page_jobs.result(selection)
        page = _page(page_jobs, result, selection)
    notice = results.ending_html(status, run, result.expected)
    return page | {"notice": notice} | run_list(page_jobs, selection.run)


def stored(page_jobs: PageJobs, selection: Selection) -> Parts:
    """The page for a stored run, or for two compared."""
    if not selection.run:
        words = "Choose a run first: press Run above, or click one in the list."
        return {"notice": notice_html("hint", words)}
    result = page_jobs.result(selection)
    run = page_jobs.store.open(selection.run)
    notes = [_OF_STATE.get(run.state, "").format(error=run.info.error)]
    page = _page(page_jobs, result, selection) | run_list(page_jobs, selection.run)
    if not selection.reference:
        values, note = page_jobs.controls(run.info)
        page |= set_controls(values)
        notes.append(note)
    text = " ".join(filter(None, notes))
    return page | {"notice": notice_html("hint" if text else "none", text)}


def set_controls(values: Mapping[str, Any]) -> Parts:
    """Values for the form."""
    return {f"control {name}": value for name, value in values.items()}


def _page(page_jobs: PageJobs, result: Result, selection: Selection) -> Parts:
    summary = result.summary
    if summary is None:
        return {}
    pair = bool(summary.most_different)
    so_far = "" if result.done else results.so_far_text(summary, result.expected)
    token_filter = results.TokenFilter(results.DIFFERENT if pair else results.WORST)
    first = summary.most_different if pair else summary.worst
    matches = results.FoundTokens(first[: results.SHOWN], summary.model.tokens, summary.texts)
    tokens = results.tokens_html(matches, token_filter, pair=pair) | {"found": matches.tokens}
    if pairs := results.pairs_html(summary, _references(page_jobs, selection)):
        tokens["worst"] = pairs
    link = ""  # the runs of a public page are private
    if not page_jobs.session.public:
        compared_run = {"reference": selection.reference} if selection.reference else {}
        link = link_to("evaluate", run=selection.run, **compared_run)
    page = _result(
        selection,
        figures=results.figures_html(summary, result.info, so_far=so_far, link=link),
        every=results.all_figures_html(summary, result.info),
        slices=results.slices_html(summary, result.info),
        main=main_chart(summary),
        drawn=charts(summary, history=result.history),
        tokens=tokens,
        filters=_filters(token_filter.order, pair=pair, kinds=len(summary.model.by_kind) > 1),
    )
    every = f"All {summary.model.tokens:,} tokens"
    page["slice box"] = gr.update(visible=True, open=bool(summary.model.by_group))
    return page | {"token box": gr.update(visible=True, label=every)}


def _result(
    selection: Selection,
    *,
    figures: str,
    drawn: Sequence[Chart],
    main: str = MAIN_CHART,
    every: str = "",
    slices: str = "",
    tokens: Parts | None = None,
    filters: Parts | None = None,
) -> Parts:
    """All that stands below the form; a blank piece is hidden."""
    tokens = tokens or {"tokens": "", "worst": "", "found": ()}
    by_name = {chart.name: chart for chart in drawn}
    first = {"main": main, "changes": CHANGES}
    values = Parts()
    for box_name, name in first.items():
        values |= chart_in(box_name, by_name.get(name))
    for name in CHARTS:
        beside = ("head",) if name in SLICE_CHARTS else ("head", "table")  # the slices are listed
        chart = by_name.get(name) if name not in first.values() else None
        values |= chart_in(name, chart, beside)
    return {
        **values,
        **tokens,
        **(filters or _filters()),
        "more box": gr.update(visible=bool(by_name.keys() - {*first.values(), *SLICE_CHARTS})),
        "slices": slices,
        "slice box": gr.update(visible=bool(slices)),
        "token box": gr.update(visible=bool(tokens["tokens"])),
        "figures": figures,
        "every": every,
        "every box": gr.update(visible=bool(every)),
        "selection": selection,
        "files": gr.update(visible=bool(selection.run)),
        "side": "",
        "token side": "",
    }


def _filters(order: str = results.WORST, *, pair: bool = False, kinds: bool = False) -> Parts:
    """The filters as a result comes; `pair`: of two models, `kinds`: hidden in several ways."""
    order_menu = gr.update(choices=[*results.CAPTIONS], value=order, visible=pair)
    saw_menu = gr.update(value="", visible=kinds)
    return {"order": order_menu, "saw": saw_menu, "low": None, "high": None}


def chosen_tokens(
    page_jobs: PageJobs,
    selection: Selection,
    order: str,
    low: float | None,
    high: float | None,
    saw: str = "",
) -> Parts:
    """The table of tokens for a filter, as of `TokenFilter`; a bound of None is none."""
    if not selection.run:
        return {}
    # No loss is below 0.
    high = math.inf if high is None else max(0.0, high)
    token_filter = results.TokenFilter(order, max(0.0, low or 0.0), high, saw)
    matches = results.find_tokens(page_jobs.rows(selection), token_filter)
    pair = len(page_jobs.models(selection)) > 1
    pair = pair and (not matches.tokens or matches.tokens[0].reference_nll_nats is not None)
    # Setting the filters again would ask for the table again.
    table = results.tokens_html(matches, token_filter, pair=pair) | {"found": matches.tokens}
    return {**table, "token box": gr.update(visible=True), "side": "", "token side": ""}


def explore_state(page_jobs: PageJobs, selection: Selection, token: TokenExample) -> dict[str, str]:
    """The state of Explore for a token of the table: its place in its run, and the models."""
    link = link_of(place_of(selection, token))
    references = _references(page_jobs, selection)
    if len(references) < 2:
        return link  # Explore takes the model from the run, and reports what is wrong with it
    candidate, reference = references
    return link | {"model": reference, "compare": candidate}


def _references(page_jobs: PageJobs, selection: Selection) -> list[str]:
    """Of the models of the shown run; empty where it does not name them."""
    default = page_jobs.session.default_model
    with contextlib.suppress(FillmaskError):
        return [model.reference.strip() or default for model in page_jobs.models(selection)]
    return []


def place_of(selection: Selection, token: TokenExample) -> TokenPlace:
    """The place of a token of the table."""
    return TokenPlace(selection.run, token.id, token.position, selection.reference)


@noticing(lambda notice: {"runs": notice})
def run_list(page_jobs: PageJobs, chosen: str = "") -> Parts:
    """The stored runs as a table, with the shown one marked."""
    runs = page_jobs.runs()
    # Unreadable runs are named too, so that they can be deleted.
    html = render(
        "evaluate/runs.html",
        runs=[run for run in runs.values() if isinstance(run, ListedRun)],
        unreadable={name: run for name, run in runs.items() if not isinstance(run, ListedRun)},
        chosen=chosen,
        linked=not page_jobs.session.public,
        interval=interval,
        most=MOST_RUNS,
    )
    return {"runs": html}


def run_action(page_jobs: PageJobs, selection: Selection, key: str, title: str = "") -> Parts:
    """The page after a click in the list: `show`, `rename`, `delete` or `compare`, a colon, a run.

    To compare there are several, the reference first, with commas between them.
    """
    action, _, name = key.partition(":")
    if action == "rename":
        info = page_jobs.store.rename(name, title)
        words = f"The run is called {info.title} now." if info.title else "It has no name now."
        return {"notice": notice_html("hint", words)} | run_list(page_jobs, selection.run)
    if action == "delete":
        gone = page_jobs.delete(name)
        notice = notice_html("hint", f"Run {gone} was deleted.")
        return {"notice": notice} | run_list(page_jobs, selection.run)
    if action == "compare":
        return _compared(page_jobs, name.split(","))
    return stored(page_jobs, Selection(name))


def _compared(page_jobs: PageJobs, names: Sequence[str]) -> Parts:
    """Runs on one chart; of two the comparison as well."""
    runs = page_jobs.runs_beside(names)
    page = stored(page_jobs, Selection(names[1], names[0])) if len(names) == 2 else Parts()
    return page | chart_in("beside", runs_chart(runs))
