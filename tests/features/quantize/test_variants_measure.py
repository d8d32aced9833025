"""Rows of variants beside their baseline: what the evaluator says, speeds, and the frontier."""

import itertools
import json
import math
from dataclasses import replace

from table_model import TableModel, sample_texts

from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.features.quantize.measure_variants import (
    BASELINE,
    Subject,
    VariantFigures,
    frontier,
    measure_variant,
)
from fillmask_ui.models import ModelChoice, load_choice, load_model
from fillmask_ui.records import Example
from fillmask_ui.runs import Plan, RunStore, perform
from fillmask_ui.schema import from_own_values
from fillmask_ui.texts import TextSource, open_texts


def steps_of(base, variant, texts):
    examples = [Example(n, own) if isinstance(own, str) else own for n, own in enumerate(texts)]
    return list(measure_variant(base, variant, examples))


def row_of(*arguments):
    return steps_of(*arguments)[-1]


def table(scheme, **options):
    return Subject(scheme, TableModel(**options), f"table:{scheme}")


def test_a_row_is_what_eval_prints(tmp_path):
    source, config = TextSource(samples=12), EvaluationConfig()
    plan = Plan(ModelChoice("embedded:int8"), ModelChoice("embedded"), config, source)
    *_, last = perform(plan, RunStore(tmp_path), load_choice)
    printed = RunStore(tmp_path).open(last.info.name).info.result

    base = Subject("", load_model("embedded"), "embedded")
    variant = Subject("int8", load_model("embedded:int8"), "embedded:int8")
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
        row_of(table("x"), own, texts) for own in (None, table("noisy", noise=0.3), table("x"))
    )
    assert (first.scheme, first.reference, first.ratio) == (BASELINE, "table:x", 1.0)
    assert (first.relative_change, first.top1_agreement, first.kl_nats) == (0.0, 1.0, 0.0)
    assert first.speedup == 1.0
    assert (noisy.scheme, noisy.reference) == ("noisy", "table:noisy")
    assert noisy.relative_change != 0 and noisy.kl_nats > 0
    assert first.measured == noisy.measured
    assert (same.relative_change, same.kl_nats, same.top1_agreement) == (0.0, 0.0, 1.0)
    assert same.verdict == "NEAR_CHANCE"  # as table models are
    broken = replace(noisy, mean_nll_nats=math.inf, relative_change=math.inf)
    for row in (first, noisy, broken):
        assert from_own_values(VariantFigures, json.loads(json.dumps(row.to_dict()))) == row


def test_speeds_are_of_the_same_turns():
    # Both models are asked for the timed texts again in each turn, the variant first.
    base, variant = table("x"), table("y", noise=0.1)
    order = []
    for name, own in (("base", base.model), ("variant", variant.model)):
        call = own.logits_at
        own.logits_at = lambda *a, name=name, call=call: order.append(name) or call(*a)
    row = row_of(base, variant, sample_texts(20, longest=40))
    changes = [b for a, b in itertools.pairwise(order) if a != b]
    assert changes.count("variant") >= 7
    assert row.speedup == row.tokens_per_second / row.baseline_tokens_per_second > 0
    assert row.sentence_ms is not None and row.baseline_sentence_ms is not None


def test_the_frontier_is_what_the_definition_says():
    # The definition itself, compared pair by pair, on all small point sets of a grid.
    points = [(x, y) for x in range(4) for y in range(4)]
    for mask in range(1, 2**16, 97):
        own = [point for place, point in enumerate(points) if mask >> place & 1]
        beaten = [any(a <= x and b <= y and (a, b) != (x, y) for a, b in own) for x, y in own]
        expected = [place for place, lost in enumerate(beaten) if not lost]
        costs, losses = zip(*own, strict=True)
        assert sorted(frontier(costs, losses)) == expected
