"""What the Evaluate tab shows at each moment: plain functions, no Gradio events."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.evaluation import Summary, TokenExample
from fillmask_ui.show.charts import Chart, charts, loss_histogram, running_mean
from fillmask_ui.ui.background import Done, run_in_background
from fillmask_ui.ui.evaluate_job import Job, News, chosen_model, options_of, watch
from fillmask_ui.ui.evaluate_request import Form
from fillmask_ui.ui.evaluate_results import figures_html, names_of, progress_html, runs_html
from fillmask_ui.ui.evaluate_runs import Result, Shown, Workbench
from fillmask_ui.ui.evaluate_tokens import (
    DIFFERENT,
    SHOWN,
    WORST,
    Choice,
    Found,
    masked,
    side_by_side_html,
    tokens_html,
)
from fillmask_ui.ui.links import MAX_TEXT_CHARACTERS
from fillmask_ui.ui.widgets import error_message, notice_html

# Charts in the order of the page.
CHARTS = (
    "running-mean",
    "loss-histogram",
    "scatter",
    "differences",
    "loss-distribution",
    "loss-by-kind",
    "loss-by-position",
    "loss-by-frequency",
    "loss-by-part",
    "calibration",
)


@dataclass(frozen=True, eq=False)
class Tokens:
    """A table of tokens.

    Attributes:
        html: the table.
        found: its tokens, for clicks.
        choice: that it was made by.
        pair: whether two models saw the tokens.
    """

    html: str
    found: tuple[TokenExample, ...]
    choice: Choice
    pair: bool


@dataclass(frozen=True)
class RunList:
    """The stored runs: as a table, and by name for the menus."""

    html: str
    names: tuple[str, ...]
    chosen: str


@dataclass(frozen=True, eq=False)
class Update:
    """What changes on the page; None for what stays as it is.

    Attributes:
        notice: HTML of the message.
        busy: whether a job runs.
        figures: HTML.
        charts: by name; those that are missing here are taken off the page.
        tokens: the table of tokens.
        shown: which run all this is of.
        side: HTML of what the models say of one token.
        runs: the list of runs.
    """

    notice: str | None = None
    busy: bool | None = None
    figures: str | None = None
    charts: Mapping[str, Chart] | None = None
    tokens: Tokens | None = None
    shown: Shown | None = None
    side: str | None = None
    runs: RunList | None = None


def error_update(error: FillmaskError) -> Update:
    """A message; all else stays."""
    return Update(notice=notice_html("error", error_message(error)), busy=False)


def evaluation(bench: Workbench, visitor: str, form: Form, *, log: bool) -> Iterator[Update]:
    """Start what the controls ask for and tell how it goes.

    Args:
        bench: the page's jobs and runs.
        visitor: who asks.
        form: the controls.
        log: counts of the histogram on a logarithmic axis, until the reader says otherwise.
    """
    bench.keep_axis(visitor, log=log)
    yield Update(notice=notice_html("busy", "Starting…"), busy=True)
    try:
        job = bench.begin(visitor, form)
    except FillmaskError as error:
        yield error_update(error)
        return
    yield from watched(bench, visitor, job)


def resumed(bench: Workbench, visitor: str, name: str, *, log: bool) -> Iterator[Update]:
    """Go on with a stopped run and tell how it goes; arguments as for `evaluation`."""
    bench.keep_axis(visitor, log=log)
    yield Update(notice=notice_html("busy", "Starting…"), busy=True)
    try:
        job = bench.resume(visitor, name)
    except FillmaskError as error:
        yield error_update(error)
        return
    yield from watched(bench, visitor, job)


def watched(bench: Workbench, visitor: str, job: Job) -> Iterator[Update]:
    """How a job goes, until its end."""
    drawn: tuple[Summary | None, bool] = (None, False)
    for news in watch(job):
        log = bench.has_log_axis(visitor)
        if not news.ended:
            # The same charts once more would close an opened table and break off a drag.
            same = news.summary is drawn[0] and log == drawn[1]
            drawn = (news.summary, log)
            yield in_words(news) if same else under_way(news, log=log)
            continue
        if news.state == "stopped":
            # The answer first: all the charts take a moment.
            yield Update(notice=progress_html(news), busy=False)
        yield at_the_end(bench, visitor, news, log=log)


def in_words(news: News) -> Update:
    """How far a job is, and no more."""
    return Update(notice=progress_html(news), busy=True)


def under_way(news: News, *, log: bool) -> Update:
    """The page while a job runs."""
    update = in_words(news)
    if news.summary is None or news.info is None:
        return update
    return replace(
        update,
        figures=figures_html(news.summary, news.info, final=False),
        charts=_charts(news.summary, news.history, log=log, live=True),
        side="",
        tokens=Tokens("", (), Choice(), pair=False),
        # What is asked of a stored run must not be answered from the one before.
        shown=Shown(),
    )


def at_the_end(bench: Workbench, visitor: str, news: News, *, log: bool) -> Update:
    """The page once a job has ended, however it did."""
    if news.info is None:
        return Update(notice=progress_html(news), busy=False)
    shown = Shown(news.info.name)
    page = Update()
    try:
        # What is on the disk counts: a job that was stopped may have said less.
        result = (
            bench.result(visitor, shown)
            if news.summary is None or news.state != "done"
            else Result(news.info, news.summary, news.history)
        )
    except FillmaskError:
        pass  # nothing was measured: the notice says why
    else:
        news = replace(news, seen=result.seen)
        page = _page(result, shown, log=log)
    listed = run_list(bench, visitor, news.info.name)
    return replace(page, notice=progress_html(news), busy=False, runs=listed)


def stored(bench: Workbench, visitor: str, shown: Shown, *, log: bool) -> Update:
    """The page for a stored run, or for two compared.

    Args:
        bench: the page's jobs and runs.
        visitor: who asks.
        shown: which run.
        log: counts of the histogram on a logarithmic axis.
    """
    try:
        result = bench.result(visitor, shown)
        run = bench.store(visitor).open(shown.run)
    except FillmaskError as error:
        return replace(error_update(error), busy=None)
    words = {
        "stopped": "This run was stopped: these are the figures of the texts measured so far.",
        "failed": f"This run failed: {run.info.error}",
        "running": "This run is being measured: these are the figures of the texts so far.",
    }.get(run.state, "")
    notice = notice_html("hint", words) if words else notice_html("none")
    page = _page(result, shown, log=log)
    return replace(page, notice=notice, runs=run_list(bench, visitor, shown.run))


def _page(result: Result, shown: Shown, *, log: bool) -> Update:
    summary = result.summary
    pair = bool(summary.most_different)
    order = DIFFERENT if pair else WORST
    first = summary.most_different if pair else summary.worst
    tokens = sum(len(group) for group in (first,))
    found = Found(first[:SHOWN], max(tokens, summary.model.tokens), summary.texts)
    choice = Choice(order)
    return Update(
        figures=figures_html(summary, result.info),
        charts=_charts(summary, result.history, log=log),
        tokens=Tokens(tokens_html(found, choice, pair=pair), found.tokens, choice, pair),
        shown=shown,
        side="",
    )


def _charts(summary: Summary, history: tuple, *, log: bool, live: bool = False) -> dict[str, Chart]:
    names = names_of(summary)
    found = {}
    if history:
        found["running-mean"] = running_mean(history, names=names)
    if live:
        found["loss-histogram"] = histogram(summary, log=log)
        return found
    found |= {chart.name: chart for chart in charts(summary, names=names)}
    if log:
        found["loss-histogram"] = histogram(summary, log=log)
    return {name: found[name] for name in CHARTS if name in found}


def histogram(summary: Summary, *, log: bool) -> Chart:
    """The histogram of the loss, its counts on either kind of axis."""
    models = [figures for figures in (summary.model, summary.baseline) if figures is not None]
    return loss_histogram(models, names=names_of(summary), log=log)


def recounted(bench: Workbench, visitor: str, shown: Shown, *, log: bool) -> Chart | None:
    """The histogram of the run on the page once the reader has chosen the axis of its counts.

    None where no stored run is shown: one that is being measured is drawn anew as it goes on.
    """
    bench.keep_axis(visitor, log=log)
    if not shown.run:
        return None
    try:
        return histogram(bench.result(visitor, shown).summary, log=log)
    except FillmaskError:
        return None  # the run was deleted; its charts are still on the page


def chosen_tokens(
    bench: Workbench, visitor: str, shown: Shown, order: str, low: float | None, high: float | None
) -> Update:
    """The table of tokens for what the reader chose.

    Args:
        bench: the page's jobs and runs.
        visitor: who asks.
        shown: which run is on the page.
        order: what comes first.
        low: smallest loss under model A, in nats; None for any.
        high: largest; None for any.
    """
    if not shown.run:
        return Update()
    # No loss is below 0, whatever was typed.
    choice = Choice(order, max(0.0, low or 0.0), math.inf if high is None else max(0.0, high))
    try:
        found = bench.tokens(visitor, shown, choice)
        pair = len(bench.choices(visitor, shown)) > 1
    except FillmaskError as error:
        return Update(notice=notice_html("error", error_message(error)))
    pair = pair and (not found.tokens or found.tokens[0].baseline_nll_nats is not None)
    html = tokens_html(found, choice, pair=pair)
    return Update(tokens=Tokens(html, found.tokens, choice, pair), side="")


@dataclass(frozen=True)
class InExplore:
    """A sentence to open in Explore.

    Attributes:
        text: with one token hidden.
        model: reference of model A.
        words: the hidden word, to be scored there; blank for a part of a word.
    """

    text: str
    model: str
    words: str


def in_explore(bench: Workbench, visitor: str, shown: Shown, token: TokenExample) -> InExplore:
    """What Explore is to show for a token of the table.

    Raises:
        FillmaskError: if the run does not say which model it had, that cannot be loaded, or Explore
            cannot be told which it was.
    """
    (choice, *_) = bench.choices(visitor, shown)
    # How many threads measured changes nothing that a model says.
    options = {name: value for name, value in options_of(choice).items() if name != "threads"}
    if options and not bench.session.public:
        made = ", ".join(f"{name.replace('_', '-')} {value}" for name, value in options.items())
        raise OptionError(
            f"this run was made with {made}, which Explore cannot be told: click the row instead "
            "to see what this model says"
        )
    model = chosen_model(bench.session, choice)
    prompt = masked(token, model.vocabulary.mask_token, MAX_TEXT_CHARACTERS)
    return InExplore(prompt.text, choice["reference"], hidden_word(token))


def hidden_word(token: TokenExample) -> str:
    """The hidden token as a word that Explore can score; blank where it is a part of one."""
    before, after = token.text[: token.start], token.text[token.end :]
    hidden = token.text[token.start : token.end]
    inside = hidden[:1].isalnum() and before[-1:].isalnum()
    word = hidden.strip()
    return "" if inside or after[:1].isalnum() or "," in word else word


def side_by_side(
    bench: Workbench, visitor: str, shown: Shown, token: TokenExample
) -> Iterator[Update]:
    """What the models say of a token; says so while one is being loaded."""

    def work(tell) -> Update:
        try:
            views = bench.views(visitor, shown, token, tell)
            return Update(side=side_by_side_html(token, views, MAX_TEXT_CHARACTERS))
        except FillmaskError as error:
            return Update(side=notice_html("error", error_message(error)))

    for state in run_in_background(work):
        if isinstance(state, Done):
            yield state.result
        else:
            busy = notice_html("busy", state.message or "Asking the models…", state.fraction)
            yield Update(side=busy)


def run_list(bench: Workbench, visitor: str, chosen: str = "") -> RunList:
    """The stored runs."""
    listing = bench.runs(visitor)
    names = tuple(run.info.name for run in listing.runs)
    html = runs_html(listing.runs, listing.unreadable, chosen)
    return RunList(html, names, chosen if chosen in names else "")


def deleted(bench: Workbench, visitor: str, name: str) -> Update:
    """The page after a run was deleted."""
    try:
        gone = bench.delete(visitor, name)
    except FillmaskError as error:
        return Update(notice=notice_html("error", error_message(error)))
    return Update(
        notice=notice_html("hint", f"Run {gone} was deleted."), runs=run_list(bench, visitor)
    )
