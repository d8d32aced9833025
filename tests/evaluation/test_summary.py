"""summarize against plain loops over the rows, in any order."""

import math
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from evaluated import assert_alike
from table_model import TOKENS, TableModel, sample_texts

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import METRICS, EvaluationConfig, RunningSummary, evaluate, summarize
from fillmask_ui.evaluation.alarms import UNCHANGED_ALARM
from fillmask_ui.evaluation.chance import Chance
from fillmask_ui.masking import KINDS, MaskRecipe
from fillmask_ui.records import SkippedText

CONFIG = EvaluationConfig(recipe=MaskRecipe(0.5, 0.5, 0.25, 0.25))
TEXTS = [*sample_texts(120, seed=9, longest=30), "", "zzz"]
ROWS = list(evaluate(TableModel(1, noise=0.4), TEXTS, CONFIG, candidate=TableModel(1)))
MEASURED = [row for row in ROWS if not isinstance(row, SkippedText)]
SUMMARY = summarize(ROWS, config=CONFIG, vocabulary_size=len(TOKENS))


@pytest.mark.parametrize("name", sorted(METRICS.keys() - {"pairs"}))
def test_rows_carry_their_metric(name):
    """Without a config, too, a figure stands under the name of its own metric."""
    config = EvaluationConfig(name)
    rows = list(evaluate(TableModel(1), TEXTS[:20], config))
    values = summarize(rows).to_dict()
    assert values == summarize(rows, config=config).to_dict()
    assert values["metric"] == name
    assert values[config.metric.figure_key] == summarize(rows).model.metric


def test_rows_that_do_not_go_together_are_refused():
    whole = EvaluationConfig("pseudo-perplexity")
    with pytest.raises(
        DataError, match=r"measured by CrossEntropy\(.* those of PseudoPerplexity\("
    ):
        summarize(ROWS, config=whole)
    with pytest.raises(DataError, match=r"text \d+ was counted twice: give each row once"):
        summarize([*ROWS, MEASURED[3]], config=CONFIG)
    # Of several seeds: no config says what the rows are.
    assert summarize([*ROWS, *ROWS]).texts == 2 * len(MEASURED)
    alone = replace(MEASURED[1], reference=None, difference=None)
    with pytest.raises(DataError, match="not all rows have the same models"):
        summarize([MEASURED[0], alone])
    with pytest.raises(DataError, match="2 empty or blank, 1 only special or unknown tokens"):
        summarize(evaluate(TableModel(1), ["", " ", "zzz"]))
    with pytest.raises(DataError, match="there was none"):
        summarize([])


def tokens_of(choose=lambda row: np.ones(len(row.cols), bool), scores=lambda row: row.scores):
    """(nll, rank, entropy) of every token that `choose` takes."""
    return [
        values
        for row in MEASURED
        for token_scores in [scores(row)]
        for *values, chosen in zip(
            token_scores.nll_nats,
            token_scores.ranks,
            token_scores.entropy_nats,
            choose(row),
            strict=True,
        )
        if chosen
    ]


def check_group(figures, tokens):
    nll, ranks, entropy = zip(*tokens, strict=True)
    assert figures.tokens == len(tokens)
    assert figures.mean_nll_nats == pytest.approx(math.fsum(nll) / len(nll), rel=1e-12)
    assert figures.top1_accuracy == pytest.approx(sum(rank == 1 for rank in ranks) / len(ranks))
    assert figures.top5_accuracy == pytest.approx(sum(rank <= 5 for rank in ranks) / len(ranks))
    assert figures.mean_rank == pytest.approx(sum(ranks) / len(ranks))
    assert figures.mean_entropy_nats == pytest.approx(math.fsum(entropy) / len(entropy))


def test_figures_of_all_tokens():
    check_group(SUMMARY.model, tokens_of())
    check_group(SUMMARY.reference, tokens_of(scores=lambda row: row.reference))
    assert SUMMARY.texts == len(MEASURED)
    assert SUMMARY.model.perplexity == pytest.approx(math.exp(SUMMARY.model.mean_nll_nats))
    assert SUMMARY.model.mean_nll_bits == SUMMARY.model.mean_nll_nats / math.log(2)
    assert SUMMARY.skipped["empty or blank"] == 1
    assert SUMMARY.texts + sum(SUMMARY.skipped.values()) == len(TEXTS)
    characters = sum(
        len(row.text[start:end].replace(" ", "")) for row in MEASURED for start, end in row.spans
    )
    assert SUMMARY.model.characters == characters
    expected = math.fsum(nll for nll, _, _ in tokens_of()) / characters
    assert SUMMARY.model.nll_per_character_nats == pytest.approx(expected)


def test_splits_of_the_tokens():
    assert [group.name for group in SUMMARY.model.by_kind] == list(KINDS)
    for kind, group in enumerate(SUMMARY.model.by_kind):
        check_group(group, tokens_of(lambda row, kind=kind: row.kinds == kind))
    # The table model favours what it sees: unchanged tokens are easy, random ones hard.
    mask, shuffled, unchanged = (group.mean_nll_nats for group in SUMMARY.model.by_kind)
    assert unchanged < mask < shuffled
    assert UNCHANGED_ALARM in SUMMARY.alarms
    groups = {group.name: group for group in SUMMARY.model.by_part}
    assert set(groups) == {"whole word", "first sub-token", "later sub-token"}
    later = tokens_of(lambda row: [token.startswith("##") for token in row.tokens])
    check_group(groups["later sub-token"], later)
    places = {group.name: group for group in SUMMARY.model.by_position}
    check_group(places["8-15"], tokens_of(lambda row: (row.cols >= 8) & (row.cols < 16)))
    for split in ("by_part", "by_position", "by_frequency"):
        groups = getattr(SUMMARY.model, split)
        assert sum(group.tokens for group in groups) == SUMMARY.model.tokens


def test_split_by_frequency_in_the_texts():
    counts = np.bincount(np.concatenate([row.ids for row in MEASURED]))
    groups = {group.name: group for group in SUMMARY.model.by_frequency}
    assert len(groups) >= 2
    for name, group in groups.items():
        low, _, high = name.removesuffix("+").partition("-")
        most = int(high or low) if not name.endswith("+") else math.inf
        chosen = tokens_of(
            lambda row, low=int(low), most=most: (
                (counts[row.true_ids] >= low) & (counts[row.true_ids] <= most)
            )
        )
        check_group(group, chosen)


def test_calibration_histogram_and_median():
    stated = np.concatenate([row.scores.top_probabilities for row in MEASURED])
    right = np.concatenate([row.scores.ranks == 1 for row in MEASURED])
    error = 0.0
    for slot in SUMMARY.model.calibration:
        inside = (stated >= slot.low) & (stated < slot.high)
        assert slot.tokens == inside.sum()
        assert slot.mean_probability == pytest.approx(stated[inside].mean())
        assert slot.accuracy == pytest.approx(right[inside].mean())
        error += inside.mean() * abs(stated[inside].mean() - right[inside].mean())
    assert SUMMARY.model.calibration_error == pytest.approx(error)
    nll = np.array([nll for nll, _, _ in tokens_of()])
    histogram = SUMMARY.model.histogram
    expected, _ = np.histogram(np.minimum(nll, 49.99), bins=histogram.edges)
    np.testing.assert_array_equal(histogram.total, expected)
    assert SUMMARY.model.median_nll_nats == pytest.approx(np.median(nll), abs=0.03)


def test_comparison_of_two_models():
    comparison = SUMMARY.comparison
    total, base = (
        sum(nll for nll, _, _ in tokens_of(scores=scores))
        for scores in (lambda row: row.scores, lambda row: row.reference)
    )
    assert comparison.relative_change == pytest.approx(total / base - 1, rel=1e-9)
    assert comparison.difference_nats == pytest.approx((total - base) / SUMMARY.model.tokens)
    assert comparison.interval.low < comparison.relative_change < comparison.interval.high
    agreed = np.concatenate([row.scores.top_ids == row.reference.top_ids for row in MEASURED])
    assert comparison.agreement == pytest.approx(agreed.mean())
    assert comparison.flips == (~agreed).sum()
    kl = np.concatenate([row.difference.kl_nats for row in MEASURED])
    assert comparison.mean_kl_nats == pytest.approx(kl.mean())
    largest = max(row.difference.max_abs.max() for row in MEASURED)
    assert comparison.max_abs_logit_difference == largest
    lost = sum(int(((r.scores.ranks > 1) & (r.reference.ranks == 1)).sum()) for r in MEASURED)
    won = sum(int(((r.scores.ranks == 1) & (r.reference.ranks > 1)).sum()) for r in MEASURED)
    assert (comparison.lost, comparison.won) == (lost, won)
    assert comparison.histogram.total.sum() == SUMMARY.model.tokens


def test_worst_tokens_and_largest_differences():
    nll = sorted((nll for nll, _, _ in tokens_of()), reverse=True)
    assert [example.nll_nats for example in SUMMARY.worst] == nll[:200]
    example = SUMMARY.worst[0]
    assert example.text[example.start : example.end] == example.token.removeprefix("##")
    gaps = [abs(example.difference_nats) for example in SUMMARY.most_different]
    assert gaps == sorted(gaps, reverse=True)


@pytest.mark.parametrize("seed", range(2))
def test_rows_in_any_order_give_the_same_figures(seed):
    rows = ROWS[:]
    random.Random(seed).shuffle(rows)
    running = RunningSummary(config=CONFIG, vocabulary_size=len(TOKENS))
    for count, row in enumerate(rows, start=1):
        running.add(row)
        if count == 50:  # looking at it changes nothing
            assert running.summary(quick=True).texts == running.history()[-1].texts
    quick, summary = running.summary(quick=True), running.summary()
    assert quick.model.mean_nll_nats == pytest.approx(SUMMARY.model.mean_nll_nats, rel=1e-12)
    assert quick.model.interval.low == pytest.approx(SUMMARY.model.interval.low, rel=0.02)
    assert_alike(summary.to_dict(), SUMMARY.to_dict())
    assert summary.worst == SUMMARY.worst
    assert summary.most_different == SUMMARY.most_different
    np.testing.assert_array_equal(summary.points, SUMMARY.points)


def test_near_chance_is_said():
    flat = TableModel(scale=0.01)
    summary = summarize(
        evaluate(flat, TEXTS, EvaluationConfig("uniform")), vocabulary_size=len(TOKENS)
    )
    assert any("the model is near chance" in alarm for alarm in summary.alarms)
    # The table model favours the token that it sees.
    all_shown = EvaluationConfig(recipe=MaskRecipe(0.5, 0.0, 0.0, 1.0))
    seeing = TableModel(1)
    seeing.own *= 3
    summary = summarize(evaluate(seeing, TEXTS, all_shown), vocabulary_size=len(TOKENS))
    assert not any("near chance" in alarm for alarm in summary.alarms)
    summary = summarize(evaluate(flat, TEXTS, candidate=TableModel(1)), vocabulary_size=len(TOKENS))
    assert any("the reference is near chance" in alarm for alarm in summary.alarms)


def test_chance_is_the_better_of_the_uniform_and_the_unigram_model():
    """By the counts of the other tokens, each raised by one: a loop that leaves one out."""
    ids = [5] * 8 + [6] * 3 + [7]
    losses = []
    for index, token in enumerate(ids):
        other_counts = np.bincount(np.delete(ids, index), minlength=20) + 1
        losses.append(-math.log(other_counts[token] / other_counts.sum()))
    chance = Chance.of(Counter(ids), Counter(ids), vocabulary_size=20)
    assert chance.nll_nats == pytest.approx(np.mean(losses), rel=1e-12)
    assert chance.is_near(0.9 * chance.nll_nats) and not chance.is_near(0.89 * chance.nll_nats)
    rare = Chance.of({5: 1, 6: 1}, {5: 1, 6: 1}, vocabulary_size=20)
    assert rare.nll_nats == math.log(20)
