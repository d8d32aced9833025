"""Losses at temperatures, seeds, intervals, published changes and pairs: by hand and scipy."""

import math
from dataclasses import replace

import numpy as np
import pytest
from table_model import TableModel, sample_texts

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.features.course.accuracy_and_loss import (
    TEMPERATURES,
    Tempered,
    loss_histogram,
    nearest,
    temperature_losses,
)
from fillmask_ui.features.course.mean_uncertainty import (
    PUBLISHED,
    Change,
    compare_paired,
    means_by_count,
    means_over_seeds,
    text_losses,
)
from fillmask_ui.intervals import Limits
from fillmask_ui.models import load_model
from fillmask_ui.records import Example
from fillmask_ui.texts import TextSource, open_texts

TEXTS = [Example(*item) for item in enumerate(sample_texts(60))]


def test_a_temperature_moves_no_rank_but_the_loss_and_they_are_the_evaluators():
    model = TableModel()
    losses = temperature_losses(model, TEXTS)
    assert [losses_at.temperature for losses_at in losses] == [*TEMPERATURES]
    first = losses[0]
    for losses_at in losses[1:]:
        np.testing.assert_array_equal(losses_at.ranks, first.ranks)
        assert losses_at.mean_top_probability < first.mean_top_probability
    assert len({losses_at.mean_nll_nats for losses_at in losses}) == len(TEMPERATURES)
    for temperature in (0.6, 1.0, 2.0):
        figures = summarize(evaluate(Tempered(model, temperature), TEXTS)).model
        scores = nearest(losses, temperature)
        assert scores.tokens == figures.tokens
        assert scores.mean_nll_nats == pytest.approx(figures.mean_nll_nats, abs=1e-9)
        assert scores.top1_accuracy == figures.top1_accuracy
    with pytest.raises(DataError, match="choose another model"):
        temperature_losses(model, [Example(0, "東京")])


def test_means_over_seeds_are_the_evaluators():
    model = TableModel()
    passes = []
    measured = means_over_seeds(model, TEXTS, seeds=(3, 4, 5), on_pass=passes.append)
    assert passes == [1, 2, 3, 4]
    figures = [
        summarize(evaluate(model, TEXTS, EvaluationConfig(seed=seed))).model for seed in (3, 4, 5)
    ]
    means = [seed_figures.mean_nll_nats for seed_figures in figures]
    assert [
        seed_figures.mean_nll_nats for seed_figures in measured.seeds.values()
    ] == pytest.approx(means, abs=1e-12)
    assert measured.mean_nats == pytest.approx(np.mean(means))
    assert measured.spread_nats == pytest.approx(np.std(means, ddof=1))
    # All tokens of all seeds, kind by kind, are all that were scored.
    every = sum(seed_figures.tokens * seed_figures.mean_nll_nats for seed_figures in figures)
    groups = [group for seed_figures in figures for group in seed_figures.by_kind]
    assert sum(group.tokens * measured.shown_as[group.name] for group in groups) == pytest.approx(
        every
    )
    pseudo = summarize(evaluate(model, TEXTS, EvaluationConfig("pseudo-perplexity"))).model
    assert measured.pseudo_nll_nats == pseudo.mean_nll_nats


def test_means_and_intervals_are_the_evaluators_in_any_order():
    model = TableModel()
    losses = text_losses(model, TEXTS)
    means, turned = means_by_count(losses), means_by_count(losses, 7)
    assert [mean.texts for mean in means] == [5, 10, 20, 40, len(losses)]
    whole = summarize(list(evaluate(model, TEXTS))).model
    assert means[-1].mean_nll_nats == pytest.approx(whole.mean_nll_nats, abs=1e-12)
    assert means[-1].interval == whole.interval
    assert [mean.expected_half_nats / means[-1].half_nats for mean in means] == pytest.approx(
        [math.sqrt(means[-1].texts / mean.texts) for mean in means]
    )
    assert turned[0].mean_nll_nats != means[0].mean_nll_nats
    assert turned[-1].mean_nll_nats == pytest.approx(means[-1].mean_nll_nats)
    with pytest.raises(DataError, match=r"could measure \d of 4 texts"):
        text_losses(model, TEXTS[:4])
    with pytest.raises(DataError, match="calls a token impossible"):
        scores = replace(losses[2].scores, nll_nats=np.array([math.inf]))
        means_by_count([*losses[:2], replace(losses[2], scores=scores), *losses[3:]])


def test_published_changes_by_hand():
    """2.1625 / 2.1032 = 1.028195, 8.5174 / 2.3718 = 3.591112, e^6.1456 = 466.66."""
    first, last = PUBLISHED[0], PUBLISHED[-1]
    assert first.relative_change == pytest.approx(0.028195, abs=1e-6)
    assert last.relative_change == pytest.approx(2.591112, abs=1e-6)
    assert last.perplexity_factor == pytest.approx(466.66, abs=0.01)
    assert [Limits().band(row.relative_change) for row in PUBLISHED] == ["PASS"] * 7 + [
        "REGRESSION"
    ]
    assert [row.as_printed for row in PUBLISHED] == [True] * 8
    assert [f"{row.printed_percent:+g}" for row in PUBLISHED] == [
        *("+2.8", "+2.7", "+0.2", "+1.6", "-0.5", "+1.4", "+4", "+259.1")
    ]
    changes = [Change(loss, 2.0).relative_change for loss in (2.099, 2.1, 2.19, 2.2)]
    verdicts = [Limits().band(change) for change in changes]
    assert verdicts == ["PASS", "AT_RISK", "AT_RISK", "REGRESSION"]


def test_the_texts_are_right_about_the_shipped_models():
    """Sharper, as many hits, a higher mean; random tokens cost most; pairs are narrow."""
    model, quantized = load_model("embedded"), load_model("embedded:int8")
    texts = list(open_texts(TextSource(samples=40)))
    for variant in (model, quantized):
        losses = temperature_losses(variant, texts)
        plain, sharper, flatter = (nearest(losses, t) for t in (1.0, 0.5, 2.0))
        assert plain.hits == sharper.hits == flatter.hits
        assert min(sharper.mean_nll_nats, flatter.mean_nll_nats) > plain.mean_nll_nats + 0.5
        counts = loss_histogram(plain.nll_nats, sharper.nll_nats).counts
        assert counts["B"][0] > counts["A"][0]
        assert counts["B"][7:].sum() > counts["A"][7:].sum()
        assert 0.9 <= min(losses, key=lambda item: item.mean_nll_nats).temperature <= 1.1
        assert abs(plain.mean_top_probability - plain.top1_accuracy) < 0.05
    assert compare_paired(quantized, model, texts).times_narrower > 10
    few = sorted(open_texts(TextSource()), key=lambda item: (len(item.text), item.id))[:20]
    measured = means_over_seeds(model, few, seeds=range(1, 9))
    shown_as = measured.shown_as
    assert 0.1 < shown_as["unchanged"] < 1 < measured.mean_nats < shown_as["mask"]
    assert shown_as["mask"] < shown_as["random"] and measured.spread_nats > 0.2
