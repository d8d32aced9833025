"""A token of a run as the page shows it: what the model read, and the sentence with it alone."""

from dataclasses import replace

import numpy as np
import pytest
from explore_page import sent
from stored_runs import record
from table_model import TableModel, letter_vocabulary

from fillmask_ui.errors import DataError, FillmaskError, ModelError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.masking import MaskRecipe
from fillmask_ui.models import ModelStore
from fillmask_ui.runs import RunStore, prepare_info, start
from fillmask_ui.runs.tokens import MeasuredToken, TokenPlace, measured_tokens
from fillmask_ui.ui.evaluate.tokens import side_by_side_html
from fillmask_ui.ui.explore.explore_state import Question
from fillmask_ui.ui.run_tokens import (
    alone,
    link_of,
    read_tokens,
    reading_values,
    replayed,
)
from fillmask_ui.ui.session import Session
from fillmask_ui.unmasking import UnmaskingOptions

TEXTS = ["the cat sat on the old mat and jumped quickly.", "the dog ran [MASK] a river"]
MIXED = EvaluationConfig(recipe=MaskRecipe(0.7, 0.4, 0.3, 0.3), seed=3)
PSEUDO = EvaluationConfig("pseudo-perplexity")
WITHIN = EvaluationConfig("pseudo-perplexity", within_word=True)
CHOICES = {"model": {"reference": "table"}, "baseline": {"reference": "noisy"}}


def session_of(*models, public=False):
    known = dict(zip(("table", "noisy"), models, strict=False))

    def load(choice, **_):
        if choice.reference not in known:
            raise ModelError(f"no model {choice.reference!r}")
        return known[choice.reference]

    return Session(ModelStore(loader=load), "table", public=public)


def recorded(root, config=MIXED, model=None, baseline=None):
    store, model = RunStore(root), model or TableModel(1)
    info = prepare_info(config, model, baseline=baseline, choices=CHOICES)
    with start(store, info) as recorder:
        list(recorder.measure(model, TEXTS, baseline=baseline))
    return store, store.open(recorder.name)


def tokens_of(root, *options):
    """Every token of the first text, as its run asked for it."""
    store, run = recorded(root, *options)
    places = [TokenPlace(run.info.name, 0, int(col)) for col in run.row(0).cols]
    return [measured_tokens(store, place)[0] for place in places]


def test_a_text_that_was_filled_is_read_as_it_stood_in_that_step(tmp_path):
    config = EvaluationConfig("unmasking", hidden_share=0.6)
    model = TableModel(1)
    tokens = tokens_of(tmp_path, config, model)
    steps = [int(token.scores.steps[token.entry]) for token in tokens]
    assert sorted(steps) == list(range(1, len(tokens) + 1))  # one token a step
    for token, step in zip(tokens, steps, strict=True):
        again = replayed(session_of(model), token, top_k=3)
        assert not again.changed
        values = reading_values(again)
        hidden = [own for own in values["tokens"] if own.number]
        assert values["chosen"].step == step
        assert sorted(own.state for own in hidden) == sorted(
            ["mask", *["written"] * (step - 1), *["along"] * (len(tokens) - step)]
        )
        assert all(own.shown == own.written for own in hidden if own.state == "written")
        html = side_by_side_html(session_of(model), [token])
        assert f"The run hid {len(tokens)} tokens of this text and filled them" in html
        assert f"Step {step} wrote “{values['chosen'].written}”." in html
        assert html.count("in place of") == step - 1


def test_a_text_of_which_tokens_were_hidden_again_says_that_it_cannot_be_shown(tmp_path):
    config = EvaluationConfig("unmasking", hidden_share=0.6, decoding=UnmaskingOptions(remask=1))
    model = TableModel(1)
    with pytest.raises(DataError, match="cannot be shown"):
        replayed(session_of(model), tokens_of(tmp_path, config, model)[0], top_k=3)


def test_a_reading_shows_what_the_model_read(tmp_path):
    model = TableModel(1)
    session = session_of(model)
    found = tokens_of(tmp_path)
    again = replayed(session, found[0], top_k=3)
    tokens = read_tokens(again)
    row = found[0].row
    assert [model.vocabulary.tokens.index(t.token) for t in tokens] == again.reading.ids.tolist()
    hidden = [t for t in tokens if t.number]
    assert [t.position for t in hidden] == row.cols.tolist()
    assert [t.nll_nats for t in hidden] == row.scores.nll_nats.tolist()
    assert [t.true for t in hidden] == [token.removeprefix("##") for token in row.tokens]
    assert {t.state for t in hidden} == {"mask", "random", "unchanged"}
    for token in hidden:
        true = row.tokens[token.number - 1]
        shown = {"mask": "[MASK]", "unchanged": true}.get(token.state, token.token)
        assert token.token == shown
    values = reading_values(again)
    assert sum(values["counts"].values()) == values["hidden"] == len(row.cols)
    assert values["chosen"] == hidden[0]
    assert [t.position for t in read_tokens(again, around=2)] == [*range(row.cols[0] + 3)][-5:]


@pytest.mark.parametrize("config", [PSEUDO, WITHIN])
def test_a_token_with_a_reading_of_its_own(tmp_path, config):
    session = session_of(TableModel(1))
    found = tokens_of(tmp_path, config)
    jump = next(token for token in found if token.row.tokens[token.entry] == "jump")
    states = {t.token: t.state for t in read_tokens(replayed(session, jump, top_k=1))[-6:]}
    shown = [t.state for t in read_tokens(replayed(session, jump, top_k=1)) if t.number]
    assert shown.count("mask") == 1
    assert shown.count("along") == (1 if config is WITHIN else 0)
    assert states["."] == "apart"


def test_the_figures_are_those_of_the_run_to_the_last_digit(tmp_path):
    session = session_of(TableModel(1))
    for token in tokens_of(tmp_path):
        # As if the batch of the run had rounded otherwise.
        shifted = replace(token.scores, nll_nats=np.nextafter(token.scores.nll_nats, 99))
        again = replayed(session, replace(token, scores=shifted), top_k=3)
        (true,) = again.mask.scored
        assert true.nll_nats == shifted.nll_nats[token.entry]
        assert true.rank == token.scores.ranks[token.entry]
        assert again.mask.entropy_nats == token.scores.entropy_nats[token.entry]
        assert not again.changed


def test_a_model_that_has_changed_is_said(tmp_path):
    token = tokens_of(tmp_path)[0]
    again = replayed(session_of(TableModel(2)), token, top_k=3)
    assert "has changed since" in again.changed
    assert again.mask.scored[0].nll_nats == token.scores.nll_nats[token.entry]
    other = session_of(TableModel(1, vocabulary=letter_vocabulary()))
    with pytest.raises(DataError, match="replaced since"):
        replayed(other, token, top_k=3)


def test_a_model_that_is_gone_is_said_with_the_run(tmp_path):
    token = tokens_of(tmp_path)[0]
    with pytest.raises(ModelError, match=f"run {token.info.name} measured table-1-0, .*no model"):
        replayed(session_of(), token, top_k=3)


def test_a_run_of_a_program_says_no_model(tmp_path):
    run = record(RunStore(tmp_path), texts=TEXTS)
    token = measured_tokens(RunStore(tmp_path), TokenPlace("latest", 0, int(run.row(0).cols[0])))[0]
    with pytest.raises(FillmaskError, match="does not say how its model was asked for"):
        replayed(session_of(TableModel(1)), token, top_k=3)


def measured_in(text, start, end):
    """A token at these characters of a text, for what needs no more of it."""
    row = recorded_row(text, start, end)
    return MeasuredToken(None, "model", row, None, 0)


def recorded_row(text, start, end):
    from fillmask_ui.evaluation.rows import MaskedText

    spans = np.array([[start, end]])
    ids, kinds = np.zeros(0, np.int64), np.zeros(1, np.uint8)
    return MaskedText(0, text, 0, False, 0, ids, ids, ("",), kinds, ids, kinds, spans)


@pytest.mark.parametrize(
    ("text", "start", "end", "masked", "word"),
    [
        ("the cat sat", 4, 7, "the [MASK] sat", "cat"),
        ("the cat sat", 3, 7, "the [MASK] sat", "cat"),
        ("quickly", 0, 5, "[MASK]ly", ""),
        ("quickly", 5, 7, "quick[MASK]", ""),
        ("a, b", 1, 2, "a[MASK] b", ","),
        ("end.", 3, 4, "end[MASK]", "."),
        ("a ___ cat", 6, 9, "a [MASK] [MASK]", "cat"),
    ],
)
def test_a_token_alone_is_one_mask_and_its_word_unless_it_is_a_part(text, start, end, masked, word):
    found = alone(measured_in(text, start, end), "[MASK]")
    assert (found.text, found.hidden) == (masked, word)
    assert found.number == masked[: masked.rindex("[MASK]")].count("[MASK]")


def test_a_long_text_is_cut_around_the_token():
    found = alone(measured_in("a" * 5000 + " cat " + "b" * 5000, 5001, 5004), "[MASK]", 100)
    assert found.text == "a" * 49 + " [MASK] " + "b" * 49


def test_a_link_says_which_token():
    place = TokenPlace("r", 3, 7, "q", 1)
    assert link_of(place) == {"run": "r", "run_b": "q", "example": "3", "token": "7", "side": "B"}
    assert Question.read(sent(link_of(place))).run == place
