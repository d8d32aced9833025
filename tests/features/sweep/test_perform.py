"""perform_sweep(): what is measured, kept, gone on with, measured anew, or fails."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from table_model import TableModel, sample_texts

from fillmask_ui.errors import DataError
from fillmask_ui.features.sweep.sweep_perform import perform_sweep
from fillmask_ui.runs import perform, perform_cells


def states(steps):
    return [step.state for step in steps]


def test_every_cell_is_a_run_with_the_figures_of_a_single_evaluation(bench):
    """A metric that draws nothing is measured once."""
    sweep = bench.sweep()
    steps = bench.perform(sweep)
    assert states(steps) == ["begun", "measured"] * 12
    names = [cell.name for cell in sweep.cells]
    assert len(names) == len(set(names)) == 2 * 2 * 3
    assert names[:3] == [
        "org/base, first, uniform, seed 42",
        "org/base, first, uniform, seed 1",
        "org/base, first, pseudo-perplexity",
    ]
    assert len(bench.store.names()) == 12
    assert bench.loads == ["org/base", "org/noisy"]  # each once
    table = bench.table(sweep, steps)
    for entry in table.entries:
        alone = [*perform(entry.cell.plan, bench.store, bench.load)][-1].info
        key = alone.config.metric.figure_key
        assert entry.value == alone.result[key]
        assert [entry.interval.low, entry.interval.high] == alone.result["interval_95"]
    beside = table.entries[-1]
    plan = replace(beside.cell.plan, baseline=sweep.models[0].value)
    alone = [*perform(plan, bench.store, bench.load)][-1].info.result
    assert beside.change == alone["relative_change"] != 0
    found = beside.change_interval
    assert [found.low, found.high] == alone["relative_change_interval_95"]
    assert beside.verdict == alone["verdict"]


def test_a_second_call_measures_nothing(bench):
    sweep = bench.sweep()
    before = bench.digits(bench.table(sweep, bench.perform(sweep)))
    again = bench.perform(sweep)
    assert states(again) == ["kept"] * 12
    assert bench.digits(bench.table(sweep, again)) == before
    # More seeds, another label and other borders keep what is there.
    sweep = bench.sweep(seeds=[1, 42, 7], pass_below=0.01, models=["org/base", "org/noisy"])
    assert sorted(states(bench.perform(sweep))) == sorted(["kept"] * 12 + ["begun", "measured"] * 4)


@pytest.mark.parametrize("rows", [1, 40])
def test_what_was_stopped_at_any_moment_goes_on_to_the_same_digits(bench, rows, tmp_path):
    sweep = bench.sweep()
    with closing(perform_sweep(sweep, bench.store, bench.load)) as steps:
        for _ in range(rows):
            next(steps)
    before = states(bench.perform(sweep))
    assert before.count("kept") + before.count("measured") == 12
    found = bench.digits(bench.table(sweep))
    assert len(bench.store.names()) == 12
    bench.store.root = tmp_path / "others"
    assert bench.digits(bench.table(sweep, bench.perform(sweep))) == found


def test_other_weights_under_the_same_name_are_measured_anew(bench):
    sweep = bench.sweep(metrics=["uniform"], seeds=[1])
    bench.perform(sweep)
    old, bench.models["org/noisy"] = bench.models["org/noisy"], TableModel(1, noise=3, noise_seed=9)
    steps = bench.perform(sweep)
    assert states(steps) == ["kept", "kept", *["begun", "measured"] * 2]
    assert "measured anew, as since run" in steps[2].message
    assert "sha256 was" in steps[2].message
    table = bench.table(sweep, steps)
    assert "measured anew" in table.entries[-1].note
    assert table.entries[-1].verdict == "NEAR_CHANCE"
    assert len(bench.store.names()) == 6
    assert states(bench.perform(sweep)) == ["kept"] * 4
    # With the old weights the old runs count again.
    bench.models["org/noisy"] = old
    steps = bench.perform(sweep)
    assert states(steps) == ["kept"] * 4
    assert bench.table(sweep, steps).entries[-1].value != table.entries[-1].value


def test_other_texts_in_a_file_or_a_folder_are_measured_anew(bench, tmp_path):
    sweep = bench.sweep(metrics=["uniform"], seeds=[1])
    before = bench.table(sweep, bench.perform(sweep))
    path = Path(sweep.texts[0].value.where)
    path.write_text("\n".join(sample_texts(10, seed=99)))
    steps = bench.perform(sweep)
    assert states(steps) == ["kept", "begun", "measured"] * 2
    assert {f"the texts in {path} changed" in step.message for step in steps if step.message} == {
        True
    }
    after = bench.table(sweep, steps)
    assert after.entries[0].value != before.entries[0].value
    assert after.entries[1].value == before.entries[1].value
    folder = tmp_path / "texts"
    folder.mkdir()
    for name in "ab":
        (folder / f"{name}.txt").write_text("\n".join(sample_texts(4, seed=ord(name))))
    sweep = bench.sweep(metrics=["uniform"], seeds=[1], data=[str(folder)])
    bench.perform(sweep)
    assert states(bench.perform(sweep)) == ["kept"] * 2
    (folder / "c.txt").write_text("The cat sat.\n")
    assert states(bench.perform(sweep)) == ["begun", "measured"] * 2


class Backwards:
    """An engine that measures in an order of its own; `refuses` one data set before any work."""

    def __init__(self, refuses=None):
        self.refuses, self.batches = refuses, []

    def perform(self, cells, store, load):
        self.batches.append(len(cells))
        for cell in reversed(cells):
            if self.refuses and cell.plan.source.where.endswith(self.refuses):
                raise DataError(f"no worker sees {cell.plan.source.where}")
            yield from perform_cells([cell], store, load)


def test_an_engine_gets_all_cells_of_a_model_and_the_digits_are_the_same(bench, tmp_path):
    sweep, engine = bench.sweep(), Backwards()
    found = bench.digits(bench.table(sweep, bench.perform(sweep, engine)))
    assert engine.batches == [6, 6]
    bench.store.root = tmp_path / "others"
    assert bench.digits(bench.table(sweep, bench.perform(sweep))) == found
