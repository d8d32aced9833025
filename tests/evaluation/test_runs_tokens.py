"""One token of a stored run, as each of its models met it."""

import pytest
from stored_runs import TEXTS, record
from table_model import TableModel, letter_vocabulary

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.runs.tokens import TokenPlace, measured_tokens

PSEUDO = EvaluationConfig("pseudo-perplexity")


def rows_of(run):
    return {row.id: row for row in run.rows() if hasattr(row, "scores")}


def test_a_run_of_one_model(store):
    run = record(store)
    for row in rows_of(run).values():
        assert run.row(row.id).to_dict() == row.to_dict()
        for entry, position in enumerate(row.cols.tolist()):
            (token,) = measured_tokens(store, TokenPlace(run.info.name, row.id, position))
            assert (token.entry, token.row.id) == (entry, row.id)
            assert token.scores.nll_nats[entry] == row.scores.nll_nats[entry]
    for missing in (len(TEXTS) - 1, 10_000, -1):  # the last one is blank
        with pytest.raises(DataError, match="has not measured"):
            run.row(missing)
    for place, said in (
        (TokenPlace(run.info.name, row.id, position, side=1), "one model alone"),
        (TokenPlace(run.info.name, row.id, 0), "was not hidden"),
        (TokenPlace("gone", row.id, position), "unknown run"),
    ):
        with pytest.raises(DataError, match=said):
            measured_tokens(store, place)
    with pytest.raises(DataError, match="does not say"):
        assert token.choice


def test_two_models_of_one_tokenizer_meet_the_same_token(store):
    run = record(store, baseline=TableModel(1, noise=0.3))
    row = next(iter(rows_of(run).values()))
    first, second = measured_tokens(store, TokenPlace(run.info.name, row.id, int(row.cols[-1])))
    assert (first.entry, second.entry) == (len(row.cols) - 1,) * 2
    assert second.scores.nll_nats.tolist() == row.baseline.nll_nats.tolist()
    assert second.signature["name"] == "table-1-0.3"


@pytest.mark.parametrize("stored_apart", [False, True])
def test_models_with_other_tokenizers_meet_the_same_characters(store, stored_apart):
    letters = TableModel(2, vocabulary=letter_vocabulary())
    if stored_apart:
        run, other = record(store, config=PSEUDO), record(store, letters, config=PSEUDO)
        name = other.info.name
        theirs = rows_of(other)
    else:
        run, name = record(store, config=PSEUDO, baseline=letters), ""
        theirs = {index: row.other for index, row in rows_of(run).items()}
    for row in [*rows_of(run).values()][:2]:
        for position in row.cols.tolist():
            place = TokenPlace(run.info.name, row.id, position, name)
            first, second = measured_tokens(store, place)
            start, end = first.row.spans[first.entry]
            low, high = second.row.spans[second.entry]
            assert low == start < high <= end
            assert second.scores.nll_nats.tolist() == theirs[row.id].scores.nll_nats.tolist()
        # From the second model's tokens back: every one of them can be asked for.
        for entry, position in enumerate(theirs[row.id].cols.tolist()):
            place = TokenPlace(run.info.name, row.id, position, name, side=1)
            first, second = measured_tokens(store, place)
            low, high = second.row.spans[second.entry]
            start, end = first.row.spans[first.entry]
            assert second.entry == entry
            assert start <= low < end
