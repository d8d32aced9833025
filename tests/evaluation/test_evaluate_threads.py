"""evaluate on several threads: the same rows, errors that arrive, nothing left behind."""

import threading

import numpy as np
import pytest
from table_model import TableModel, letter_vocabulary, sample_texts

from fillmask_ui.errors import ModelOutputError
from fillmask_ui.evaluation import EvaluationConfig, evaluate, measure

TEXTS = ["", *sample_texts(30, seed=7), "zzz"]
PAIRS = {
    "one model": None,
    "one tokenizer": {"seed": 1, "noise": 0.3},
    "two tokenizers": {"seed": 2, "vocabulary": letter_vocabulary()},
}


def shared(workers, model_class=TableModel, **options):
    model = model_class(**options)
    model.concurrent_calls = workers
    return model


def workers_alive():
    return [thread for thread in threading.enumerate() if thread.name.startswith("fillmask")]


@pytest.mark.parametrize("options", PAIRS.values(), ids=PAIRS)
def test_rows_are_the_same_whatever_the_number_of_threads(options):
    """In the same order too."""
    config = EvaluationConfig("pseudo-perplexity", batch_tokens=40)
    results = []
    for workers in (1, 2, 4):
        baseline = None if options is None else shared(workers, **options)
        model = shared(workers, seed=1)
        candidate = model if baseline else None
        rows = [*evaluate(baseline or model, TEXTS, config, candidate=candidate)]
        assert len(rows) == len(TEXTS)
        results.append([row.to_dict() if hasattr(row, "to_dict") else row for row in rows])
    assert results[0] == results[1] == results[2]
    assert not workers_alive()


@pytest.mark.parametrize("workers", [1, 4])
def test_neither_an_error_nor_an_early_end_leaves_a_thread(workers):
    class Breaks(TableModel):
        def logits_at(self, *arguments):
            logits = super().logits_at(*arguments)
            if len(self.calls) > 15:
                logits[0] = np.nan
            return logits

    config, model = EvaluationConfig("uniform", batch_tokens=1), shared(workers, Breaks)
    rows = evaluate(model, TEXTS, config)
    next(rows)
    next(rows)
    rows.close()
    assert not workers_alive()
    assert len(model.calls) <= 15
    with pytest.raises(ModelOutputError, match="NaN at 1 of"):
        list(evaluate(model, TEXTS, config))
    assert not workers_alive()


def test_logits_of_all_threads_share_one_bound(monkeypatch):
    """Also where a text alone takes nearly all of it."""
    bound = 12 * 4 * TableModel().signature.vocabulary_size
    monkeypatch.setattr(measure, "LOGIT_BYTES", bound)
    lock, held, most = threading.Lock(), 0, 0

    class Watched(TableModel):
        def logits_at(self, *arguments):
            nonlocal held, most
            with lock:
                held += len(arguments[2])
                most = max(most, held)
            threading.Event().wait(0.001)
            with lock:
                held -= len(arguments[2])
            return super().logits_at(*arguments)

    config = EvaluationConfig("uniform", seed=3)
    expected = [row.to_dict() for row in evaluate(TableModel(seed=1), TEXTS[1:-1], config)]
    model = shared(4, Watched, seed=1)
    rows = [row.to_dict() for row in evaluate(model, TEXTS[1:-1], config)]
    assert sorted(rows, key=lambda row: row["id"]) == sorted(expected, key=lambda row: row["id"])
    assert 12 // 4 < max(positions for _, positions in model.calls) <= 12
    assert most <= 12
