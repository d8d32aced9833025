"""The tokens of the Evaluate tab: the right ones, in their sentences."""

import pytest
from evaluate_page import rows_of

from fillmask_ui.masking import KINDS
from fillmask_ui.ui.evaluate import tokens
from fillmask_ui.ui.evaluate.tokens import DIFFERENT, FLIPPED, TokenFilter, find_tokens

FILTERS = [TokenFilter(), TokenFilter(low=2.0, high=3.5), TokenFilter(low=1e9)]


def flat(rows):
    """(loss A, loss B, best guess A, best guess B, text, position) of every token."""
    for row in rows:
        yield from zip(
            row.scores.nll_nats,
            row.baseline.nll_nats,
            row.scores.top_ids,
            row.baseline.top_ids,
            [row.id] * len(row.cols),
            row.cols,
            strict=True,
        )


@pytest.mark.parametrize("choice", FILTERS)
def test_the_worst_tokens_are_those_of_a_plain_sort(pair, choice):
    found = find_tokens(pair, choice)
    fitting = [t for t in flat(pair) if choice.low <= t[0] < choice.high]
    expected = sorted(fitting, key=lambda t: (-t[0], t[4], t[5]))[: tokens.SHOWN]
    assert found.count == len(fitting)
    assert [(t.id, t.position, t.nll_nats) for t in found.tokens] == [
        (t[4], t[5], t[0]) for t in expected
    ]


@pytest.mark.parametrize("saw", ["", *KINDS])
def test_tokens_are_chosen_by_what_the_model_saw(pair, saw):
    found = find_tokens(pair, TokenFilter(saw=saw, low=1.0))
    expected = [
        (row.scores.nll_nats[place], KINDS[kind])
        for row in pair
        for place, kind in enumerate(row.kinds)
        if row.scores.nll_nats[place] >= 1.0 and saw in ("", KINDS[kind])
    ]
    assert 0 < found.count == len(expected)
    shown = [(token.nll_nats, token.kind) for token in found.tokens]
    assert shown == sorted(expected, key=lambda token: -token[0])[: tokens.SHOWN]
    html = tokens.tokens_html(found, TokenFilter(saw=saw), pair=True)
    assert (", left unchanged" in html) == (saw == "unchanged")


def test_the_largest_differences_and_the_flips(pair):
    different = find_tokens(pair, TokenFilter(DIFFERENT)).tokens
    expected = sorted((abs(t[0] - t[1]) for t in flat(pair)), reverse=True)
    assert [abs(t.difference_nats) for t in different] == expected[: len(different)]
    flipped = find_tokens(pair, TokenFilter(FLIPPED))
    assert flipped.count == sum(t[2] != t[3] for t in flat(pair))
    assert all(t.top_token != t.baseline_top_token for t in flipped.tokens)


def test_one_model_has_no_differences():
    assert find_tokens(rows_of(), TokenFilter(DIFFERENT)).count == 0


def test_a_large_run_is_looked_through_up_to_a_limit_that_is_said(pair, monkeypatch):
    monkeypatch.setattr(tokens, "MAX_TEXTS", 5)
    found = find_tokens(pair, TokenFilter())
    assert (found.texts, found.all_texts) == (5, False)
    assert "first 5 texts" in tokens.tokens_html(found, TokenFilter(), pair=True)
