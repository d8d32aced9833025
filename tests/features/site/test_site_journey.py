"""The page without a server: a static host, a browser, the model inside of it."""

import json
import math
import re
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from accessibility import accessible
from playwright.sync_api import expect
from tiny_models import EVERY_FAMILY, texts_for

from fillmask_ui import load_model
from fillmask_ui.errors import ModelError
from fillmask_ui.features.site.build import build, freeze
from fillmask_ui.files import asset
from fillmask_ui.filling import fill, surprisal
from fillmask_ui.ui.explore.examples import EXAMPLES

READY = "#stage[aria-busy=false]"
PREDICT = """texts => Promise.all(texts.map(
    (text) => window.fillmask.predict(text, { top_k: 100 }).catch((error) => error.message)))"""


class Host(SimpleHTTPRequestHandler):
    """A static host that says nothing."""

    def log_message(self, *_):
        pass


@contextmanager
def hosting(folder):
    """The address of a folder that a plain server of files serves."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Host, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


def written(files, folder):
    for name, content in files.items():
        (folder / name).write_bytes(content)


@pytest.fixture(scope="session")
def folder(once, packed):
    """The page with the model that it has by default."""
    return once.folder("site", lambda own: written(build("embedded:int8", "Words at masks"), own))


@pytest.fixture
def site(folder):
    with hosting(folder) as url:
        yield url


@pytest.fixture
def open_site(visit, site):
    return partial(visit, url=site, ready=READY, bypass_csp=True)


def hundred(model):
    """A sentence of each of a hundred embedded texts, the word in its middle hidden."""
    masked = []
    for line in (asset("texts") / "embedded.jsonl").read_text("utf-8").splitlines():
        sentence = re.match(r"[^.!?]*[.!?]", json.loads(line)["text"])
        words = re.findall(r"\w+", sentence[0]) if sentence else []
        if len(words) > 3:
            middle = words[len(words) // 2]
            mask = model.vocabulary.mask_token
            masked.append(re.sub(rf"\b{middle}\b", mask, sentence[0], count=1))
    assert len(masked) >= 100
    return masked[:100]


def apart(page, model, texts):
    """Differences of the ten best probabilities in Python, [N, 10], and the equal first guesses."""
    by_browser, differences, same = page.evaluate(PREDICT, texts), [], 0
    for text, there in zip(texts, by_browser, strict=True):
        (here, *_) = fill(model, text, top_k=10).masks
        (mask, *_) = there["masks"]
        assert (there["text"], mask["position"]) == (text, here.position)
        known = {own["token_id"]: own for own in mask["candidates"]}
        same += mask["candidates"][0]["token_id"] == here.candidates[0].token_id
        assert math.isclose(mask["entropy_nats"], here.entropy_nats, abs_tol=0.3)
        for own in here.candidates:
            other = known[own.token_id]
            assert (other["token"], other["word"]) == (own.token, own.word)
            assert math.isclose(other["nll_nats"], -math.log(other["probability"]), abs_tol=1e-9)
            differences.append(abs(other["probability"] - own.probability))
    return np.array(differences).reshape(len(texts), -1), same


def test_a_hundred_sentences_have_the_numbers_of_python(open_site):
    """Rounding of activations to 8 bits tips over at other places in WebAssembly."""
    model = load_model("embedded:int8")
    differences, same = apart(open_site(), model, hundred(model))
    assert same >= 98
    assert np.quantile(differences.max(axis=1), 0.9) < 2e-2  # 0.99 on processors with VNNI
    assert differences.max() < 5e-2


def test_full_precision_has_the_digits_of_python(visit, once, packed):
    folder = once.folder("site-full", lambda own: written(build("embedded", "Full"), own))
    with hosting(folder) as url:
        page = visit(url=url, ready=READY, bypass_csp=True)
        model = load_model("embedded")
        differences, same = apart(page, model, hundred(model))
    assert same == 100
    assert differences.max() < 1e-5


@pytest.mark.parametrize("family", EVERY_FAMILY)
def test_a_tokenizer_of_each_kind_reads_like_python(visit, tiny_models, packed, tmp_path, family):
    reference = str(tiny_models.folder(family))
    if family == "esm":
        with pytest.raises(ModelError, match="runs in Python alone"):
            build(reference, family)
        return
    model = load_model(reference)
    written(build(reference, family), tmp_path)
    mask = model.vocabulary.mask_token
    texts = [*texts_for(family, mask), f"Don't stop, it's {mask}!"]
    plain = [
        *("She walked to the café, didn't she?", "The cat sat on the mat."),
        *("Two  blanks (a, b).", "The cat: 今日は." if family == "roberta" else "A (cat)."),
    ]
    with hosting(tmp_path) as url:
        page = visit(url=url, ready=READY, bypass_csp=True)
        for text in texts:
            (there,) = page.evaluate(PREDICT, [text])
            here = fill(model, text, top_k=100).to_dict()
            for one, other in zip(there["masks"], here["masks"], strict=True):
                assert one["position"] == other["position"]
                for field in ("probability", "nll_nats"):
                    both = ([own[field] for own in side["candidates"]] for side in (one, other))
                    assert [*next(both)] == pytest.approx([*next(both)], abs=1e-4)
        for text in plain:
            there = page.evaluate("text => window.fillmask.surprisal(text)", text)
            here = [own.to_dict() for own in surprisal(model, text).words]
            for one, other in zip(there["words"], here, strict=True):
                places = ("word", "start", "end")
                assert [one[own] for own in places] == [other[own] for own in places]
                ids = ([part["token_id"] for part in own["parts"]] for own in (one, other))
                assert next(ids) == next(ids)
                assert one["nll_nats"] == pytest.approx(other["nll_nats"], abs=1e-4)


def test_a_reader_hides_a_word_guesses_and_asks_about_words(open_site, site):
    page = open_site(height=800)
    strip, bars = page.locator("#strip"), page.locator("#bars .fm-bar-row")
    sentence = page.get_by_label("Sentence").first
    expect(sentence).to_have_value(EXAMPLES[0].text)
    expect(page.get_by_text("all other words")).to_be_in_viewport()
    accessible(page)
    # A click on a word hides it; its loss is known, and Back brings it back.
    sentence.fill("The cat sat on the mat.")
    expect(page.locator("#found")).to_contain_text("Most surprising")
    expect(page.locator("#found .fm-along-list > li")).to_have_count(7)
    accessible(page)
    strip.get_by_role("button", name="mat").click()
    expect(sentence).to_have_value("The cat sat on the [MASK].")
    expect(strip).to_contain_text(re.compile("(✓|was) mat"))
    assert "text=" in page.url
    page.go_back()
    expect(sentence).to_have_value("The cat sat on the mat.")
    page.go_forward()
    # A bar writes its word; words of several tokens are scored.
    page.get_by_role("button", name="Options").click()
    page.get_by_label("Candidate words").fill("sofa, souvenirs, qqq☃")
    expect(page.locator("#notice")).to_contain_text("'qqq☃' cannot be spelled")
    expect(bars.filter(has_text="souvenirs")).to_be_visible()
    model, text = load_model("embedded:int8"), "The cat sat on the [MASK]."
    (here,) = fill(model, text, candidates=["souvenirs"]).masks[0].scored
    there = page.evaluate(
        "text => window.fillmask.predict(text, { candidates: ['souvenirs'] })", text
    )["masks"][0]["scored"][0]
    assert [part["token_id"] for part in there["parts"]] == [part.token_id for part in here.parts]
    assert there["nll_nats"] == pytest.approx(here.nll_nats, abs=0.5)
    page.get_by_label("Candidate words").fill("")
    page.get_by_role("button", name="Details").click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="JSON").click()
    file = json.loads(saved.value.path().read_text("utf-8"))
    assert file["masks"][0]["candidates"][0]["rank"] == 1
    # Guess first: nothing of the model is shown before.
    page.get_by_role("radio", name="Guess first").click()
    expect(page.locator("#bars")).to_be_hidden()
    page.get_by_label("Word", exact=True).fill("mat")
    page.get_by_label("How many").fill("3")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="Reveal").click()
    expect(page.get_by_text("The class wins: loss")).to_be_visible()
    expect(page.get_by_label("Losses on the true word")).to_contain_text("0.000 nats")
    accessible(page)
    page.get_by_role("radio", name="Predict").click()
    first = bars.first.locator(".fm-row-name").inner_text()
    bars.first.get_by_role("button").click()
    expect(sentence).to_have_value(f"The cat sat on the {first}.")
    # What the model cannot take is said.
    sentence.fill("word " * 600 + "[MASK]")
    expect(page.locator("#notice")).to_contain_text("this model takes at most 512")


def test_on_a_phone_by_keyboard_in_the_dark(open_site):
    page = open_site({"text": "Paris is in [MASK]."}, width=390, height=844, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("window.fillmask.dark()")
    accessible(page, both_themes=False)
    page.locator("#strip button").first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Sentence").first).to_have_value("[MASK] is in [MASK].")
    page.keyboard.press("Control+z")
    expect(page.get_by_label("Sentence").first).to_have_value("Paris is in [MASK].")
    page.get_by_label("Sentence").first.fill("")
    page.keyboard.type("Snow is [MASK].", delay=150)  # each letter is answered
    expect(page.locator(".fm-bars")).to_contain_text("white")
    expect(page.locator("body")).not_to_contain_text("The hidden word")
    page.get_by_role("button", name="light theme").click()
    assert not page.evaluate("window.fillmask.dark()")


def test_the_second_visit_needs_no_network_and_the_policy_of_the_page_holds(visit, folder):
    with hosting(folder) as url:
        page = visit(url=url, ready=READY)
        page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    page.reload()  # the host is gone
    page.wait_for_selector(READY)
    page.get_by_label("Sentence").first.fill("Snow is [MASK].")
    expect(page.locator("#strip .fm-mask")).to_be_visible()
    expect(page.locator("#bars")).to_contain_text("white")


def test_embedded_in_a_slide_the_sentence_and_its_bars_stand_alone(open_site):
    page = open_site({"embed": "1", "text": "Snow is [MASK]."}, width=640, height=480)
    expect(page.locator("#bars")).to_contain_text("all other words")
    for part in ("#sentence", "#modes", "#examples", "footer", "#theme"):
        expect(page.locator(part)).to_be_hidden()
    accessible(page)


def test_a_missing_and_a_wrong_model_are_said(visit, folder, tmp_path):
    for name in folder.iterdir():
        (tmp_path / name.name).symlink_to(name)
    model = tmp_path / "model.onnx.gz"
    for wrong, notice in (
        (b"no model", "cannot be read as ONNX"),
        (None, "cannot be loaded (404)"),
    ):
        model.unlink()
        if wrong:
            model.write_bytes(wrong)
        with hosting(tmp_path) as url:
            page = visit(url=url, ready="#notice [role=alert]", script="delete window.caches")
            expect(page.locator("#notice")).to_contain_text(notice)
            page.context.close()


def test_a_frozen_page_holds_its_numbers_without_scripts(browser, tmp_path):
    texts = ["The cat sat on the [MASK].", "The cat sat on the mat."]
    files = freeze("embedded:int8", "For a blog", texts)
    (content,) = files.values()
    assert len(content) < 100_000
    assert b"<script" not in content
    written(files, tmp_path)
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto((tmp_path / "index.html").as_uri())
    (mask,) = fill(load_model("embedded:int8"), texts[0], top_k=10).masks
    for own in mask.candidates:
        expect(page.locator("section").first).to_contain_text(own.word)
    expect(page.locator("section").last).to_contain_text("Most surprising")
    context.close()
