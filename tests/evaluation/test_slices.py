"""Slices: each as the evaluation of its texts alone, with scipy by hand; columns, their values."""

import json
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from stored_runs import record
from table_model import TableModel, letter_vocabulary, sample_texts

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.evaluation.slices import NO_VALUE, OTHERS, partition
from fillmask_ui.records import Example
from fillmask_ui.runs import Plan, RunStore, compare_runs, perform, perform_rest
from fillmask_ui.show.slice_tables import slice_tables
from fillmask_ui.texts import GroupedTextChoice, open_texts

pytestmark = pytest.mark.quick
REFERENCE, CANDIDATE = TableModel(seed=1), TableModel(seed=1, noise=0.4)
TEXTS = sample_texts(90, seed=5, longest=30)
# Two large groups, one of a few texts, and two that are too small to stand alone.
GROUPS = ["news", "mail"] * 39 + ["law"] * 9 + ["ad", "ad", "poem"]
EXAMPLES = [
    Example(7 * place, text, group=group)
    for place, (text, group) in enumerate(zip(TEXTS, GROUPS, strict=True))
]
EXAMPLES_FROM_0 = [replace(example, id=place) for place, example in enumerate(EXAMPLES)]
CONFIGS = [
    EvaluationConfig(),
    *map(
        EvaluationConfig, ("pseudo-perplexity", "uniform", "bits-per-byte", "suffix", "unmasking")
    ),
]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.metric.name)
def test_a_slice_is_the_evaluation_of_its_texts_alone(config):
    summary = summarize(evaluate(REFERENCE, EXAMPLES, config, candidate=CANDIDATE), config=config)
    pair = summary.comparison
    assert [group.name for group in summary.model.by_group] == ["law", "mail", "news", OTHERS]
    assert summary.group_notes == (
        "values of the group with fewer than 5 texts: 2; they count together as (others)",
    )
    for place, name in enumerate(("law", "mail", "news", OTHERS)):
        own = {"ad", "poem"} if name == OTHERS else {name}
        texts = [example for example in EXAMPLES if example.group in own]
        alone = summarize(evaluate(REFERENCE, texts, config, candidate=CANDIDATE), config=config)
        change = pair.by_group[place]
        assert change.relative_change == pytest.approx(alone.comparison.relative_change, rel=1e-9)
        for groups, model in (
            (summary.model.by_group, alone.model),
            (summary.reference.by_group, alone.reference),
        ):
            group = groups[place]
            assert (group.name, group.tokens) == (name, model.tokens)
            assert group.texts == alone.texts
            assert group.value == pytest.approx(model.metric, rel=1e-12)
            assert group.mean_nll_nats == pytest.approx(model.mean_nll_nats, rel=1e-12)
            assert group.top1_accuracy == model.top1_accuracy
            if name == OTHERS:
                assert group.interval is change.relative_change_interval is None
                continue
            assert_close(group.interval, model.metric_interval)
            assert_close(change.relative_change_interval, alone.comparison.interval)
    # Also the slices by length hold every text once.
    assert sum(group.texts for group in summary.model.by_length) == summary.texts
    assert sum(change.tokens for change in pair.by_length) == summary.model.tokens


def assert_close(interval, expected):
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), rel=1e-9)


def test_the_change_of_a_group_is_that_of_scipys_paired_bootstrap():
    rows = [*evaluate(REFERENCE, EXAMPLES, candidate=CANDIDATE)]
    rows = [row for row in rows if getattr(row, "group", "") == "news"]
    change = summarize(rows).comparison.by_group[0]
    sums = [
        np.array([getattr(row, scores).nll_nats.sum() for row in rows])
        for scores in ("scores", "reference")
    ]
    drawn = stats.bootstrap(
        sums,
        lambda candidate, reference, axis: candidate.sum(axis) / reference.sum(axis) - 1,
        paired=True,
        n_resamples=5000,
        method="basic",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert change.relative_change == pytest.approx(sums[0].sum() / sums[1].sum() - 1)
    width = drawn.high - drawn.low
    interval = change.relative_change_interval
    assert interval.low == pytest.approx(drawn.low, abs=0.2 * width)
    assert interval.high == pytest.approx(drawn.high, abs=0.2 * width)


def by_hand(pairs):
    """The ratio of two sums over units less 1, and its interval on a log scale (delta method)."""
    x, n = np.array(pairs).T
    ratio, units = x.sum() / n.sum(), len(x)
    residuals = x - ratio * n
    error = math.sqrt((residuals**2).sum() * units / (units - 1)) / n.sum()
    factor = math.exp(stats.t.ppf(0.975, units - 1) * error / ratio)
    return ratio - 1, ratio / factor - 1, ratio * factor - 1


def test_changes_of_tokens_by_hand():
    rows = [*evaluate(REFERENCE, EXAMPLES, CONFIGS[1], candidate=CANDIDATE)]
    pair = summarize(rows, config=CONFIGS[1]).comparison
    changes = {change.name: change for change in pair.by_part}
    pairs = []
    for row in rows:
        chosen = row.parts == 2
        if chosen.any():
            pairs.append([scores.nll_nats[chosen].sum() for scores in (row.scores, row.reference)])
    change = changes["later sub-token"]
    assert change.texts == len(pairs)
    interval = change.relative_change_interval
    assert (change.relative_change, interval.low, interval.high) == pytest.approx(by_hand(pairs))
    # By frequency, blocks of texts are the units: of 31, by the ids.
    counts = np.bincount(np.concatenate([row.ids for row in rows]))
    blocks = np.zeros((31, 3))
    for row in rows:
        rare = (counts[row.true_ids] >= 30) & (counts[row.true_ids] < 100)
        terms = np.ones(len(rare)), row.scores.nll_nats, row.reference.nll_nats
        blocks[row.id % 31] += [term[rare].sum() for term in terms]
    (change,) = (change for change in pair.by_frequency if change.name == "30-99")
    interval = change.relative_change_interval
    assert change.tokens == blocks[:, 0].sum()
    expected = by_hand(blocks[blocks[:, 0] > 0][:, 1:])
    assert (change.relative_change, interval.low, interval.high) == pytest.approx(expected)


def test_two_tokenizers_have_slices_of_texts_alone():
    letters = TableModel(seed=2, vocabulary=letter_vocabulary())
    config = EvaluationConfig("pseudo-perplexity", max_tokens=24)
    rows = [*evaluate(letters, EXAMPLES, config, candidate=REFERENCE)]
    summary = summarize(rows, config=config)
    assert {change.name for change in summary.comparison.by_group} >= {"news", "mail"}
    assert summary.comparison.by_frequency == summary.comparison.by_part == ()
    assert len([*slice_tables(summary)]) == 1


def test_what_changed_most_comes_first():
    rows = evaluate(REFERENCE, EXAMPLES, candidate=CANDIDATE)
    for table in slice_tables(summarize(rows), "domain"):
        sure = [abs(row[1]) for row in table.rows if row[2] is not None]
        assert sure == sorted(sure, reverse=True) and len(sure) > 4
        assert all(row[2] is None for row in table.rows[len(sure) :])
    texts, _ = slice_tables(summarize(evaluate(REFERENCE, EXAMPLES)), "domain")
    assert texts.rows[0][0].startswith(("domain: ", "tokens of the text: "))
    losses = [row[1] for row in texts.rows if row[2] is not None]
    assert losses == sorted(losses, reverse=True)


def test_values_of_a_column():
    # Few numbers are taken as they are, in their order; blank ones are a value of their own.
    few = partition([str(number) for number in (10, 9, 2) for _ in range(5)] + [""] * 6)
    assert [*few.members] == ["2", "9", "10", NO_VALUE] and few.notes == ()
    # Many are cut into ranges with as many texts each, by numpy's quantiles.
    rng = np.random.default_rng(3)
    numbers = rng.normal(size=500).round(3)
    ranges = partition([*map(str, numbers), ""])
    assert [len(indices) for indices in ranges.members.values()][:5] == [100] * 5
    assert ranges.notes[0] == (
        f"the group column has {len({*numbers})} different numbers: they are cut into 5 ranges "
        "with about as many texts each"
    )
    cuts = np.quantile(numbers, [0.2, 0.4, 0.6, 0.8])
    bins = np.searchsorted(cuts, numbers, side="right")
    for number, (name, indices) in enumerate([*ranges.members.items()][:5]):
        assert [*indices] == [*np.flatnonzero(bins == number)]
        low, high = (float(bound.replace("−", "-")) for bound in name.split(" to "))
        assert (low, high) == (numbers[indices].min(), numbers[indices].max())
    years = partition([str(1900 + year % 60) for year in range(600)])
    assert next(iter(years.members)) == "1900 to 1911"
    # Of very many values those with the most texts are listed, and the others count together.
    many = partition([f"user {user}" for user in range(10_000) for _ in range(5 + (user < 50))])
    assert len(many.members) == 51 and len(many.members[OTHERS]) == 9_950 * 5
    assert "10,000 values: the 50 with the most texts are listed" in many.notes[0]
    ids = partition([f"id-{text}" for text in range(10_000)])
    assert [*ids.members] == [OTHERS]
    assert ids.notes == (
        "none of the 10,000 values of the group column has 5 texts: name a column with fewer "
        "values (--group-column), or measure more texts",
    )
    assert partition(["", ""]).members == {}


def written(folder, layout):
    rows = [
        {"body": text, "Topic": group, "meta": {"year": 1900 + place % 3}, "tags": [group]}
        for place, (text, group) in enumerate(zip(TEXTS, GROUPS, strict=True))
    ]
    path = folder / f"texts.{layout}"
    if layout == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif layout == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        mark = {"csv": ",", "tsv": "\t"}[layout]
        lines = [mark.join((row["Topic"], row["body"])) for row in rows]
        path.write_text("\n".join([mark.join(("Topic", "body")), *lines]) + "\n")
    return str(path)


def choice(path, column="Topic", **more):
    return GroupedTextChoice(path, column="body", group_column=column, **more).source()


@pytest.mark.parametrize("layout", ["csv", "tsv", "jsonl", "parquet"])
def test_the_group_travels_with_its_text(tmp_path, layout):
    path = written(tmp_path, layout)
    with open_texts(choice(path, "topic")) as texts:
        read = {example.id: (example.text, example.group) for example in texts}
    assert read == dict(enumerate(zip(TEXTS, GROUPS, strict=True)))
    with pytest.raises(DataError, match=r"no column 'topics'; it has .*'Topic'.*--group-column"):
        open_texts(choice(path, "topics"))
    if layout in ("jsonl", "parquet"):
        with open_texts(choice(path, "meta.year")) as texts:
            assert {example.group for example in texts} == {"1900", "1901", "1902"}
        with pytest.raises(DataError, match=r"'tags' holds list instead of a value to group by"):
            open_texts(choice(path, "tags"))
    assert str(choice(path)) != str(replace(choice(path), group_column=None))


def test_a_group_may_be_missing_and_plain_text_has_none(tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text(
        '{"text": "a cat", "topic": "x"}\n{"text": "a dog"}\n{"text": "b", "topic": 3}\n'
    )
    with open_texts(
        GroupedTextChoice(str(path), group_column="topic", shuffle=False).source()
    ) as texts:
        assert [example.group for example in texts] == ["x", "", "3"]
    with pytest.raises(OptionError, match=r"plain text has no column 'topic'"):
        GroupedTextChoice(str(tmp_path / "texts.txt"), group_column="topic").source()


def test_groups_of_data_frames_and_lists_of_rows():
    rows = [{"text": text, "topic": group} for text, group in zip(TEXTS, GROUPS, strict=True)]
    expected = summarize(evaluate(REFERENCE, EXAMPLES_FROM_0))
    table = pa.Table.from_pylist(rows).to_pandas()
    for data in (rows, table):
        summary = summarize(evaluate(REFERENCE, data, group_column="topic"))
        assert summary.model.by_group == expected.model.by_group
    with pytest.raises(DataError, match=r"no column 'topics'.*'text', 'topic'.*group_column=NAME"):
        [*evaluate(REFERENCE, rows, group_column="topics")]
    with pytest.raises(OptionError, match=r"leave out group_column="):
        [*evaluate(REFERENCE, TEXTS, group_column="topic")]


def test_stored_runs_carry_the_group(tmp_path):
    store, path = RunStore(tmp_path / "runs"), written(tmp_path, "csv")
    plan = Plan(source=choice(path))
    *_, last = perform(plan, store, lambda _: CANDIDATE)
    run = store.open(last.info.name)
    assert "|group:Topic|" in run.info.signature
    lines = run.rows_path.read_bytes().splitlines(keepends=True)
    whole = run.info.result
    assert whole["by_group"].keys() == {"law", "mail", "news", OTHERS}
    # Resumed, it ends as if it had never stopped.
    run.rows_path.write_bytes(b"".join(lines[:20]))
    *_, last = perform_rest(run.info.name, store, lambda _: CANDIDATE)
    assert last.info.result == whole
    # A text in another group is told, and so is another text.
    run.rows_path.write_bytes(b"".join(lines[:20]))
    content = (tmp_path / "texts.csv").read_text()
    (tmp_path / "texts.csv").write_text(content.replace("\nnews,", "\nNews,"))
    with pytest.raises(DataError, match=r"was in the group 'news' when run .* is in 'News' now"):
        [*perform_rest(run.info.name, store, lambda _: CANDIDATE)]
    # Beside a run without groups, those of the other count.
    plain = record(RunStore(tmp_path / "plain"), REFERENCE, TEXTS, config=run.info.config)
    grouped = record(
        RunStore(tmp_path / "grouped"), CANDIDATE, EXAMPLES_FROM_0, config=run.info.config
    )
    for first, second in ((plain, grouped), (grouped, plain)):
        assert {group.name for group in compare_runs(first, second).comparison.by_group} == {
            *whole["by_group"]
        }
