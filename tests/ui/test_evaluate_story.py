"""The story of an evaluation: plain sentences with the right numbers, and its worst tokens."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from evaluate_page import finish, own_page_jobs, rows_of, uploaded
from page_tags import Tags
from table_model import TableModel

from fillmask_ui.evaluation import EvaluationConfig, summarize
from fillmask_ui.intervals import Interval
from fillmask_ui.runs import prepare_info
from fillmask_ui.show.sentences import story_text
from fillmask_ui.show.words import TokenNames
from fillmask_ui.ui.evaluate import result_view, tab, view
from fillmask_ui.ui.evaluate.evaluation_jobs import Selection
from fillmask_ui.ui.evaluate.tokens import DIFFERENT, TokenFilter, find_tokens, tokens_html

NAMES = ("A", "B")


def test_one_model_in_a_sentence():
    """Two texts; the geometric mean of 1/4 and 1/9 is 1/6, by hand."""
    summary = summarize(rows_of())
    model = replace(summary.model, tokens=2, mean_nll_nats=-math.log(1 / 4 * 1 / 9) / 2)
    assert story_text(replace(summary, texts=2, model=model), ("A",)) == (
        "On 2 texts, A gave the 2 hidden words and word parts 16.7% on average (the geometric "
        "mean): a loss of 1.79 nats, as unsure as among 6.0 equal words."
    )


def test_which_of_two_is_better_and_by_how_much(pair):
    summary = summarize(pair)
    own, base = (
        np.concatenate([getattr(row, which).nll_nats for row in pair])
        for which in ("scores", "baseline")
    )
    gap = own.mean() - base.mean()
    told = story_text(summary, NAMES)
    assert f"A is {'worse' if gap > 0 else 'better'} than B" in told
    assert f"loss of {own.mean():.3f} nats is {abs(gap):.3f} " in told
    shares = [100 * np.exp(-losses.mean()) for losses in (own, base)]
    told_shares = map(float, re.findall(r"([\d.]+)%", told))
    assert [*told_shares] == pytest.approx(shares, rel=0.05)


@pytest.mark.parametrize(
    ("change", "interval", "said"),
    [
        (0.02, Interval(0.01, 0.03, "t"), "A is worse than B: .* larger. That is hardly chance"),
        (-0.02, Interval(-0.03, -0.01, "t"), "A is better than B: .* smaller. That is hardly"),
        (0.02, Interval(-0.01, 0.05, "t"), "That can be chance: .* includes no change at all"),
        (0.02, None, "With so few texts, nobody can say"),
        (0.0, Interval(0.0, 0.0, "t"), "A and B have the same loss"),
        (math.nan, None, "a mean loss is infinite"),
    ],
)
def test_a_difference_that_can_be_chance_is_called_so(pair, change, interval, said):
    summary = summarize(pair)
    comparison = replace(summary.comparison, difference_nats=change, interval=interval)
    assert re.search(said, story_text(replace(summary, comparison=comparison), NAMES))


def test_two_tokenizers_are_told_apart_by_character(pair):
    summary = summarize(pair)
    comparison = replace(summary.comparison, unit="character", difference_nats=0.25)
    told = story_text(replace(summary, comparison=comparison), NAMES)
    assert "its loss is 0.250 nats a character larger" in told
    assert "geometric" not in told


def test_what_is_not_done_is_told_as_so_far(pair):
    info = prepare_info(EvaluationConfig(), TableModel(1), baseline=TableModel(1))
    summary = summarize(pair)
    assert f"On {summary.texts} texts, A (" in result_view.figures_html(summary, info)
    running = result_view.figures_html(summary, info, final=False, so_far="so far, 12 of 60 texts")
    assert f"So far, on {summary.texts} texts, A (" in running
    assert "so far, 12 of 60 texts:</b>" in running


def test_an_infinite_loss_is_said():
    summary = summarize(rows_of())
    broken = replace(summary, model=replace(summary.model, mean_nll_nats=math.inf))
    assert "no chance at all" in story_text(broken, ("A",))


def test_every_result_names_its_models(pair):
    info = prepare_info(EvaluationConfig(), TableModel(1), baseline=TableModel(1, noise=0.3))
    shown = Tags(result_view.figures_html(summarize(pair), info)).text
    for model in (info.model, info.baseline):
        assert shown.count(f"{model['name']} · {model['precision']}") == 2


def test_the_worst_three_are_the_first_of_the_table(pair):
    wanted = TokenFilter(DIFFERENT)
    found = find_tokens(pair, wanted)
    source = result_view.worst_html(found, wanted, pair=True)
    assert re.findall(r'<li data-key="(.*?)"', source) == ["show:0", "show:1", "show:2"]
    assert re.findall(r'<button[^>]*data-key="(.*?)"', source) == ["open:0", "open:1", "open:2"]
    losses = [float(value) for value in re.findall(r'data-value="([^"]+)"', source)]
    assert losses == [
        loss for token in found.tokens[:3] for loss in (token.nll_nats, token.baseline_nll_nats)
    ]
    assert f"All tokens ({found.count:,})" in source


def test_a_choice_of_losses_can_be_taken_back_beside_its_tokens(pair):
    wanted = TokenFilter(low=2.0, high=3.0)
    assert "data-any-loss" in result_view.worst_html(find_tokens(pair, wanted), wanted, pair=False)
    none = TokenFilter(low=1e9)
    source = result_view.worst_html(find_tokens(pair, none), none, pair=False)
    assert "No token" in source
    assert "data-any-loss" in source
    assert "data-any-loss" not in result_view.worst_html(find_tokens(pair, TokenFilter()),
                                                      TokenFilter(), pair=False)  # fmt: skip


def test_a_sentence_is_cut_between_words():
    text = "one two three four cat five six seven"
    token = replace(find_tokens(rows_of(), TokenFilter()).tokens[0], text=text, start=19, end=22)
    assert result_view.excerpt(token, around=9) == ("… four ", " five …")
    assert result_view.excerpt(token) == ("one two three four ", " five six seven")


def test_endings_have_one_name_and_show_their_token():
    token = find_tokens(rows_of(), TokenFilter()).tokens[0]
    ending = replace(token, text="freezes", start=5, end=7, token="##es", top_token="##ing")
    found = replace(find_tokens(rows_of(), TokenFilter()), tokens=(ending,))
    table = tokens_html(found, TokenFilter(), pair=False)
    assert ">…es</button>" in table
    assert ">…ing " in table
    worst = result_view.worst_html(found, TokenFilter(), pair=False)
    assert 'title="##ing">“…ing”' in worst
    for source in (table, worst):
        assert "##" not in re.sub(r'title="[^"]*"', "", source)
    bytes_ = TokenNames(["Ġthe", "ing"])
    assert [bytes_("Ġthe"), bytes_("ing"), bytes_("The", first=True)] == ["the", "…ing", "The"]


@pytest.fixture
def stored(tmp_path):
    page_jobs = own_page_jobs(tmp_path / "runs")
    names = [
        finish(page_jobs.begin(uploaded(tmp_path, model=m)))[-1].info.name
        for m in ("table", "noisy")
    ]
    return page_jobs, names


def test_a_link_opens_the_same_result(stored):
    page_jobs, names = stored
    for selection in (Selection(names[0]), Selection(*names)):
        page = view.stored(page_jobs, selection)
        (link,) = re.findall(r'data-link="([^"]+)"', page.figures)
        pairs = dict(part.split("=") for part in link.replace("&amp;", "&").split("&"))
        assert pairs.pop("tab") == "evaluate"
        assert view.linked(pairs) == selection
    assert view.linked({"tab": "evaluate"}) == Selection()
    assert "Unknown run" in view.stored(page_jobs, view.linked({"run": "gone"})).notice


class OwnNames(dict):
    """Parts that are known by their names alone."""

    def __missing__(self, name):
        return name


def test_the_main_chart_answers_whether_it_got_worse(stored):
    page_jobs, names = stored
    for selection, main in (
        (Selection(names[0]), "loss-histogram"),
        (Selection(*names), "differences"),
    ):
        page = view.stored(page_jobs, selection)
        values = tab.changes(OwnNames(), page)
        assert values["plot main"] is page.charts[main].figure
        shown = {name for name in tab.CHARTS if values[f"box {name}"].visible}
        assert shown == page.charts.keys() - {main}
