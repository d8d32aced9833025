"""The Explore tab, from plain inputs: answers, their memory, files; text is always text."""

import gc
import math
import re
import tracemalloc

import numpy as np
import pytest
import torch
from explore_page import session_of
from html_tags import Tags
from hypothesis import given
from hypothesis import strategies as st
from table_model import WORDS, TableModel

from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.filling import fill, score_candidate_at, score_candidates
from fillmask_ui.models import ModelStore
from fillmask_ui.show.render import _ENVIRONMENT
from fillmask_ui.ui.components import answered
from fillmask_ui.ui.explore import downloads
from fillmask_ui.ui.explore.downloads import ALL_TOKENS, download
from fillmask_ui.ui.explore.explore_state import Question
from fillmask_ui.ui.explore.prediction_view import answer
from fillmask_ui.ui.explore.sentence_strip import Draft
from fillmask_ui.ui.session import MAX_CHARACTERS, Answers, Session

TEXT = "the cat [MASK] on the mat."
TWO = "the [MASK] sat on the [MASK]."


def test_a_public_page_loads_only_what_it_offers():
    loads = []

    def load(choice, **_):
        loads.append(choice.reference)
        return TableModel()

    public = Session(ModelStore(loader=load), "table", public=True)
    for reference in ("/etc", "../secret", "org/large-model", "embedded@x"):
        reply = answer(public, Question(TEXT, model=reference))
        assert reply.kind == "error"
        assert "not offered" in reply.notice
    assert loads == []
    assert answer(public, Question(TEXT, model="")).kind == "none"
    assert loads == ["table"]


def test_one_model_call_serves_a_change_of_unit_and_of_mask():
    model = TableModel()
    session = session_of(table=model)
    answer(session, Question(TWO))
    calls = len(model.calls)
    answer(session, Question(TWO, unit="bits", selected=1))
    assert len(model.calls) == calls
    answer(session, Question(TWO, top_k=3))
    assert len(model.calls) > calls


@pytest.mark.parametrize(
    "ask",
    [
        lambda session, words: session.ask(
            TableModel(), fill, TEXT, top_k=5, candidates=tuple(words)
        ),
        lambda session, words: session.ask(
            TableModel(), score_candidates, TEXT, candidates=tuple(words)
        ),
        lambda session, words: session.ask(TableModel(), score_candidate_at, TEXT, words[0], 0),
    ],
)
def test_words_that_would_take_hours_are_refused(session, monkeypatch, ask):
    ask(session, ["walked"])
    monkeypatch.setattr("fillmask_ui.ui.session.MAX_WORK", 10)
    with pytest.raises(OptionError, match=r"too many|fewer"):
        ask(session, ["talked"])


def test_a_fault_of_the_page_is_told_and_logged(session, capsys):
    def broken(session, values):
        raise KeyError("rows")

    assert "bug of fillmask-ui: KeyError" in answered(broken, session, {})["notice"]
    assert "Traceback" in capsys.readouterr().err


def test_a_file_of_all_tokens_has_fewer_masks_on_a_public_page(monkeypatch):
    public = session_of(public=True, table=TableModel())
    size = TableModel().signature.vocabulary_size
    monkeypatch.setattr(downloads, "PUBLIC_LINES", 2 * size + 1)
    assert download(public, Question(TWO, label=ALL_TOKENS))["text"].count("\n") == 2 * size + 1
    with pytest.raises(FillmaskError, match="has at most 2 on this page"):
        download(public, Question(f"{TWO} {TWO}", label=ALL_TOKENS))
    monkeypatch.setattr(downloads, "PUBLIC_LINES", 1)
    assert download(public, Question(TEXT, label=ALL_TOKENS))["text"]


def text_html(text: str) -> str:
    """As every template shows a text."""
    return _ENVIRONMENT.from_string("{{ text }}").render(text=text)


@given(st.text(alphabet=st.characters()))
def test_any_text_can_be_sent_and_reads_as_itself(text):
    html = text_html(text)
    html.encode("utf-8")
    assert not re.search(r"[<>\"'\x00-\x1f\u202e]", html)
    clean = "".join(c for c in text if not text_html(c).startswith(("⟨", "\\u")))
    if clean == text and text.isprintable():
        assert Tags(html).text == text


def test_the_loss_of_a_hidden_word_is_torchs_cross_entropy(session):
    """Checked against torch.nn.functional.cross_entropy on the model's logits."""
    draft = Draft(TEXT, ("sat",))
    reply = answer(session, Question(TEXT, draft=draft))
    model = TableModel()
    encoding = model.vocabulary.encode(TEXT)
    position = encoding.ids.index(model.vocabulary.mask_id)
    ids = np.array([encoding.ids])
    logits = model.logits_at(ids, np.ones_like(ids), np.array([0]), np.array([position]))
    loss = torch.nn.functional.cross_entropy(
        torch.tensor(logits, dtype=torch.float64), torch.tensor([model.vocabulary.ids["sat"]])
    )
    assert f"loss {float(loss):.3f} nats" in reply.html["stats"]
    in_bits = answer(session, Question(TEXT, draft=draft, unit="bits"))
    assert f"loss {float(loss) / math.log(2):.3f} bits" in in_bits.html["stats"]
    assert "sat (hidden word)" in reply.html["scored"]


KEPT_BYTES = 5_000_000


def test_long_texts_leave_no_more_than_the_bound(monkeypatch):
    """Each leaves about 0.1 MB, whose candidates are few: without a bound on texts 12 MB."""
    monkeypatch.setattr("fillmask_ui.ui.session.MOST_BYTES", 2_600_000)
    model = TableModel()
    model.max_tokens = 10_000
    session = session_of(table=model)

    def type_text(number: int) -> None:
        words = [WORDS[(number * position) % len(WORDS)] for position in range(1, 600)]
        session.ask(model, fill, f"{number} [MASK] {' '.join(words)}", top_k=10)
        try:
            session.ask(model, fill, f"{number} [MASK] " + "a" * MAX_CHARACTERS, top_k=10)
        except FillmaskError as error:
            assert "characters" in str(error)

    type_text(0)
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(1, 141):
            type_text(number)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 1_000_000 < grown < KEPT_BYTES


def test_an_answer_beyond_the_bound_takes_the_place_of_all_others(monkeypatch):
    monkeypatch.setattr("fillmask_ui.ui.session.MOST_BYTES", 5_000)
    answers, vectors = Answers(), np.zeros(1_000)  # 8,000 bytes
    answers.keep(("small",), 1)
    answers.keep(("vectors",), vectors)
    assert answers.get(("vectors",)) is vectors
    assert answers.get(("small",)) is None
    answers.keep(("small",), 1)
    assert answers.get(("vectors",)) is None
