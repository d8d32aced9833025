"""sweep_table() and what is made of it: figures, notes, heat, CSV, HTML."""

import math
import re

import numpy as np
from table_model import TableModel, letter_vocabulary

from fillmask_ui.features.sweep.sweep_perform import perform_sweep
from fillmask_ui.features.sweep.sweep_sections import notes, page, sections


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
            assert f"{entry.change:+.2%}".replace("-", "−") in html
            assert f">{entry.verdict}</span>" in html
    assert notes(table) == ("no such model: org/none",)
    assert html.count('<a href="#note-1">') == 6
    assert html.count('scope="col"') == 2 * 3 + 4
    assert "numpy" in html
