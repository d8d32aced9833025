"""The metric `unmasking`: rows against a plain loop, figures by hand, two models, replays."""

import json
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pytest
from evaluated import MODEL, TEXTS, measured
from evaluation import test_plan, test_replay, test_runs
from explore_page import session_of
from scipy import stats
from table_model import TableModel, log_softmax_at
from ui.test_explore_views import tokens_of

from fillmask_ui.evaluation import METRICS, EvaluatedText, EvaluationConfig, evaluate, summarize
from fillmask_ui.evaluation.catalogue import figure
from fillmask_ui.evaluation.metrics import Metric
from fillmask_ui.evaluation.metrics.metric import replay
from fillmask_ui.evaluation.rows import nested
from fillmask_ui.evaluation.running_sums import ExtraSums
from fillmask_ui.features.unmask.unmasking_options import UnmaskingOptions
from fillmask_ui.masking import hide_as_masks, hideable
from fillmask_ui.options import option
from fillmask_ui.runs import Plan, prepare_info, resume, start
from fillmask_ui.schema import from_values
from fillmask_ui.show.figures import figures_table
from fillmask_ui.ui.evaluate.result_view import side_by_side_html
from fillmask_ui.ui.run_tokens import reading_values, replayed

NOISY = TableModel(seed=1, noise=0.4, noise_seed=2)
DRAWN = UnmaskingOptions(
    order="none", temperature=1.0, top_k=8, remask=1, max_steps=3, pieces="fitting"
)


def unmasking(share=0.4, **own):
    return EvaluationConfig("unmasking", hidden_share=share, **own)


def plain(rows):
    return {index: row.to_dict() for index, row in measured(rows).items()}


@pytest.mark.parametrize("order", ["top_prob", "left_to_right"])
@pytest.mark.parametrize("max_steps", [None, 1, 2])
def test_rows_hold_what_the_model_says_at_each_step(order, max_steps):
    """Of both models, from JSON, against a softmax of what `replay` says that they read."""
    config = unmasking(decoding=UnmaskingOptions(order=order, max_steps=max_steps))
    for row in measured(evaluate(NOISY, TEXTS[:15], config, candidate=MODEL)).values():
        stored = from_values(EvaluatedText, nested(row.to_dict()))
        assert stored.to_dict() == row.to_dict()
        for model, scores in ((MODEL, stored.scores), (NOISY, stored.reference)):
            left = len(row.cols)
            for number in range(max_steps or left, 0, -1):
                left -= left // number
                assert (scores.steps > (max_steps or len(row.cols)) + 1 - number).sum() == left
            if order == "left_to_right":
                assert scores.steps.tolist() == sorted(scores.steps)
            for entry in range(len(row.cols)):
                reading = replay(stored, config.metric, model.vocabulary, entry, scores)
                assert (reading.ids[row.cols[reading.scored]] == model.vocabulary.mask_id).all()
                assert entry in reading.scored
                p = log_softmax_at(model, reading.ids, reading.position).exp().numpy()
                special = list(model.vocabulary.special_ids)
                written = int(np.where(np.isin(np.arange(len(p)), special), 0, p).argmax())
                assert scores.written_ids[entry] == written
                assert scores.written_tokens[entry] == model.vocabulary.token(written)
                assert scores.written_probabilities[entry] == pytest.approx(p[written], rel=1e-6)
                assert scores.nll_nats[entry] == pytest.approx(-np.log(p[reading.true_id]))
                assert scores.entropy_nats[entry] == pytest.approx(stats.entropy(p))
                assert scores.top_probabilities[entry] == pytest.approx(p.max(), rel=1e-6)
                assert scores.ranks[entry] == 1 + (p > p[reading.true_id]).sum()


def test_steps_that_fill_nothing_ask_nothing_of_the_model():
    """As many steps as masks write the same, one mask a step, and cost the same calls."""
    few, many = TableModel(seed=1), TableModel(seed=1)
    plain_rows = measured(evaluate(few, TEXTS[:10], unmasking()))
    options = UnmaskingOptions(max_steps=50)
    rows = measured(evaluate(many, TEXTS[:10], unmasking(decoding=options)))
    for index, row in rows.items():
        one_each = plain_rows[index].scores
        assert row.scores.written_ids.tolist() == one_each.written_ids.tolist()
        assert np.array_equal(row.scores.steps, one_each.steps + 50 - len(row.cols))
        np.testing.assert_allclose(row.scores.nll_nats, one_each.nll_nats)
    assert len(many.calls) == len(few.calls)


@pytest.mark.parametrize("share", [0.01, 0.15, 0.5, 1.0])
def test_the_share_is_an_exact_count_drawn_by_seed_and_text(share):
    rows = measured(evaluate(MODEL, TEXTS, unmasking(share)))
    for row in rows.values():
        special = MODEL.vocabulary.special_ids
        can_hide = [place for place, i in enumerate(row.ids) if i not in special]
        assert len(row.cols) == max(1, round(share * len(can_hide)))
        assert set(row.cols) <= set(can_hide)
        assert (row.shown_ids == MODEL.vocabulary.mask_id).all()
    other = measured(evaluate(MODEL, TEXTS, unmasking(share, seed=7)))
    same = [np.array_equal(rows[index].cols, other[index].cols) for index in rows]
    assert all(same) == (share == 1.0)


@pytest.mark.parametrize("decoding", [UnmaskingOptions(), DRAWN], ids=["best", "drawn"])
def test_neither_batches_nor_threads_nor_what_is_done_change_a_row(decoding):
    config = unmasking(decoding=decoding)
    threaded = TableModel(seed=1)
    threaded.concurrent_calls = 3
    rows = plain(evaluate(MODEL, TEXTS, config))
    for tokens in (1, 40, 3000):
        assert plain(evaluate(threaded, TEXTS, replace(config, batch_tokens=tokens))) == rows
    remaining = plain(evaluate(MODEL, TEXTS, config, done=range(0, 60, 2)))
    assert remaining == {index: row for index, row in rows.items() if index % 2}
    assert plain(evaluate(MODEL, [TEXTS[0]], config)) == {0: rows[0]}


def test_two_models_fill_the_same_gaps_each_in_its_own_way():
    config = unmasking()
    both = measured(evaluate(NOISY, TEXTS, config, candidate=MODEL))
    first = measured(evaluate(MODEL, TEXTS, config))
    second = measured(evaluate(NOISY, TEXTS, config))
    differ = 0
    for index, row in both.items():
        assert row.cols.tolist() == first[index].cols.tolist() == second[index].cols.tolist()
        alone = second[index].to_dict()
        assert row.to_dict()["reference"] == {name: alone[name] for name in vars(row.scores)}
        assert row.scores.written_ids.tolist() == first[index].scores.written_ids.tolist()
        assert row.difference is None
        differ += row.scores.written_ids.tolist() != row.reference.written_ids.tolist()
    assert differ > 5
    summary = summarize(both.values(), config=config)
    assert summary.comparison.mean_kl_nats is None
    total, base = (
        sum(row.scores.nll_nats.sum() for row in rows.values()) for rows in (first, second)
    )
    expected = total / base - 1
    assert summary.comparison.relative_change == pytest.approx(expected, rel=1e-12)
    assert summary.reference.extra == summarize(second.values(), config=config).model.extra


def part_of(row, index, positions, words, perplexity):
    """A row with some of its hidden positions, where these words were written."""
    chosen = np.searchsorted(row.cols, positions)
    names = (*("nll_nats", "ranks", "entropy_nats", "top_ids", "top_probabilities"), "steps")
    scores = replace(
        row.scores,
        **{name: getattr(row.scores, name)[chosen] for name in names},
        written_ids=np.array([MODEL.vocabulary.ids[word] for word in words]),
        pseudo_perplexity=perplexity,
    )
    names = ("cols", "kinds", "shown_ids", "parts", "spans")
    fields = {name: getattr(row, name)[chosen] for name in names}
    return replace(row, id=index, scores=scores, **fields)


def test_figures_by_hand():
    """Of `the cat sat on the mat`, positions from 1."""
    (row,) = measured(evaluate(MODEL, ["the cat sat on the mat"], unmasking(1.0))).values()
    rows = [
        part_of(row, 0, [2, 3, 5], ["cat", "sat", "mat"], 4.0),  # `the` stood at the last
        part_of(row, 1, [1, 2], ["the", "cat"], 10.0),
        part_of(row, 2, [4], ["cat"], 1.0),  # `on` stood there
    ]
    figures = summarize(rows, config=unmasking(1.0)).model.extra
    assert figures.exact_match == 1 / 3
    assert figures.infill_token_accuracy == 4 / 6
    assert figures.mean_pseudo_perplexity == 15 / 3
    # cat sat | mat, the cat, cat: 4 different tokens, 2 different pairs of neighbours, 6 written.
    assert figures.distinct_1 == 4 / 6
    assert figures.distinct_2 == 2 / 6
    expected = stats.binomtest(1, 3).proportion_ci(method="wilson")
    interval = figures.exact_match_interval
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), rel=1e-6)


def test_the_pseudo_perplexity_is_that_of_the_metric_of_that_name():
    """For finished texts that tokenize to what was written."""
    vocabulary, config = MODEL.vocabulary, EvaluationConfig("pseudo-perplexity")
    compared = 0
    for row in measured(evaluate(MODEL, TEXTS, unmasking())).values():
        ids = row.ids.copy()
        ids[row.cols] = row.scores.written_ids
        inner = ids[1:-1].tolist()
        text = " ".join(map(vocabulary.token, inner)).replace(" ##", "")
        if vocabulary.encode(text).ids != tuple(ids.tolist()):
            continue
        expected = summarize(evaluate(MODEL, [text], config), config=config).model.metric
        assert row.scores.pseudo_perplexity == pytest.approx(expected, rel=1e-9)
        compared += 1
    assert compared > 10


def test_a_metric_is_a_class_and_a_row(monkeypatch, store):
    """Nothing else: it is measured, stored, resumed, replayed, summarized, shown and exported."""

    @dataclass(frozen=True)
    class Words:
        words: int = figure("words measured")

    class WordSums(ExtraSums):
        def __init__(self):
            self.words = np.zeros(1, int)

        def add(self, row, scores):
            self.words += len(row.text.split())

        def figures(self, order, quick):
            return Words(int(self.words[0]))

    @dataclass(frozen=True)
    class FirstTokens(Metric):
        name = "first-tokens"
        label = "First tokens"
        note = "The first tokens of each text are hidden."
        hides = "the tokens at the beginning"
        figure_label = "Mean loss, beginning hidden"
        figure_key = "loss_at_the_beginning"

        first: int = option(2, "How many tokens at the beginning.", least=1)

        def hide(self, encoding, vocabulary, rng):
            places = np.flatnonzero(hideable(encoding.ids, vocabulary.special_ids))
            return hide_as_masks(encoding, vocabulary, places[: self.first])

        def extra_sums(self):
            return WordSums()

        @property
        def signature(self):
            return (f"first:{self.first}",)

    monkeypatch.setitem(METRICS, "first-tokens", FirstTokens)
    choices = ("fillmask_ui.evaluation.evaluation_config.check_options", lambda _: None)
    monkeypatch.setattr(*choices)  # the names of metrics, read when the module was imported
    config = EvaluationConfig("first-tokens", first=3)
    assert EvaluationConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert config.signature.startswith("metric:first-tokens|first:3|")
    with start(store, prepare_info(config, MODEL, baseline=NOISY)) as recorder:
        rows = recorder.measure(MODEL, TEXTS, baseline=NOISY)
        list(islice(rows, 5))
        rows.close()
    with resume(store, recorder.name) as recorder:
        list(recorder.measure(MODEL, TEXTS, baseline=NOISY))
    run = store.open(recorder.name)
    assert {tuple(row.cols) for row in run.rows() if len(row.ids) > 5} == {(1, 2, 3)}
    summary = run.summary()
    assert summary.to_dict() == run.info.result
    row = next(run.rows())
    assert (replay(row, config.metric, MODEL.vocabulary, 0, row.scores).ids[row.cols] == 4).all()
    assert summary.to_dict()["words"] == sum(len(text.split()) for text in TEXTS)
    assert summary.to_dict()["loss_at_the_beginning"] == summary.model.mean_nll_nats
    words = summary.model.extra.words
    shown = figures_table(summary).rows
    assert shown[0][0] == "Mean loss, beginning hidden"
    assert ("words measured", words, None, words, None) in shown


def test_a_text_that_was_filled_is_read_as_it_stood_in_that_step(tmp_path):
    config = EvaluationConfig("unmasking", hidden_share=0.6)
    model = TableModel(1)
    tokens = tokens_of(tmp_path, config, model)
    steps = [int(token.scores.steps[token.entry]) for token in tokens]
    assert sorted(steps) == list(range(1, len(tokens) + 1))  # one token a step
    for token, step in zip(tokens, steps, strict=True):
        again = replayed(session_of(table=model), token, top_k=3)
        assert not again.changed
        values = reading_values(again)
        hidden = [own for own in values["tokens"] if own.number]
        assert values["chosen"].step == step
        assert sorted(own.state for own in hidden) == sorted(
            ["mask", *["written"] * (step - 1), *["along"] * (len(tokens) - step)]
        )
        assert all(own.read_word == own.written for own in hidden if own.state == "written")
        html = side_by_side_html(session_of(table=model), [token])
        assert f"The run hid {len(tokens)} tokens of this text and filled them" in html
        assert f"Step {step} wrote “{values['chosen'].written}”." in html
        assert html.count("in place of") == step - 1


def test_every_choice_survives_run_json():
    decoding = UnmaskingOptions(max_steps=4, top_p=0.9)
    config = EvaluationConfig("unmasking", hidden_share=0.3, decoding=decoding)
    test_plan.test_every_choice_survives_run_json(Plan(config=config))


FILLED = [
    EvaluationConfig("unmasking", hidden_share=0.5),
    EvaluationConfig(
        "unmasking",
        hidden_share=0.5,
        max_tokens=7,
        decoding=UnmaskingOptions(order="none", temperature=1.0, max_steps=2, pieces="fitting"),
    ),
]


@pytest.mark.parametrize("config", FILLED, ids=lambda config: config.signature)
def test_a_replayed_token_has_the_loss_of_the_run(tiny_models, config):
    test_replay.test_a_replayed_token_has_the_loss_of_the_run(tiny_models, "roberta", config)


def test_a_run_killed_at_any_moment_ends_with_the_same_numbers(tmp_path, monkeypatch):
    same_numbers = test_runs.test_a_run_killed_at_any_moment_ends_with_the_same_numbers
    same_numbers(tmp_path, monkeypatch, "unmasking")
