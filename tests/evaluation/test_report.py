"""A run as a page: complete, self-contained, escaped, drawn by a real browser."""

import base64
import hashlib
import re

import stored_runs
from chromium import chromium
from table_model import TableModel, TableVocabulary, sample_texts

from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.runs import RunStore
from fillmask_ui.show.report import write_report

HOSTILE = 'the </script><script>document.title="owned"</script><b>cat</b> & "dog"'


class Hostile(TableVocabulary):
    """A vocabulary in which every token is markup."""

    def token(self, token_id):
        return "<img src=x onerror=alert(1)>" + super().token(token_id)


def record(tmp_path, baseline=None, model=None, texts=None):
    config = EvaluationConfig("pseudo-perplexity")
    texts = texts or sample_texts(40, seed=3)
    return stored_runs.record(RunStore(tmp_path / "runs"), model, texts, config, baseline)


def without_library(page):
    """The page less the chart library, which is the first script."""
    return re.sub(r"<script>.*?</script>", "", page, count=1, flags=re.DOTALL)


def test_the_page_asks_for_nothing_and_draws_every_chart(tmp_path):
    run = record(tmp_path, baseline=TableModel(1, noise=0.3))
    target = tmp_path / "report.html"
    write_report(run, target)
    requests, errors = [], []
    with chromium() as browser:
        page = browser.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(target.as_uri())
        page.wait_for_function("document.querySelectorAll('.main-svg').length > 0")
        drawn = page.locator(".js-plotly-plot").count()
        charts = page.locator('[role="img"]').count()
        axis = "document.getElementById('chart-loss-histogram')._fullLayout.yaxis"
        kinds = []
        for kind in ("log", "linear"):
            page.locator("#chart-loss-histogram .updatemenu-button", has_text=kind).click()
            kinds.append(page.evaluate(f"[{axis}.type, {axis}.title.text, {axis}.range[1]]"))
    assert requests == [target.as_uri()]
    assert errors == []
    assert drawn == charts
    assert [kind[:2] for kind in kinds] == [["log", "tokens (log scale)"], ["linear", "tokens"]]
    # The axis is scaled anew, to the logarithm of what it showed before.
    assert kinds[0][2] < 4 < kinds[1][2]


def test_texts_and_tokens_are_never_markup(tmp_path):
    model = TableModel(1, vocabulary=Hostile())
    run = record(tmp_path, model=model, texts=[HOSTILE, *sample_texts(30, seed=3)])
    write_report(run, tmp_path / "report.html")
    page = without_library((tmp_path / "report.html").read_text())
    assert "<img" not in page
    assert "<script>document.title" not in page
    assert "&lt;img src=x" in page


def test_a_small_page_names_the_library_that_a_browser_fetches(tmp_path):
    """The hash is that of the library inside a complete page."""
    run, small, whole = record(tmp_path), tmp_path / "small.html", tmp_path / "whole.html"
    write_report(run, small, from_cdn=True)
    write_report(run, whole)
    assert small.stat().st_size < 500_000 < 4_000_000 < whole.stat().st_size
    (address, digest) = re.search(
        r'<script src="(.*?)" integrity="sha256-(.*?)"', small.read_text("utf-8")
    ).groups()
    assert re.fullmatch(r"https://cdn\.plot\.ly/plotly-[\d.]+\.min\.js", address)
    code = re.search(r"<script>(.*?)</script>\n", whole.read_text("utf-8"), re.DOTALL)[1]
    assert base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() == digest
