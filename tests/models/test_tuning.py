"""Batch sizes: what is chosen for known costs, and what is remembered."""

from types import SimpleNamespace

import numpy as np
import pytest
from table_model import TableModel

from fillmask_ui.evaluation import EvaluationConfig, Heartbeat, evaluate
from fillmask_ui.models import load_model, tuning


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FILLMASK_UI_CACHE", str(tmp_path))
    return tmp_path / "batches"


class CostlyModel(TableModel):
    """A call takes as long as a formula says, by a clock of its own."""

    threads = None
    cost = staticmethod(lambda tokens: 1e-3 + tokens * 1e-6)
    now = 0.0

    def best_batch_tokens(self):
        return tuning.best_batch_tokens(self, self.threads)

    def logits_at(self, input_ids, attention_mask, rows, cols):
        assert attention_mask.shape == input_ids.shape
        assert (np.diff(rows) >= 0).all()
        CostlyModel.now += self.cost(input_ids.size)
        self.calls.append((input_ids.shape, len(rows)))
        return np.zeros((len(rows), self.signature.vocabulary_size), np.float32)


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(
        tuning, "time", SimpleNamespace(perf_counter=lambda: CostlyModel.now), raising=True
    )


def costly(cost):
    model = CostlyModel(max_tokens=64)
    model.cost = cost
    return model


@pytest.mark.parametrize(
    ("cost", "best"),
    [
        (lambda tokens: 1e-3 + tokens * 1e-6, 2048),  # a call costs as much as 1,000 tokens
        (lambda tokens: 1e-6 * tokens + 3e-10 * tokens**2, 256),  # the larger, the slower
        (lambda tokens: 1e-6 * tokens, 256),  # all alike: the smallest
        (lambda tokens: 1e-6 * (tokens if tokens >= 512 else 1.2 * tokens), 512),
        (lambda tokens: 1e-6 * (tokens if tokens >= 512 else 1.02 * tokens), 256),  # about as good
        (lambda tokens: 1e-3 * tokens, tuning.DEFAULT),  # a round takes eight seconds
    ],
)
def test_the_smallest_batch_that_is_about_as_fast_as_the_best(clock, cost, best):
    model = costly(cost)
    assert tuning.measure_batch_tokens(model, workers=1) == best
    assert CostlyModel.now >= 0


def test_it_is_measured_once_and_again_where_the_file_is_torn(clock, cache):
    model = costly(lambda tokens: 1e-6 * (tokens if tokens >= 512 else 1.2 * tokens))
    assert model.best_batch_tokens() == 512
    measured = len(model.calls)
    assert model.best_batch_tokens() == 512
    assert len(model.calls) == measured
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    for torn in (b"", whole[:-1], whole[:33], b"x" + whole):
        path.write_bytes(torn)
        model.calls.clear()
        assert model.best_batch_tokens() == 512
        assert len(model.calls) == measured
    assert path.read_bytes() == whole


def test_another_model_version_or_number_of_threads_is_measured_anew(clock, cache):
    for changes in ({}, {"seed": 5}, {"threads": 1}):
        threads = changes.pop("threads", None)
        model = CostlyModel(max_tokens=64, **changes)
        model.threads = threads
        model.best_batch_tokens()
        assert model.calls
    assert len([*cache.iterdir()]) == 3


def test_only_work_that_is_worth_it_is_measured(clock, cache):
    def beats(texts, **options):
        model = costly(lambda tokens: 1e-3 + 1e-6 * tokens)
        items = evaluate(model, texts, EvaluationConfig("uniform", **options), heartbeat=True)
        return {item.batch_tokens for item in items if isinstance(item, Heartbeat)}

    long = ["the cat sat on the mat. " * 10] * 512
    assert beats(long[:20]) == {512}
    assert not cache.exists()
    assert beats(long, batch_tokens=100) == {100}
    assert not cache.exists()
    assert beats(long) == {2048}
    assert cache.exists()


def test_a_real_model_is_measured(cache):
    model = load_model(threads=1)
    assert model.concurrent_calls == 1
    assert tuning.measure_batch_tokens(model, 2, candidates=(32, 64), seconds=0.01) in (32, 64, 512)
