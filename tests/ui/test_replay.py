"""A token of a run: as the run saw it, under both models, or with nothing else hidden."""

import numpy as np
import pytest
from explore_page import MIXED, asked, nll_at, recorded, session_of
from table_model import TableModel, letter_vocabulary

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.runs import RunStore
from fillmask_ui.runs.tokens import TokenPlace, measured_tokens
from fillmask_ui.ui.evaluate.result_view import side_by_side_html
from fillmask_ui.ui.explore.explore_modes import SERVED
from fillmask_ui.ui.run_tokens import compared_readings, reading_values, replayed


def answer(session, state):
    return asked(SERVED["answer"], session, state)


WITHIN = EvaluationConfig("pseudo-perplexity", within_word=True)
SUFFIX = EvaluationConfig("suffix", suffix_tokens=3, max_tokens=7)


@pytest.mark.parametrize("config", [MIXED, WITHIN, SUFFIX], ids=lambda config: config.signature)
def test_every_token_has_the_figures_of_the_run_to_the_last_digit(tmp_path, config):
    session = session_of(tmp_path)
    rows, link = recorded(tmp_path, config)
    for index, row in rows.items():
        for entry, position in enumerate(row.cols.tolist()):
            place = {**link, "example": str(index), "token": str(position)}
            found = answer(session, {"text": "whatever", **place})
            assert found["kind"] == "none", found["notice"]
            assert found["truth"]["nll_nats"] == row.scores.nll_nats[entry]
            assert found["truth"]["rank"] == row.scores.ranks[entry]
            assert found["mask"]["entropy_nats"] == row.scores.entropy_nats[entry]
            best = found["mask"]["candidates"][0]
            assert best["id"] == row.scores.top_ids[entry]
            assert best["probability"] == row.scores.top_probabilities[entry]
            assert f"{row.scores.nll_nats[entry]:.4f} nats" in found["html"]["strip"]


def test_on_a_public_page_runs_are_their_makers_alone(tmp_path):
    session = session_of(tmp_path, public=True)
    rows, link = recorded(tmp_path / "ada1")
    place = {**link, "token": str(rows[0].cols[0])}
    assert answer(session, {**place, "visitor": "ada1"})["kind"] == "none"
    others = {"eve2": "known: none", "": "who is asking", "../ada1": "who is asking"}
    for visitor, told in others.items():
        found = answer(session, {**place, "visitor": visitor, "text": "a [MASK]"})
        assert found["kind"] == "error"
        assert told in found["notice"]


A, B = TableModel(1), TableModel(1, noise=0.3)


def both_of(session, root, link, position, side=0):
    """The token under either model, by the records alone."""
    place = TokenPlace(link["run"], 0, position, link.get("run_b", ""), side)
    met = measured_tokens(RunStore(root), place)
    first, second = (replayed(session, token, top_k=4) for token in (met[side], met[1 - side]))
    return first, second, compared_readings(session, first, second)


def test_the_losses_are_those_of_the_rows_and_all_else_is_of_the_tables(tmp_path):
    session = session_of(tmp_path)
    rows, link = recorded(tmp_path, baseline=B)
    row = rows[0]
    seen = row.ids.copy()
    seen[row.cols] = row.shown_ids
    for entry, position in enumerate(row.cols.tolist()):
        first, _, found = both_of(session, tmp_path, link, position)
        np.testing.assert_array_equal(first.reading.ids, seen)
        (true,) = [own for own in found.candidates if own.asked]
        assert true.token_id == true.other_token_id == row.true_ids[entry]
        assert true.nll_nats == row.scores.nll_nats[entry]
        assert true.other_nll_nats == row.baseline.nll_nats[entry]
        assert true.rank == row.scores.ranks[entry]
        assert true.other_rank == row.baseline.ranks[entry]
        for own in found.candidates:
            assert own.nll_nats == pytest.approx(nll_at(A, seen, position, own.token_id), abs=1e-6)
            other = nll_at(B, seen, position, own.token_id)
            assert own.other_nll_nats == pytest.approx(other, abs=1e-6)
        assert sum(own.listed for own in found.candidates) == 4
        assert sum(own.other_listed for own in found.candidates) == 4
        assert found.kl_nats == pytest.approx(row.difference.kl_nats[entry], abs=1e-9)
        assert found.entropy_nats == row.scores.entropy_nats[entry]
        assert found.flipped == (row.scores.top_ids[entry] != row.baseline.top_ids[entry])


def tokens_of(root, *options):
    """Every token of the first text, as its run asked for it."""
    rows, link = recorded(root, *options)
    places = [TokenPlace(link["run"], 0, int(col)) for col in rows[0].cols]
    return [measured_tokens(RunStore(root), place)[0] for place in places]


def test_a_text_that_was_filled_is_read_as_it_stood_in_that_step(tmp_path):
    config = EvaluationConfig("unmasking", hidden_share=0.6)
    model = TableModel(1)
    tokens = tokens_of(tmp_path, config, model)
    steps = [int(token.scores.steps[token.entry]) for token in tokens]
    assert sorted(steps) == list(range(1, len(tokens) + 1))  # one token a step
    for token, step in zip(tokens, steps, strict=True):
        again = replayed(session_of(table=model), token, top_k=3)
        assert not again.changed
        values = reading_values(again)
        hidden = [own for own in values["tokens"] if own.number]
        assert values["chosen"].step == step
        assert sorted(own.state for own in hidden) == sorted(
            ["mask", *["written"] * (step - 1), *["along"] * (len(tokens) - step)]
        )
        assert all(own.shown == own.written for own in hidden if own.state == "written")
        html = side_by_side_html(session_of(table=model), [token])
        assert f"The run hid {len(tokens)} tokens of this text and filled them" in html
        assert f"Step {step} wrote “{values['chosen'].written}”." in html
        assert html.count("in place of") == step - 1


def test_a_model_that_has_changed_is_said(tmp_path):
    token = tokens_of(tmp_path)[0]
    again = replayed(session_of(table=TableModel(2)), token, top_k=3)
    assert "has changed since" in again.changed
    assert again.mask.scored[0].nll_nats == token.scores.nll_nats[token.entry]
    other = session_of(table=TableModel(1, vocabulary=letter_vocabulary()))
    with pytest.raises(DataError, match="replaced since"):
        replayed(other, token, top_k=3)
