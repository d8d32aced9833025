"""The metric `pairs`: figures by hand, two models, resumed and sharded runs, columns, bad data."""

import csv
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from evaluated import assert_alike, measured
from scipy import stats
from table_model import WORDS, TableModel, letter_vocabulary, log_softmax_at, sample_texts

from fillmask_ui import EvaluationConfig, evaluate, summarize
from fillmask_ui.errors import DataError, FillmaskError, OptionError
from fillmask_ui.evaluation.metrics.pairs import margin_nats
from fillmask_ui.evaluation.rows import EvaluatedText, nested
from fillmask_ui.records import SkippedText
from fillmask_ui.runs import Plan, RunStore, compare_runs, perform, perform_rest
from fillmask_ui.schema import from_values
from fillmask_ui.texts import TextSource, open_texts

pytestmark = pytest.mark.quick
MODEL, OTHER = TableModel(seed=1), TableModel(seed=7)
GIVEN = [
    (text, WORDS[place % len(WORDS)] + text[text.index(" ") :], "ab"[place % 2])
    for place, text in enumerate(sample_texts(70, seed=5))
    if " " in text and text.split()[0] != WORDS[place % len(WORDS)]
][:40]
PAIRS = EvaluationConfig("pairs")


def pll(model, text):
    rows = evaluate(model, [text], EvaluationConfig("pseudo-perplexity"))
    return -sum(row.scores.nll_nats.sum() for row in rows)


def test_figures_are_those_of_sums_by_hand():
    summary = summarize(evaluate(OTHER, GIVEN, PAIRS, candidate=MODEL), config=PAIRS)
    margins, base = (
        np.array([pll(model, better) - pll(model, worse) for better, worse, _ in GIVEN])
        for model in (MODEL, OTHER)
    )
    right, baseline_right, values = margins > 0, base > 0, summary.to_dict()
    assert 0 < right.sum() < 40
    assert values["pair_accuracy"] == right.mean()
    assert values["pairs"] == values["texts"] == 40
    span = stats.binomtest(int(right.sum()), 40).proportion_ci(method="wilson")
    assert values["pair_accuracy_interval_95"] == pytest.approx([span.low, span.high])
    assert values["interval_95"] == values["pair_accuracy_interval_95"]
    assert values["mean_margin_nats"] == pytest.approx(margins.mean())
    of_a = [group == "a" for *_, group in GIVEN]
    assert values["by_group"]["a"]["value"] == right[of_a].mean()
    won, lost = int((right & ~baseline_right).sum()), int((baseline_right & ~right).sum())
    assert won + lost > 3
    pair = values["comparison"]
    assert (pair["pairs_won"], pair["pairs_lost"]) == (won, lost)
    assert pair["pair_accuracy_difference"] == (won - lost) / 40
    assert values["relative_change"] == pytest.approx(right.mean() / baseline_right.mean() - 1)
    first = summary.model.extra.examples[0]
    assert abs(first.change_nats) == pytest.approx(np.abs(margins - base).max())


def test_fewer_right_is_worse_and_more_is_better():
    """On the pairs that the first model has right, each counted six times."""
    first = measured(evaluate(MODEL, GIVEN, PAIRS))
    easy = {index for index, row in first.items() if margin_nats(row, row.scores) > 0}
    outcomes = []
    for model, base in ((MODEL, OTHER), (OTHER, MODEL)):
        rows = [*evaluate(base or model, GIVEN, PAIRS, candidate=model if base else None)]
        selected = [row for row in rows if row.id in easy] * 6
        numbered = (replace(row, id=number) for number, row in enumerate(selected))
        pair = summarize(numbered, config=PAIRS).comparison
        outcomes.append((pair.relative_change > 0, pair.verdict.label))
    assert outcomes == [(True, "PASS"), (False, "REGRESSION")]


def test_two_tokenizers_each_rank_by_their_own():
    spelled = TableModel(seed=3, vocabulary=letter_vocabulary())
    summary = summarize(evaluate(spelled, GIVEN, PAIRS, candidate=MODEL), config=PAIRS)
    alone = summarize(evaluate(spelled, GIVEN, PAIRS), config=PAIRS)
    assert summary.texts == 40
    assert summary.reference.extra.pair_accuracy == alone.model.metric
    assert summary.comparison.extra.pairs_lost >= 0


def test_ties_are_wrong_and_what_cannot_be_a_pair_is_skipped():
    same_tokens = ("the cat sat", "the  cat sat")
    pairs = [same_tokens, ("the cat", "the cat"), ("a dog", " "), ("a cat", "the " * 90)]
    rows = [*evaluate(MODEL, pairs, PAIRS)]
    reasons = {row.id: row.reason for row in rows if isinstance(row, SkippedText)}
    assert reasons[1] == "both sentences are the same"
    assert reasons[2] == "empty or blank"
    assert reasons[3] == "longer than the model takes"
    written = summarize(rows, config=PAIRS).model.extra
    assert (written.pairs, written.ties, written.pair_accuracy) == (1, 1, 0.0)


@pytest.mark.parametrize("pairs", [["a cat"], [("a cat",)], [("a", 3)], "a cat"])
def test_what_is_no_pair_is_said_in_a_line(pairs):
    with pytest.raises(FillmaskError, match=r"pair|one text"):
        [*evaluate(MODEL, pairs, PAIRS)]


def test_rows_go_to_json_and_back():
    rows = [*measured(evaluate(OTHER, GIVEN, PAIRS, candidate=MODEL)).values()]
    lines = [json.dumps(row.to_dict()) for row in rows]
    stored = [from_values(EvaluatedText, nested(json.loads(line))) for line in lines]
    assert [json.dumps(row.to_dict()) for row in stored] == lines
    whole = summarize(rows, config=PAIRS).to_dict()
    assert_alike(summarize(stored[::-1], config=PAIRS).to_dict(), whole)


def write(path, names, rows=GIVEN):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    return TextSource("file", str(path), shuffle=False)


def test_a_stopped_run_resumes_and_two_runs_compare(tmp_path):
    plan = Plan(config=PAIRS, source=write(tmp_path / "p.csv", ["good", "bad", "phenomenon"]))
    models, store = {"first": MODEL, "second": OTHER}, RunStore(tmp_path / "runs")

    def run(name):
        named_plan = replace(plan, model=replace(plan.model, reference=name))
        *_, last = perform(named_plan, store, lambda choice: models[choice.reference])
        return store.open(last.info.name)

    first, second = run("first"), run("second")
    lines = first.rows_path.read_bytes().splitlines(keepends=True)
    first.rows_path.write_bytes(b"".join(lines[:7]))
    *_, last = perform_rest(first.info.name, store, lambda choice: models[choice.reference])
    assert last.info.result == first.info.result
    compared = compare_runs(second, store.open(first.info.name))
    rows, size = evaluate(OTHER, GIVEN, PAIRS, candidate=MODEL), first.info.model["vocabulary_size"]
    expected = summarize(rows, config=PAIRS, vocabulary_size=size)
    assert compared.comparison.extra == expected.comparison.extra
    assert compared.comparison.verdict == expected.comparison.verdict


@pytest.mark.parametrize(
    ("names", "columns", "group"),
    [
        (["sentence_good", "sentence_bad", "linguistics_term"], {}, True),
        (["sent_more", "sent_less", "bias_type"], {}, True),
        (["x", "y", "z"], {"better_column": "x", "worse_column": "Y"}, False),
        (["x", "y", "z"], {"better_column": "x", "worse_column": "y", "group_column": "z"}, True),
    ],
)
def test_columns_of_known_layouts_need_no_names(tmp_path, names, columns, group):
    columns = {**columns}
    group_column = columns.pop("group_column", None)
    config = EvaluationConfig("pairs", **columns)
    source = replace(write(tmp_path / "p.csv", names), group_column=group_column)
    plan = Plan(config=config, source=source)
    expected = GIVEN if group else [(*pair[:2], "") for pair in GIVEN]
    read = [(example.text, example.worse, example.group) for example in open_texts(plan.source)]
    assert read == expected
    frame = [dict(zip(names, pair, strict=True)) for pair in GIVEN]
    rows = measured(evaluate(MODEL, frame, config, group_column=group_column))
    assert [rows[place].group for place in range(40)] == [group for *_, group in expected]
    assert [rows[place].worse.text for place in range(40)] == [worse for _, worse, _ in GIVEN]


def test_wrong_columns_are_named(tmp_path):
    source = write(tmp_path / "p.csv", ["x", "y", "z"])
    with pytest.raises(DataError, match=r"'x', 'y', 'z'.*--better-column NAME"):
        open_texts(Plan(config=PAIRS, source=source).source)
    config = EvaluationConfig("pairs", better_column="x", worse_column="w")
    with pytest.raises(DataError, match="no column 'w'"):
        open_texts(Plan(config=config, source=source).source)
    for columns in ({"better_column": "x"}, {"better_column": "x", "worse_column": "x"}):
        with pytest.raises(OptionError, match="a pair has two columns"):
            EvaluationConfig("pairs", **columns)
    (tmp_path / "p.txt").write_text("one\ttwo\nthree\n")
    source = TextSource("file", str(tmp_path / "p.txt"), shuffle=False)
    with pytest.raises(DataError, match="line 2: it has no pair"):
        [*open_texts(Plan(config=PAIRS, source=source).source)]


def test_sixty_of_our_own_ten_of_each_phenomenon():
    examples = [*open_texts(Plan(config=PAIRS).source)]
    assert [*Counter(example.group for example in examples).values()] == [10] * 6
    assert len({example.content for example in examples}) == 60
    assert len({example.text for example in examples}) == 60


# Rows as their authors wrote them; on the hub a class label is a number, and lists lie by key.
STEREOSET = {
    "id": "bb7a",
    "target": "Ethiopia",
    "bias_type": "race",
    "context": "the cat sat.",
    "sentences": [
        {"sentence": "a dog ran.", "gold_label": "anti-stereotype"},
        {"sentence": "the stone was warm.", "gold_label": "unrelated"},
        {"sentence": "a cat ran.", "gold_label": "stereotype"},
    ],
}
ON_THE_HUB = STEREOSET | {
    "sentences": {
        "sentence": [entry["sentence"] for entry in STEREOSET["sentences"]],
        "gold_label": [0, 2, 1],
    }
}
TEMPLATE = STEREOSET | {"context": "a BLANK ran."}
WINOBIAS = {"document_id": "1", "part_number": 0, "tokens": ["the", "cat", "sat", "."]}


@pytest.mark.parametrize(
    ("row", "given"), [(STEREOSET, "the cat sat."), (ON_THE_HUB, "the cat sat."), (TEMPLATE, "")]
)
def test_stereoset_is_read_as_it_comes(row, given, tmp_path):
    """References: the layouts of data/dev.json of arXiv:2004.09456 and of McGill-NLP/stereoset."""
    nested_file, flat = tmp_path / "dev.json", tmp_path / "rows.jsonl"
    nested_file.write_text(json.dumps({"data": {"intersentence": [row, row]}}))
    flat.write_text(json.dumps(row))
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "rows.parquet")
    for source in (
        TextSource("file", str(nested_file), field="data.intersentence", samples=1),
        TextSource("file", str(flat)),
        TextSource("file", str(tmp_path / "rows.parquet")),
    ):
        with open_texts(replace(source, pairs=PAIRS.metric.columns)) as texts:
            (example,) = texts
        assert example.texts == ("a cat ran.", "a dog ran.")
        assert (example.group, example.given) == ("race", given)
    (mapped,) = measured(evaluate(MODEL, [row], PAIRS)).values()
    (listed,) = measured(
        evaluate(MODEL, [("a cat ran.", "a dog ran.", "race", given)], PAIRS)
    ).values()
    assert json.dumps(mapped.to_dict()) == json.dumps(listed.to_dict())


def test_winobias_is_read_as_it_comes(tmp_path):
    (path := tmp_path / "rows.jsonl").write_text(json.dumps(WINOBIAS))
    with open_texts(TextSource("file", str(path))) as texts:
        assert [example.text for example in texts] == ["the cat sat ."]


def test_a_text_given_before_both_is_read_and_not_scored(tmp_path):
    """Reference: torch's log_softmax, each token hidden alone behind the given text."""
    given, better, worse = "the dog saw it.", "a cat ran.", "the stone ran."
    (path := tmp_path / "pairs.csv").write_text(f"b,w,c\n{better},{worse},{given}\n")
    config = EvaluationConfig("pairs", better_column="b", worse_column="w", given_column="c")
    plan = Plan(config=config, source=TextSource("file", str(path)))
    assert str(plan.source).endswith("pairs:b,w|given:c|samples:all|shuffle:42")
    with open_texts(plan.source) as texts:
        (row,) = measured(evaluate(MODEL, texts, config)).values()
    for sentence, scores in ((better, row.scores), (worse, row.worse.scores)):
        ids = list(MODEL.vocabulary.encode(f"{given} {sentence}").ids)
        start = len(MODEL.vocabulary.encode(given).ids) - 1
        expected = []
        for position in range(start, len(ids) - 1):
            hidden = [*ids[:position], MODEL.vocabulary.mask_id, *ids[position + 1 :]]
            expected.append(-log_softmax_at(MODEL, hidden, position)[ids[position]].item())
        np.testing.assert_allclose(scores.nll_nats, expected, atol=1e-9)
    assert row.text == f"{given} {better}" and row.tokens[0] == "a"
    alone = measured(evaluate(MODEL, [(better, worse)], config))[0]
    assert margin_nats(row, row.scores) != margin_nats(alone, alone.scores)
    with pytest.raises(DataError, match=r"no column 'x'.*--given-column NAME"):
        open_texts(replace(plan.source, pairs=("b", "w", "x")))
