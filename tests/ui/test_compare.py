"""Explore with a second model, without a browser: what is shown, what is said, what is saved."""

import csv
import html
import io
import json
import re

import pytest
from table_model import TableModel, letter_vocabulary

from fillmask_ui.comparing import compare
from fillmask_ui.errors import ModelError
from fillmask_ui.filling import fill
from fillmask_ui.models import ModelStore
from fillmask_ui.show.words import first_words
from fillmask_ui.ui.components import answered
from fillmask_ui.ui.explore.explore_modes import download, joint
from fillmask_ui.ui.explore.model_contrast_view import compared
from fillmask_ui.ui.session import Session

MODELS = {
    "table": TableModel(seed=3),
    "noisy": TableModel(seed=3, noise=0.8),
    "letters": TableModel(seed=5, vocabulary=letter_vocabulary()),
}
TEXT = "the [MASK] and the [MASK] ran ."


def load(choice, **_):
    if choice.reference not in MODELS:
        raise ModelError(f"no model {choice.reference!r}")
    return MODELS[choice.reference]


@pytest.fixture
def session():
    return Session(ModelStore(loader=load), "table")


def asked(**values):
    return {"text": TEXT, "compare": "noisy", "top_k": 6, **values}


def words_of(markup):
    """Bar by bar: the word, its two widths and what is written beside it."""
    rows = re.findall(r"<li>(.*?)</li>", markup, re.DOTALL)
    return [
        (
            html.unescape(re.search(r'fm-bar-word"[^>]*>([^<]*?) ?<', row)[1]),
            [float(width) for width in re.findall(r"--p:([\d.]+)", row)],
            html.unescape(" ".join(re.sub(r"<[^>]+>", " ", row).split())),
        )
        for row in rows
    ]


@pytest.mark.parametrize("selected", [0, 1])
def test_the_bars_are_the_words_of_both_models(session, selected):
    found = compared(session, asked(selected=selected, words="mat, walking"))
    expected = compare(
        MODELS["table"], MODELS["noisy"], TEXT, top_k=6, candidates=["mat", "walking"]
    ).masks[selected]
    shown = words_of(found["html"])
    assert [widths for _, widths, _ in shown] == [
        [pytest.approx(p, abs=1e-5) for p in (row.probability, row.other_probability)]
        for row in expected.candidates
    ]
    for row, (name, _, text) in zip(expected.candidates, shown, strict=True):
        assert name.removeprefix("…") == row.word
        assert ("only B lists it" in text) == (row.other_listed and not row.listed)
        assert ("only A lists it" in text) == (row.listed and not row.other_listed)
        if row.rank and row.rank > row.other_rank:
            assert f"▲{row.rank - row.other_rank}" in text
            assert f"up, from {row.rank} to {row.other_rank}" in text
    first, second = (row.word for row in first_words(expected))
    story = html.unescape(re.sub(r"<[^>]+>", "", found["story"])).replace("…", "")
    assert story.startswith(f"At mask {selected + 1}: ")
    wanted = (
        f"first word flipped: {first} → {second}." if expected.flipped else f"both say {first}."
    )
    assert story.endswith(wanted)
    assert f"{expected.kl_nats:.3f} nats" in found["html"]


def test_a_click_writes_the_word_of_the_row(session):
    found = compared(session, asked(words="walking"))
    (mask, _) = compare(
        MODELS["table"], MODELS["noisy"], TEXT, top_k=6, candidates=["walking"]
    ).masks
    keys = re.findall(r'data-key="\w+:(\d+):(\d+)"', found["html"])
    single = [row for row in mask.candidates if row.token_id is not None]
    assert keys == [("0", str(row.token_id)) for row in single]
    assert len(single) == len(mask.candidates) - 1


def test_the_same_model_twice(session):
    found = compared(session, asked(compare="table"))
    assert "both say" in found["story"] and "are the same" in found["story"]
    assert "0.000 nats" in found["html"] and "▲" not in found["html"]


def test_the_hidden_word_stands_among_them(session):
    text = "the [MASK] sat"
    found = compared(session, asked(text=text, draft={"text": text, "hidden": ["river"]}))
    (own,) = fill(MODELS["table"], text, candidates=["river"]).masks[0].scored
    (other,) = fill(MODELS["noisy"], text, candidates=["river"]).masks[0].scored
    ((name, widths, _),) = [row for row in words_of(found["html"]) if "hidden word" in row[2]]
    assert name == "river"
    assert widths == pytest.approx([own.probability, other.probability], abs=1e-5)


def test_two_tokenizers_are_said_and_have_no_divergence(session):
    found = compared(session, asked(compare="letters"))
    assert "The models have different tokenizers" in found["html"]
    assert "KL(A" not in found["html"]
    assert any("–" in text for _, _, text in words_of(found["html"]))


def test_a_word_that_only_one_can_score_costs_nothing_else(session):
    words = "éclair, mat"
    found = compared(session, asked(words=words))
    assert "cannot be spelled" in found["html"]
    assert "mat" in [name for name, _, _ in words_of(found["html"])]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"compare": "nobody<b>"}, "No model 'nobody<b>'"),
        ({"text": "the cat"}, "The text has no mask"),
        ({"text": "the [MASK] " * 60}, "takes at most 64"),
    ],
)
def test_what_cannot_be_compared_is_said(session, values, says):
    found = answered(compared, session, asked(**values))
    assert found["kind"] == "error" and says in found["notice"]


def test_a_public_page_compares_what_it_offers(session):
    session.public = True
    while (found := answered(compared, session, asked(compare="noisy")))["kind"] == "busy":
        pass  # a busy machine takes its time to look
    assert found["kind"] == "error" and "not offered on this public page" in found["notice"]


def test_text_is_never_markup(session):
    text = "<img src=x onerror=alert(1)> [MASK] "
    found = compared(session, asked(text=text, words="<b>, cat"))
    assert "<img" not in found["html"] and "<b>," not in found["html"]


def test_joint_fillings_of_both(session):
    found = joint(session, asked())["html"]
    expected = compare(MODELS["table"], MODELS["noisy"], TEXT).joint
    assert found.count("<tr") == 1 + len(expected)
    for row in expected:
        assert f'data-value="{row.nll_nats}"' in found
        assert f'data-value="{row.other_nll_nats}"' in found
    # A second model that cannot be had leaves those of the first.
    alone = joint(session, asked(compare="nobody"))["html"]
    assert alone == joint(session, asked(compare=""))["html"] != found


def test_files_are_of_both(session):
    expected = compare(MODELS["table"], MODELS["noisy"], TEXT, top_k=6, candidates=["mat"])
    found = download(session, asked(label="JSON", words="mat"))
    assert json.loads(found["text"]) == json.loads(expected.to_json())
    rows = list(
        csv.DictReader(io.StringIO(download(session, asked(label="CSV", words="mat"))["text"]))
    )
    assert [(row["mask"], row["word"], float(row["other_probability"])) for row in rows] == [
        (str(number), row.word, row.other_probability)
        for number, mask in enumerate(expected.masks, start=1)
        for row in mask.candidates
    ]
    assert {row["model"] for row in rows} == {MODELS["table"].signature.name}
    whole = download(session, asked(label="CSV, all tokens"))["text"]
    rows = list(csv.DictReader(io.StringIO(whole)))
    alone = [
        {
            c.token_id: c.probability
            for c in fill(MODELS[name], TEXT, top_k=None).masks[0].candidates
        }
        for name in ("table", "noisy")
    ]
    of_first = [row for row in rows if row["mask"] == "1"]
    assert {int(row["token_id"]): float(row["probability"]) for row in of_first} == alone[0]
    assert {int(row["token_id"]): float(row["other_probability"]) for row in of_first} == alone[1]
    assert (
        "hours"
        in answered(download, session, asked(label="CSV, all tokens", compare="letters"))["error"]
    )


def test_loading_the_second_model_is_said_while_it_lasts():
    import threading

    gate = threading.Event()

    def slow(choice, **_):
        assert choice.reference == "table" or gate.wait(30)
        return MODELS[choice.reference]

    session = Session(ModelStore(loader=slow), "table")
    found = compared(session, asked())
    assert found["kind"] == "busy" and "fraction" in found
    gate.set()
    while (found := compared(session, asked()))["kind"] == "busy":
        pass
    assert found["kind"] == "none"
