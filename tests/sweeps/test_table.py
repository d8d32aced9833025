"""sweep_table() and what is made of it: figures, notes, heat, CSV, HTML."""

import csv
import io
import json
import math
import re

import numpy as np
from table_model import TableModel, letter_vocabulary, sample_texts

from fillmask_ui.runs import compare
from fillmask_ui.show.sweep import csv_text, notes, page, sections
from fillmask_ui.sweeps import perform_sweep


def test_figures_are_the_stored_ones_and_changes_those_of_compare(bench):
    sweep = bench.sweep()
    table = bench.table(sweep, bench.perform(sweep))
    for own, base in zip(table.entries[6:], table.entries[:6], strict=True):
        assert own.run.info.result[own.metric.figure_key] == own.value
        expected = compare(own.run, base.run).comparison
        assert (own.change, own.change_interval) == (expected.relative_change, expected.interval)
        assert own.verdict == expected.verdict.label
        assert base.change is None
        assert base.verdict == ""
    # The borders are those of the file, whatever those of the runs.
    high = {"pass_below": 90, "risk_below": 95}
    assert {own.verdict for own in bench.table(bench.sweep(**high)).entries[6:]} == {"PASS"}


def test_mean_and_spread_over_seeds(bench):
    """Against numpy's mean and sample standard deviation."""
    sweep = bench.sweep(seeds=[42, 1, 7])
    table = bench.table(sweep, bench.perform(sweep))
    assert len(table.spreads) == 2 * 2
    spread = table.spreads[-1]
    cells = [
        own
        for own in table.entries
        if (own.cell.model.label, own.cell.texts.label) == ("noisy", "second") and own.cell.seed
    ]
    assert spread.seeds == (42, 1, 7)
    assert math.isclose(spread.mean, np.mean([own.value for own in cells]))
    assert math.isclose(spread.deviation, np.std([own.value for own in cells], ddof=1))
    assert math.isclose(spread.mean_change, np.mean([own.change for own in cells]))
    assert math.isclose(spread.change_deviation, np.std([own.change for own in cells], ddof=1))
    assert table.spreads[0].mean_change is None  # of the baseline


def test_other_tokenizers_compare_by_character_or_say_why_not(bench):
    bench.models["org/noisy"] = TableModel(2, vocabulary=letter_vocabulary())
    sweep = bench.sweep(seeds=[1])
    table = bench.table(sweep, bench.perform(sweep))
    uniform, pseudo = table.entries[-2:]
    assert uniform.verdict == ""
    assert "no verdict" in uniform.note
    assert "noisy and org/base have different tokenizers" in uniform.note
    assert len(notes(table)) == 1  # the same for each data set
    assert pseudo.verdict
    assert pseudo.to_dict()["compared_by"] == "character"
    assert "by character" in page(table)


def test_models_that_cut_texts_elsewhere_are_told_what_to_do(bench):
    bench.models["org/noisy"] = TableModel(1, max_tokens=16)
    sweep = bench.sweep(metrics=["pseudo-perplexity"])
    table = bench.table(sweep, bench.perform(sweep))
    assert "at 16 and 64 tokens: give the metric max-tokens = 16" in table.entries[-1].note
    alike = bench.sweep(metrics=[{"metric": "pseudo-perplexity", "max-tokens": 16}])
    assert bench.table(alike, bench.perform(alike)).entries[-1].verdict


def test_a_cell_whose_tokens_few_texts_carry_says_so(bench, tmp_path):
    shortest, longest = sample_texts(2, seed=3, longest=4), sample_texts(40, seed=3, longest=60)
    texts = [*shortest * 6, max(longest, key=len)]
    (tmp_path / "uneven.txt").write_text("\n".join(texts) + "\n")
    sweep = bench.sweep(data=[str(tmp_path / "uneven.txt")], metrics=["pseudo-perplexity"])
    table = bench.table(sweep, bench.perform(sweep))
    assert {entry.note for entry in table.entries} == set(notes(table))
    (note,) = notes(table)
    assert re.match(r"a few long texts carry most tokens: 13 texts count as \d;", note)
    assert "carry most tokens" in page(table)


def test_a_table_while_it_is_measured(bench):
    sweep = bench.sweep(seeds=[1])
    empty = bench.table(sweep)
    assert {entry.state for entry in empty.entries} == {"missing"}
    steps = perform_sweep(sweep, bench.store, bench.load)
    seen = [next(step for step in steps if step.progress.rows) for _ in range(3)]
    assert seen[-1].cell == sweep.cells[0]
    under_way = bench.table(sweep).entries[0]
    assert under_way.state == "running"
    assert under_way.progress == "3 of 10 texts"
    assert sections(bench.table(sweep))[0].rows[0][1].figure == "running"
    steps.close()
    stopped = bench.table(sweep).entries[0]
    assert (stopped.state, stopped.progress) == ("stopped", "3 of 10 texts")
    bench.perform(bench.sweep(seeds=[1], models=bench.parts["models"][1:], baseline="noisy"))
    late = bench.table(sweep).entries[-1]
    assert late.value is not None
    assert late.note == "no verdict: the baseline is not measured here"


def test_heat_goes_by_change_or_without_a_baseline_by_figure(bench):
    bench.models["org/noisy"] = TableModel(1, scale=1.4)
    sweep = bench.sweep(metrics=["pseudo-perplexity"], risk_below=0.5)
    table = bench.table(sweep, bench.perform(sweep))
    (section,) = sections(table)
    base, noisy = section.rows
    assert [cell.heat for cell in base[1:]] == [None, None]
    for cell, entry in zip(noisy[1:], table.entries[2:], strict=True):
        assert cell.heat == max(-1, min(1, entry.change / 0.5))
    values = {key: own for key, own in bench.parts.items() if key != "baseline"}
    bench.parts = {**values, "metrics": ["pseudo-perplexity"]}
    (section,) = sections(bench.table(bench.sweep()))
    heats = np.array([[cell.heat for cell in row[1:]] for row in section.rows])
    assert sorted(heats[:, 0]) == sorted(heats[:, 1]) == [-1, 1]


def test_csv_has_a_line_per_cell_with_every_digit(bench):
    sweep = bench.sweep()
    table = bench.table(sweep, bench.perform(sweep))
    rows = [*csv.DictReader(io.StringIO(csv_text(table)))]
    assert len(rows) == 12
    for row, entry in zip(rows, table.entries, strict=True):
        assert float(row["value (in unit)"]) == entry.value
        assert row["unit"] == entry.metric.unit
        assert row["seed"] == ("" if entry.cell.seed is None else str(entry.cell.seed))
        change = row["relative change (share of the baseline)"]
        assert change == ("" if entry.change is None else repr(entry.change))
        assert row["verdict"] == entry.verdict
    assert json.loads(json.dumps(table.to_dict()))["cells"][0]["value"] == table.entries[0].value


HOSTILE = '<script>alert("x")</script>[bold]'


def test_the_page_writes_all_numbers_and_escapes_every_name(bench):
    parts = bench.parts["data"]
    sweep = bench.sweep(
        name=HOSTILE,
        models=["org/base", {"model": "org/noisy", "label": HOSTILE}, "org/none"],
        data=[{**parts[0], "label": HOSTILE}, parts[1]],
    )
    table = bench.table(sweep, bench.perform(sweep))
    html = page(table)
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "http" not in re.sub(r"<code>.*?</code>", "", html)
    for entry in table.entries[:12]:
        assert f"<b>{entry.value:,.4f}</b>" in html
        assert entry.run.info.signature in html
        if entry.change is not None:
            assert f"{entry.change:+.2%}" in html
            assert f">{entry.verdict}</span>" in html
    assert notes(table) == ("no such model: org/none",)
    assert html.count('<a href="#note-1">') == 6
    assert html.count('scope="col"') == 2 * 3 + 4
    assert "numpy" in html


def test_an_infinite_loss_is_written_as_one(bench):
    class Sure(TableModel):
        def logits_at(self, *batch):
            logits = super().logits_at(*batch)
            logits[:, ::2] = -np.inf
            return logits

    bench.models["org/noisy"] = Sure(1)
    sweep = bench.sweep(metrics=["pseudo-perplexity"])
    table = bench.table(sweep, bench.perform(sweep))
    assert table.entries[-1].value == math.inf
    assert table.entries[-1].verdict == "REGRESSION"
    (section,) = sections(table)
    assert section.rows[-1][1].figure == "infinite"
    assert table.to_dict()["cells"][-1]["value"] is None
