"""Chapter 7: losses at temperatures against torch, and the claims of its text."""

import numpy as np
import pytest
from table_model import TableModel, sample_texts
from tiny_models import quiet

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluatedText, evaluate, summarize
from fillmask_ui.lessons.accuracy_and_loss import (
    BINS,
    TEMPERATURES,
    Tempered,
    loss_histogram,
    prediction,
    temperature_losses,
)
from fillmask_ui.models import load_model
from fillmask_ui.records import Example
from fillmask_ui.texts import TextSource, open_texts

TEXTS = [Example(*item) for item in enumerate(sample_texts(30))]


def test_a_prediction_gives_the_rest_to_the_other_words():
    """By hand: 0.6 is left, of which floor has three quarters; -ln 0.4 is 0.916291."""
    found = prediction(0.4)
    assert found.probabilities == pytest.approx(
        {"mat": 0.4, "floor": 0.45, "sofa": 0.09, "roof": 0.06}
    )
    assert found.nll_nats == pytest.approx(0.916290732)
    assert (found.best_guess, found.rank) == ("floor", 2)
    assert (prediction(0.05).best_guess, prediction(0.05).rank) == ("floor", 4)
    assert (prediction(0.5).best_guess, prediction(0.5).rank) == ("mat", 1)


def test_losses_are_those_of_torch(tiny_models):
    """torch's cross_entropy over transformers' own logits of what the evaluator hid."""
    import torch
    from transformers import AutoModelForMaskedLM

    folder = tiny_models.folder("bert", onnx=False)
    model = load_model(str(folder))
    texts = [
        Example(1, "The cat sat on the mat, and she walked to the café."),
        Example(2, "The capital of France is a city on a river in the north of the country."),
        Example(5, "It was cold and the old dog ran under the red house by the water again."),
    ]
    losses = temperature_losses(model, texts)
    with quiet():
        reference = AutoModelForMaskedLM.from_pretrained(folder).eval()
    rows = {row.id: row for row in evaluate(model, texts) if isinstance(row, EvaluatedText)}
    assert rows
    for temperature in (0.5, 1.0, 1.7):
        expected = []
        for text in texts:
            row = rows.get(text.id)
            if row is None:
                continue
            seen = row.ids.copy()
            seen[row.cols] = row.shown_ids
            with torch.no_grad():
                logits = reference(torch.tensor(seen[None])).logits[0, row.cols]
            expected += torch.nn.functional.cross_entropy(
                logits / temperature, torch.tensor(row.true_ids), reduction="none"
            ).tolist()
        found = losses.at(temperature)
        assert found.temperature == temperature
        np.testing.assert_allclose(found.nll_nats, expected, atol=1e-4)


def test_they_are_those_of_the_evaluator():
    model = TableModel()
    losses = temperature_losses(model, TEXTS)
    for temperature in (0.6, 1.0, 2.0):
        figures = summarize(evaluate(Tempered(model, temperature), TEXTS)).model
        found = losses.at(temperature)
        assert found.tokens == figures.tokens
        assert found.mean_nll_nats == pytest.approx(figures.mean_nll_nats, abs=1e-9)
        assert found.top1_accuracy == figures.top1_accuracy
    plain = summarize(evaluate(model, TEXTS)).model
    assert losses.at(1.0).mean_nll_nats == pytest.approx(plain.mean_nll_nats, abs=1e-9)


def test_a_temperature_moves_no_rank_but_the_loss():
    losses = temperature_losses(TableModel(), TEXTS)
    assert [one.temperature for one in losses.every] == [*TEMPERATURES]
    first = losses.every[0]
    for one in losses.every[1:]:
        np.testing.assert_array_equal(one.ranks, first.ranks)
        assert one.top1_accuracy == first.top1_accuracy
        assert one.mean_top_probability < first.mean_top_probability
    assert len({one.mean_nll_nats for one in losses.every}) == len(TEMPERATURES)
    assert losses.best.mean_nll_nats == min(one.mean_nll_nats for one in losses.every)


def test_a_histogram_is_that_of_numpy():
    rng = np.random.default_rng(1)
    first, second = rng.gamma(1, 3, 200), rng.gamma(1, 2, 200)
    found = loss_histogram(first, second)
    for name, losses in (("A", first), ("B", second)):
        expected, _ = np.histogram(np.minimum(losses, BINS - 0.5), found.edges)
        np.testing.assert_array_equal(found.counts[name], expected)


def test_a_model_that_can_read_nothing_is_an_error():
    with pytest.raises(DataError, match="choose another model"):
        temperature_losses(TableModel(), [Example(0, "東京")])


@pytest.mark.parametrize("reference", ["embedded", "embedded:int8"])
def test_the_text_is_right_about_the_shipped_models(reference):
    """A sharper copy: as many hits, more tokens for almost nothing, yet a higher mean."""
    losses = temperature_losses(load_model(reference), list(open_texts(TextSource(samples=40))))
    plain, sharper = losses.at(1.0), losses.at(0.5)
    assert plain.hits == sharper.hits == losses.at(2.0).hits
    assert sharper.mean_nll_nats > plain.mean_nll_nats + 0.5
    assert losses.at(2.0).mean_nll_nats > plain.mean_nll_nats + 0.5
    counts = loss_histogram(plain.nll_nats, sharper.nll_nats).counts
    assert counts["B"][0] > counts["A"][0]
    assert counts["B"][7:].sum() > counts["A"][7:].sum()
    assert 0.9 <= losses.best.temperature <= 1.1
    assert abs(plain.mean_top_probability - plain.top1_accuracy) < 0.05
