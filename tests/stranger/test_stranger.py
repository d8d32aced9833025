"""A package from elsewhere adds a command, a metric, a tab and a mode; docs/extending.md shows it.

Its numbers are those of transformers' pipeline and of torch.
"""

import json
import os
import re
import sys
from pathlib import Path

import pytest
from chromium import BUILT, PATIENCE_MS, faults_of
from playwright.sync_api import expect
from recorded.program import ran
from serving import started
from tiny_models import quiet, reference_model, reference_tokenizer

from fillmask_ui.files import asset

HERE = Path(__file__).parent
SENTENCE = "The [MASK] sat on the mat."
TEXTS = ("The old man walked along the river.", "She drank a cup of hot tea.")


@pytest.fixture(scope="module")
def installed(once):
    """Variables of a process that finds this project, and the package in a folder of its own."""
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", str(HERE), "--target"]

    def install(folder):
        done = ran(*command, str(folder))
        assert done.returncode == 0, done.stderr

    folder = once.folder("stranger", install)
    return {"PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])}


@pytest.fixture(scope="module")
def page(installed, browser):
    """The page that it has a part in, open in a browser."""
    with started(env=os.environ | installed) as (url, _):
        context = browser.new_context()
        context.set_default_timeout(PATIENCE_MS)
        faults = faults_of(context)
        opened = context.new_page()
        opened.goto(url)
        opened.wait_for_selector(BUILT)
        yield opened
        context.close()
        assert not faults


@pytest.fixture(scope="module")
def letters():
    """What the page and the command print of `SENTENCE`, by the pipeline."""
    import torch
    from transformers import pipeline

    with quiet():
        fill_mask = pipeline("fill-mask", model=str(asset("model")), dtype=torch.float32)
        words = fill_mask(SENTENCE, top_k=100)
    total = sum(word["score"] for word in words)
    mean = sum(len(word["token_str"].strip()) * word["score"] for word in words) / total
    return f"{mean:.2f}"


def test_its_command_prints_what_the_pipeline_expects(installed, letters):
    done = ran(sys.executable, "-m", "fillmask_ui", "letters", SENTENCE, **installed)
    assert (done.returncode, done.stdout) == (0, f"{letters} letters\n"), done.stderr
    listed = ran(sys.executable, "-m", "fillmask_ui", "--help", **installed)
    assert re.search(r"letters +How many letters", listed.stdout)


def test_its_metric_is_torchs_cross_entropy_of_every_second_token(installed, tmp_path):
    import torch
    from torch.nn.functional import cross_entropy

    model, losses = reference_model(asset("model"), dtype=torch.float32), []
    tokenizer = reference_tokenizer(asset("model"))
    for text in TEXTS:
        ids = torch.tensor(tokenizer(text)["input_ids"])
        positions = range(2, len(ids) - 1, 2)  # [CLS] stands in front, [SEP] behind
        shown = ids.clone()
        shown[positions] = tokenizer.mask_token_id
        with torch.no_grad():
            logits = model(input_ids=shown[None]).logits[0]
        losses += cross_entropy(logits[positions], ids[positions], reduction="none").tolist()
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS))
    command = ("eval", "--metric", "every-other", "--dataset", str(path), "--json")
    runs = {"FILLMASK_UI_RUNS": str(tmp_path / "runs")}
    done = ran(sys.executable, "-m", "fillmask_ui", *command, **installed, **runs)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["metric"], found["tokens"]) == ("every-other", len(losses))
    assert found["mean_nll_nats"] == pytest.approx(sum(losses) / len(losses), abs=1e-4)


def test_its_tab_answers_and_evaluate_offers_its_metric(page, letters):
    page.get_by_role("tab", name="Letters", exact=True).click()
    sentence = page.get_by_label("Sentence with a mask")
    line = page.locator(".fm-say").locator("visible=true")
    sentence.press("Enter")
    expect(line).to_have_text(f"The model expects a word of {letters} letters.")
    sentence.fill("no mask")
    sentence.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("no mask")
    page.get_by_role("tab", name="Evaluate", exact=True).click()
    page.get_by_role("button", name="More", exact=True).locator("visible=true").first.click()
    expect(page.get_by_label("Every other token")).to_be_visible()


def test_its_mode_stands_beside_those_of_explore(page, letters):
    page.goto(f"{page.url.split('?')[0]}?mode=letters&text={SENTENCE}")
    mode = page.get_by_role("radio", name="Letters", exact=True)
    expect(mode).to_be_checked()
    expect(page.locator("#found .fm-say")).to_have_text(
        f"The model expects a word of {letters} letters."
    )


def test_the_document_shows_all_of_it():
    """Each file stands as it is below the text that names it, and all of them are small."""
    document = (HERE.parents[1] / "docs" / "extending.md").read_text("utf-8")
    paths = [*HERE.glob("*.toml"), *HERE.glob("*/**/*.py"), *HERE.glob("*/**/*.html")]
    files = {path.relative_to(HERE).as_posix(): path.read_text("utf-8") for path in paths}
    shown = {}
    for text, content in re.findall(r"(.*?)^```\w+\n(.*?)^```$", document, re.S | re.M):
        names = [name for name in re.findall(r"`([\w./-]+)`", text) if name in files]
        if names:
            shown[names[-1]] = content
    assert shown == {name: content for name, content in files.items() if content}
    code = [content for name, content in files.items() if not name.endswith(".toml")]
    assert sum(len(content.splitlines()) for content in code) < 80
