"""Rows of variants beside their baseline: what the evaluator says, and speeds."""

import itertools
import json
import math
from dataclasses import replace

import pytest
from table_model import TableModel, sample_texts

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.models import ModelChoice, load_choice, load_model
from fillmask_ui.quantizing.measure_variants import (
    BASELINE,
    Progress,
    Subject,
    VariantFigures,
    measure_variant,
    measured_signature,
)
from fillmask_ui.runs import Plan, RunStore, perform
from fillmask_ui.schema import from_own_values
from fillmask_ui.texts import TextSource, open_texts


def steps_of(base, variants, texts, config=None):
    return [step for own in (None, *variants) for step in measure_variant(base, own, texts, config)]


def rows_of(*arguments):
    return [step for step in steps_of(*arguments) if isinstance(step, VariantFigures)]


def table(scheme, **options):
    return Subject(scheme, TableModel(**options), f"table:{scheme}")


def test_a_row_is_what_eval_prints(tmp_path):
    source, config = TextSource(samples=12), EvaluationConfig(seed=7)
    plan = Plan(ModelChoice("embedded:int8"), ModelChoice("embedded"), config, source)
    *_, last = perform(plan, RunStore(tmp_path), load_choice)
    printed = RunStore(tmp_path).open(last.info.name).info.result

    base = Subject("", load_model("embedded"), "embedded")
    variant = Subject("int8", load_model("embedded:int8"), "embedded:int8")
    _, row = rows_of(base, [variant], list(open_texts(source)), config)

    assert row.mean_nll_nats == printed["mean_nll_nats"]
    assert row.to_dict()["mean_nll_interval_95"] == printed["mean_nll_interval_95"]
    assert row.relative_change == printed["relative_change"]
    assert row.to_dict()["relative_change_interval_95"] == printed["relative_change_interval_95"]
    assert row.verdict == printed["verdict"]
    assert row.top1_agreement == printed["comparison"]["agreement"]
    assert row.kl_nats == printed["comparison"]["mean_kl_nats"]
    assert row.texts == printed["texts"]
    signature = variant.model.signature
    assert row.size_bytes == signature.size_bytes
    assert row.ratio == signature.size_bytes / base.model.signature.size_bytes
    assert row.stamp.sha256 == signature.sha256
    assert row.stamp.runtime == f"onnxruntime {signature.versions['onnxruntime']}"
    assert row.stamp.cpu_features == signature.cpu_features
    assert (row.stamp.graph_optimization, row.stamp.precision) == ("all", "int8")


def test_the_stamp_knows_another_graph_optimization():
    model = load_model("embedded:int8", graph_optimization="basic", x64_quant_precision="on")
    base = Subject("", model, "embedded:int8")
    (row,) = rows_of(base, [], ["The cat sat on the mat.", "The dog ran to the river."])
    assert row.stamp.graph_optimization == "basic"
    assert row.stamp.x64_quant_precision == "on"


def test_the_baseline_has_the_first_row():
    first, second = rows_of(table("x"), [table("noisy", noise=0.3)], sample_texts(20))
    assert (first.scheme, first.reference, first.ratio) == (BASELINE, "table:x", 1.0)
    assert (first.relative_change, first.top1_agreement, first.kl_nats) == (0.0, 1.0, 0.0)
    assert first.speedup == 1.0
    assert (second.scheme, second.reference) == ("noisy", "table:noisy")
    assert second.relative_change != 0
    assert second.kl_nats > 0
    assert first.measured == second.measured


def test_the_same_model_twice_differs_in_nothing():
    _, row = rows_of(table("x"), [table("x")], sample_texts(20))
    assert (row.relative_change, row.kl_nats, row.top1_agreement) == (0.0, 0.0, 1.0)
    assert row.verdict == "PASS"


def test_speeds_are_of_the_same_turns():
    _, row = rows_of(table("x"), [table("y", noise=0.1)], sample_texts(20, longest=40))
    assert row.tokens_per_second > 0
    assert row.speedup == row.tokens_per_second / row.baseline_tokens_per_second
    assert row.sentence_ms is not None
    assert row.baseline_sentence_ms is not None
    # Both models are asked for the timed texts again in each turn, the variant first.
    base, variant = table("x"), table("y", noise=0.1)
    order = []
    for name, own in (("base", base.model), ("variant", variant.model)):
        call = own.logits_at
        own.logits_at = lambda *a, name=name, call=call: order.append(name) or call(*a)
    rows_of(base, [variant], sample_texts(20, longest=40))
    changes = [b for a, b in itertools.pairwise(order) if a != b]
    assert changes.count("variant") >= 7


def test_an_example_hides_the_word_where_losses_differ_most():
    texts = sample_texts(20)
    base, variant = table("x"), table("y", noise=0.3)
    _, row = rows_of(base, [variant], texts)
    summary = summarize(evaluate(variant.model, texts, baseline=base.model))
    for token in summary.most_different:
        joined = token.text[: token.start][-1:].isalnum() or token.text[token.end :][:1].isalnum()
        if not joined:
            break
    assert row.example == f"{token.text[: token.start]}[MASK]{token.text[token.end :]}"


def test_texts_without_a_sentence_have_no_latency():
    _, row = rows_of(table("x"), [table("y", noise=0.1)], ["cat.__ the.__ dog.__"])
    assert row.sentence_ms is None


def test_a_model_near_chance_is_told():
    _, row = rows_of(table("x"), [table("flat", scale=0)], sample_texts(20))
    assert "the model is near chance" in row.alarms[0]
    assert all("unchanged" not in alarm for alarm in row.alarms)


def test_progress_grows_to_the_end():
    steps = steps_of(table("x"), [table("a", noise=0.1)], sample_texts(30))
    fractions = [step.fraction for step in steps if isinstance(step, Progress)]
    half = fractions.index(0.95) + 1
    assert fractions == sorted(fractions[:half]) + sorted(fractions[half:])
    assert fractions[0] >= 0
    assert fractions[-1] <= 1
    assert {step.message for step in steps if isinstance(step, Progress)} == {
        "Measuring baseline…",
        "Timing baseline…",
        "Measuring a…",
        "Timing a…",
    }


def test_rows_are_stored_as_json():
    for row in rows_of(table("x"), [table("a", noise=0.1)], sample_texts(20)):
        assert from_own_values(VariantFigures, json.loads(json.dumps(row.to_dict()))) == row
    broken = replace(row, mean_nll_nats=math.inf, relative_change=math.inf)
    assert from_own_values(VariantFigures, json.loads(json.dumps(broken.to_dict()))) == broken


def test_rows_of_other_texts_or_masks_do_not_compare():
    config = EvaluationConfig(max_tokens=64)
    texts = sample_texts(5)
    own = measured_signature(config, texts)
    assert own == measured_signature(config, list(texts))
    assert own != measured_signature(config, texts[:4])
    assert own != measured_signature(config, [*texts[:4], "another"])
    assert own != measured_signature(EvaluationConfig(seed=1, max_tokens=64), texts)


def test_nothing_to_measure():
    with pytest.raises(DataError, match="no text could be measured"):
        rows_of(table("x"), [], ["", " "])
