"""Rows of variants beside their baseline: what the evaluator says, speeds, and the frontier."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import quantile_test
from table_model import TableModel, sample_texts

from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.features.quantize.measure_variants import (
    BASELINE,
    MeasuredModel,
    VariantFigures,
    frontier,
    measure_variant,
    worth_having,
)
from fillmask_ui.features.quantize.timing import median_interval, paired_times
from fillmask_ui.intervals import Interval
from fillmask_ui.models import ModelChoice, load_choice, load_model
from fillmask_ui.records import Example
from fillmask_ui.runs import Plan, RunStore, perform
from fillmask_ui.schema import from_trusted_values
from fillmask_ui.texts import TextSource, open_texts


def steps_of(base, variant, texts):
    examples = [Example(n, text) if isinstance(text, str) else text for n, text in enumerate(texts)]
    return list(measure_variant(base, variant, examples))


def row_of(*arguments):
    return steps_of(*arguments)[-1]


def table(scheme, **options):
    return MeasuredModel(scheme, TableModel(**options), f"table:{scheme}")


def test_a_row_is_what_eval_prints(tmp_path):
    source, config = TextSource(samples=12), EvaluationConfig()
    plan = Plan(ModelChoice("embedded:int8"), ModelChoice("embedded"), config, source)
    *_, last = perform(plan, RunStore(tmp_path), load_choice)
    printed = RunStore(tmp_path).open(last.info.name).info.result

    base = MeasuredModel("", load_model("embedded"), "embedded")
    variant = MeasuredModel("int8", load_model("embedded:int8"), "embedded:int8")
    row = row_of(base, variant, list(open_texts(source)))
    values = row.to_dict()
    for name in ("mean_nll_nats", "relative_change", "verdict", "texts"):
        assert values[name] == printed[name]
    for name in ("mean_nll_interval_95", "relative_change_interval_95"):
        assert values[name] == printed[name]
    assert row.top1_agreement == printed["comparison"]["agreement"]
    assert row.kl_nats == printed["comparison"]["mean_kl_nats"]
    signature = variant.model.signature
    assert row.size_bytes == signature.size_bytes
    assert row.ratio == signature.size_bytes / base.model.signature.size_bytes
    assert row.stamp.sha256 == signature.sha256
    assert row.stamp.runtime == f"onnxruntime {signature.versions['onnxruntime']}"
    assert row.stamp.cpu_features == signature.cpu_features
    assert (row.stamp.graph_optimization, row.stamp.precision) == ("all", "int8")


def test_the_baseline_a_noisy_variant_and_the_same_model_again():
    texts = sample_texts(20)
    first, noisy, same = (
        row_of(table("x"), variant, texts)
        for variant in (None, table("noisy", noise=0.3), table("x"))
    )
    assert (first.scheme, first.reference, first.ratio) == (BASELINE, "table:x", 1.0)
    assert (first.relative_change, first.top1_agreement, first.kl_nats) == (0.0, 1.0, 0.0)
    assert first.token_times.speedup == 1.0 and not first.token_times.faster
    assert (noisy.scheme, noisy.reference) == ("noisy", "table:noisy")
    assert noisy.relative_change != 0 and noisy.kl_nats > 0
    assert first.measured == noisy.measured
    assert (same.relative_change, same.kl_nats, same.top1_agreement) == (0.0, 0.0, 1.0)
    assert same.verdict == "NEAR_CHANCE"  # as table models are
    broken = replace(noisy, mean_nll_nats=math.inf, relative_change=math.inf)
    for row in (first, noisy, broken):
        assert from_trusted_values(VariantFigures, json.loads(json.dumps(row.to_dict()))) == row


def test_speeds_are_of_the_same_turns():
    # Both models are asked for the timed texts again in each turn, the variant first.
    base, variant = table("x"), table("y", noise=0.1)
    order = []
    for name, measured in (("base", base.model), ("variant", variant.model)):
        call = measured.logits_at
        measured.logits_at = lambda *a, name=name, call=call: order.append(name) or call(*a)
    row = row_of(base, variant, sample_texts(20, longest=40))
    changes = [b for a, b in itertools.pairwise(order) if a != b]
    assert changes.count("variant") >= 7
    for times in (row.token_times, row.sentence_times):
        assert times.interval.low <= times.speedup <= times.interval.high
        assert times.interval.method == "sign-test" and times.baseline_seconds > 0
    assert row.to_dict()["speedup"] == row.token_times.speedup


def test_a_speedup_is_paired_by_turn_and_its_interval_is_of_the_sign_test():
    # By hand: the machine slows down threefold in the last five turns. Each turn's ratio is 1.25
    # but for one slip each way; medians of separate turns would give 1.25 only by luck.
    baseline = [1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0, 3.0]
    variant = [0.8, 0.8, 0.8, 0.8, 0.8, 2.4, 2.4, 2.4, 9.0]
    times = paired_times(variant, baseline)
    assert times.speedup == pytest.approx(1.25)
    assert (times.interval.low, times.interval.high) == pytest.approx((1.25, 1.25))
    assert times.baseline_seconds == 3.0 and times.faster
    assert times.scatter == pytest.approx((2.4 - 0.8) / 0.8) and times.busy
    # One turn in three is slower: 1.3 is not certainly faster; nor is a gain that is not printed.
    unsure = paired_times([1.0] * 9, [1.3, 0.9, 1.3, 1.3, 0.9, 1.3, 1.3, 0.9, 1.3])
    assert unsure.speedup == 1.3 and not unsure.faster
    assert not paired_times([1.0] * 9, [1.004] * 9).faster
    quiet = paired_times([1.0, 1.02, 0.99] * 3, [1.5, 1.49, 1.52] * 3)
    assert quiet.faster and not quiet.busy
    # scipy inverts the binomial test for the quantile 0.5 (Conover 1999, section 3.2).
    drawn = np.random.default_rng(7)
    for count in range(1, 41):
        values = drawn.lognormal(size=count)
        low, high = quantile_test(values, q=0, p=0.5).confidence_interval(0.95)
        interval = median_interval(values.tolist())
        if interval is None:
            assert count < 6 and math.isnan(low) and math.isnan(high)
        else:
            assert (interval.low, interval.high) == (low, high)


def test_a_tie_with_the_model_is_on_no_frontier():
    texts = sample_texts(20)
    base, variant = (
        row_of(table("x"), None, texts),
        row_of(table("x"), table("y", noise=0.1), texts),
    )

    def row(size, change, span, speed, speeds):
        times = replace(variant.token_times, speedup=speed, interval=Interval(*speeds, "sign-test"))
        return replace(
            variant,
            size_bytes=round(size * base.size_bytes),
            ratio=size,
            mean_nll_nats=base.mean_nll_nats * (1 + change),
            relative_change=change,
            change_interval=Interval(*span, "bootstrap-t"),
            token_times=times,
        )

    # As measured once: half precision again, its loss lower by 0.0001 nats.
    tie = row(1.001, -0.00003, (-0.0001, 0.00001), 0.75, (0.7, 0.8))
    int8 = row(0.52, 0.0043, (-0.0063, 0.0151), 0.95, (0.9, 1.1))
    channel = row(0.51, 0.0146, (-0.0063, 0.0265), 1.15, (0.97, 1.2))
    rows = [base, int8, channel, tie]
    assert worth_having(rows, "size") == [2, 1, 0]
    assert worth_having(rows, "speed") == [0]
    # What is certainly faster, or certainly better, is there.
    quick = row(1.0, 0.0146, (-0.0063, 0.0265), 1.15, (1.05, 1.2))
    better = row(1.0, -0.02, (-0.03, -0.01), 0.8, (0.7, 0.9))
    assert worth_having([base, quick, tie, better], "speed") == [1, 0, 3]
    assert worth_having([base, quick, tie, better], "size") == [3]


def test_the_frontier_is_what_the_definition_says():
    # The definition itself, compared pair by pair, on all small point sets of a grid.
    points = [(x, y) for x in range(4) for y in range(4)]
    for mask in range(1, 2**16, 97):
        chosen = [point for index, point in enumerate(points) if mask >> index & 1]
        beaten = [any(a <= x and b <= y and (a, b) != (x, y) for a, b in chosen) for x, y in chosen]
        expected = [index for index, lost in enumerate(beaten) if not lost]
        costs, losses = zip(*chosen, strict=True)
        assert sorted(frontier(costs, losses)) == expected
