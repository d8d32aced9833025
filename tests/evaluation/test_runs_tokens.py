"""One token of a stored run, as each of its models met it."""

import pytest
from stored_runs import record
from table_model import TableModel, letter_vocabulary

from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.runs.tokens import TokenPlace, measured_tokens

PSEUDO = EvaluationConfig("pseudo-perplexity")


def rows_of(run):
    return {row.id: row for row in run.rows() if hasattr(row, "scores")}


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
