"""A token of two models in Explore as the run saw it: both losses and candidates in one list."""

import explore_page
import numpy as np
import pytest
from asrun_page import MIXED, TEXTS, nll_at, page_of, recorded
from stored_runs import record
from table_model import TableModel, letter_vocabulary

from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.runs import RunStore
from fillmask_ui.runs.tokens import TokenPlace, measured_tokens
from fillmask_ui.ui.explore.explore_modes import SERVED
from fillmask_ui.ui.run_tokens import compared_readings, replayed

A, B = TableModel(1), TableModel(1, noise=0.3)


def both_of(session, root, link, position, side=0):
    """The token under either model, by the records alone."""
    place = TokenPlace(link["run"], 0, position, link.get("run_b", ""), side)
    met = measured_tokens(RunStore(root), place)
    first, second = (replayed(session, token, top_k=4) for token in (met[side], met[1 - side]))
    return first, second, compared_readings(session, first, second)


def test_the_losses_are_those_of_the_rows_and_all_else_is_of_the_tables(tmp_path):
    session = page_of(tmp_path)
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
        assert (true.rank, true.other_rank) == (
            row.scores.ranks[entry],
            row.baseline.ranks[entry],
        )
        for own in found.candidates:
            assert own.nll_nats == pytest.approx(nll_at(A, seen, position, own.token_id), abs=1e-6)
            other = nll_at(B, seen, position, own.token_id)
            assert own.other_nll_nats == pytest.approx(other, abs=1e-6)
        assert sum(own.listed for own in found.candidates) == 4
        assert sum(own.other_listed for own in found.candidates) == 4
        assert found.kl_nats == pytest.approx(row.difference.kl_nats[entry], abs=1e-9)
        assert found.entropy_nats == row.scores.entropy_nats[entry]
        assert found.flipped == (row.scores.top_ids[entry] != row.baseline.top_ids[entry])


def test_two_stored_runs_compared_with_each_other(tmp_path):
    session, store = page_of(tmp_path), RunStore(tmp_path)
    runs = [
        record(store, model, TEXTS, MIXED, choices={"model": {"reference": reference}})
        for reference, model in (("table", A), ("noisy", B))
    ]
    link = {"run": runs[0].info.name, "run_b": runs[1].info.name}
    rows = [run.row(0) for run in runs]
    position = int(rows[0].cols[1])
    _, _, found = both_of(session, tmp_path, link, position)
    (true,) = [own for own in found.candidates if own.asked]
    assert true.nll_nats == rows[0].scores.nll_nats[1]
    assert true.other_nll_nats == rows[1].scores.nll_nats[1]
    # From the other side the same, exchanged.
    _, _, turned = both_of(session, tmp_path, link, position, side=1)
    (same,) = [own for own in turned.candidates if own.asked]
    assert (same.nll_nats, same.other_nll_nats) == (true.other_nll_nats, true.nll_nats)


def test_models_of_different_tokenizers_are_paired_by_word(tmp_path):
    letters = TableModel(2, vocabulary=letter_vocabulary())
    session = page_of(tmp_path, table=A, noisy=letters)
    rows, link = recorded(tmp_path, EvaluationConfig("pseudo-perplexity"), baseline=letters)
    row = rows[0]
    _, _, found = both_of(session, tmp_path, link, int(row.cols[1]))
    (true,) = [own for own in found.candidates if own.asked]
    assert true.word == "cat"
    assert true.token_id != true.other_token_id
    assert true.nll_nats == row.scores.nll_nats[1]
    assert true.other_nll_nats == row.other.scores.nll_nats[1]
    assert found.kl_nats is None
    # A click writes the token of the model that is picked.
    for side, reference, token_id in (
        ("", "noisy", true.token_id),
        ("B", "table", true.other_token_id),
    ):
        cols = row.other.cols if side else row.cols
        place = {**link, "token": str(cols[1]), "side": side, "compare": reference}
        assert f':0:{token_id}"' in asked(session, **place)["html"]
    alone = [own for own in found.candidates if own.probability is None]
    assert alone
    assert all(own.other_listed for own in alone)


def test_a_text_filled_step_by_step_by_either_has_no_divergence(tmp_path):
    """Each model then read what it had written itself."""
    session = page_of(tmp_path)
    rows, link = recorded(tmp_path, EvaluationConfig("unmasking"), baseline=B)
    row = rows[0]
    readings = set()
    for entry, position in enumerate(row.cols.tolist()):
        first, second, found = both_of(session, tmp_path, link, position)
        (true,) = [own for own in found.candidates if own.asked]
        assert true.other_nll_nats == row.baseline.nll_nats[entry]
        same = np.array_equal(first.reading.ids, second.reading.ids)
        readings.add(same)
        assert (found.kl_nats is not None) == same
    assert readings


def asked(session, **values):
    while (found := explore_page.asked(SERVED["compared"], session, values))["kind"] == "busy":
        pass
    return found


def test_explore_shows_both_where_the_other_model_is_picked(tmp_path):
    session = page_of(tmp_path)
    rows, link = recorded(tmp_path, baseline=B)
    row, place = rows[0], {**link, "token": str(rows[0].cols[0])}
    found = asked(session, compare="noisy", **place)
    assert found["kind"] == "none"
    true = row.scores.nll_nats[0], row.baseline.nll_nats[0]
    for nll in true:
        assert f'data-value="{nll}"' in found["html"]
    shown = explore_page.asked(SERVED["answer"], session, {**place, "compare": "noisy"})["html"][
        "replay"
    ]
    assert f"{true[0]:.4f} nats under A and {true[1]:.4f} nats under B" in shown
    # To look from the other side exchanges the two controls; A and B stay those of the run.
    assert "&#34;side&#34;: &#34;B&#34;" in shown
    assert "&#34;compare&#34;: &#34;table&#34;" in shown
    turned = asked(session, compare="table", side="B", **place)
    assert turned == found
    hint = asked(session, compare="else", **place)
    assert hint["kind"] == "hint"
    assert "did not compare with else" in hint["notice"]
    gone = asked(session, compare="noisy", **{**place, "run": "gone"})
    assert "Unknown run" in gone["notice"]
