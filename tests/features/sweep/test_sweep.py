"""A sweep: what a file may say, what is measured and reused, and what its table tells."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from table_model import TableModel, letter_vocabulary, sample_texts

from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.features.sweep.command import pivots
from fillmask_ui.features.sweep.sweep import measure_cell, read_sweep, sweep_of
from fillmask_ui.intervals import Limits
from fillmask_ui.models import ModelChoice
from fillmask_ui.options import all_options
from fillmask_ui.runs import perform
from fillmask_ui.show.render import render
from fillmask_ui.texts import TextChoice, TextSource

LEAST = {"models": ["embedded"], "data": ["embedded"], "metrics": ["cross-entropy"]}
WHOLE = """
baseline = "embedded"
seeds = [42, 1]
pass-below = 0.02
risk-below = 1

[[models]]
model = "embedded"
[[models]]
model = "embedded:int8"
label = "int8"
threads = 2
graph-optimization = "basic"

[[data]]
dataset = "embedded"
samples = 100
shuffle = false

[[metrics]]
metric = "cross-entropy"
mask-probability = 0.5
max-tokens = 64
[[metrics]]
metric = "pseudo-perplexity"
within-word = true
"""


def test_every_choice_of_a_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(WHOLE)
    sweep = read_sweep(path)
    assert (sweep.name, sweep.baseline, sweep.limits) == ("mine", "embedded", Limits(0.02, 1.0))
    assert [cell.name for cell in sweep.cells[3:]] == [
        "int8, embedded, cross-entropy, 42",
        "int8, embedded, cross-entropy, 1",
        "int8, embedded, pseudo-perplexity",  # draws nothing: once
    ]
    first, last = sweep.cells[3].plan, sweep.cells[5].plan
    assert first.model == ModelChoice("embedded:int8", threads=2, graph_optimization="basic")
    assert first.source == TextSource(samples=100, shuffle=False)
    assert (first.config.metric.recipe.probability, first.config.max_tokens) == (0.5, 64)
    assert (first.config.seed, last.config.metric.within_word) == (42, True)
    (cell,) = sweep_of(LEAST, "x").cells
    assert list(cell.labels.values()) == ["embedded", "embedded", "cross-entropy", 42]


def test_every_option_of_the_shell_is_a_key():
    """Each by its name there; a value of a wrong type is refused, but not as an unknown key."""
    kinds = (("models", ModelChoice, "model"), ("data", TextChoice, "dataset"))
    for key, kind, main in (*kinds, ("metrics", EvaluationConfig, "metric")):
        flags = [flag for option in all_options(kind) for flag in option.flags]
        for name in (flag.removeprefix("--") for flag in flags if flag.startswith("--")):
            if name not in (main, "seed"):
                with pytest.raises(OptionError, match=r"entry 1: .* (must be|belongs to)"):
                    sweep_of({**LEAST, key: [{main: LEAST[key][0], name: [[]]}]}, "x")


BAD = [
    ({"modles": ["embedded"]}, "unknown key 'modles'; did you mean 'models'"),
    ({"models": None}, r"models: input should be a valid"),
    ({"models": []}, "must have one entry or more"),
    ({"models": [3]}, r"models\[0\].*; it was 3"),
    (
        {"models": [{"model": "embedded", "thraeds": 2}]},
        "entry 1: unknown key 'thraeds'; did you mean 'threads'",
    ),
    ({"models": [{"model": "embedded", "threads": "2"}]}, "threads must be a whole number"),
    ({"models": ["/nowhere/at/all"]}, "models, entry 1: no such model: '/nowhere/at/all'"),
    ({"models": ["embedded", "embedded"]}, "entry 2: 'embedded' is the name of another entry"),
    ({"data": ["/nowhere/a.csv"]}, "data, entry 1: there is no file /nowhere/a.csv"),
    ({"metrics": ["crossentropy"]}, "metrics, entry 1: unknown metric 'crossentropy'"),
    ({"metrics": [{"metric": "suffix", "seed": 1}]}, "metrics, entry 1: unknown key 'seed'"),
    ({"seeds": []}, "seeds must have one entry or more"),
    ({"seeds": [1, -1]}, "the seed must be 0 or larger"),
    ({"seeds": [True]}, r"seeds\[0\]: input should be a valid integer; it was true"),
    ({"baseline": "int8"}, "unknown baseline 'int8'; known: embedded: name one of the models"),
    ({"pass-below": 5.0}, "the border of PASS must lie below that of AT_RISK"),
]


@pytest.mark.parametrize(("wrong", "message"), BAD)
def test_what_is_wrong_is_one_line(wrong, message):
    with pytest.raises(FillmaskError, match=message) as caught:
        sweep_of({**LEAST, **wrong}, "x")
    assert "\n" not in str(caught.value)


def test_the_key_of_a_cell_holds_what_its_numbers_depend_on():
    def key(**changes):
        (cell,) = sweep_of({**LEAST, **changes}, "x").cells
        return cell.key

    plain = key()
    assert plain == key(models=[{"model": "embedded", "label": "b"}], **{"risk-below": 0.2})
    changed = [
        key(seeds=[1]),
        key(models=[{"model": "embedded", "threads": 1}]),
        key(data=[{"dataset": "embedded", "samples": 5}]),
        key(metrics=["uniform"]),
        key(metrics=[{"metric": "cross-entropy", "max-tokens": 9}]),
        key(metrics=[{"metric": "cross-entropy", "batch-tokens": 9}]),
    ]
    assert len({plain, *changed}) == 7


def test_every_cell_is_a_run_with_the_figures_of_a_single_evaluation(bench):
    """And, beside the baseline, of an evaluation of two models; a second call measures nothing."""
    sweep = bench.sweep()
    assert bench.measure(sweep) == [*range(2 * 2 * 3)]
    table = bench.table(sweep)
    cell, values = sweep.cells[-1], table["cells"][-1]
    plan = replace(cell.plan, baseline=sweep.cells[0].plan.model)
    alone = [*perform(plan, bench.store, bench.load)][-1].info.result
    assert values["value"] == alone["pseudo_perplexity"]
    assert values["relative_change"] == pytest.approx(alone["relative_change"], rel=1e-9)
    for key in ("interval_95", "relative_change_interval_95"):
        assert values[key] == pytest.approx(alone[key], rel=1e-9)
    assert values["verdict"] == alone["verdict"]
    assert bench.measure(sweep) == []
    assert bench.table(sweep) == table
    # More seeds, labels and borders keep what is there.
    more = bench.sweep(models=["org/base", "org/noisy"], seeds=[7, 42, 1], **{"pass-below": 0.01})
    assert bench.measure(more) == [0, 4, 8, 12]


def test_what_was_stopped_goes_on(bench):
    sweep = bench.sweep(seeds=[1])
    assert {cell["state"] for cell in bench.table(sweep)["cells"]} == {"missing"}
    steps = measure_cell(sweep.cells[0], None, bench.store, bench.load)
    while not next(steps).rows:
        pass
    values = bench.table(sweep)["cells"][0]
    assert (values["state"], values["texts"]) == ("running", 1)
    steps.close()
    assert bench.table(sweep)["cells"][0]["state"] == "stopped"
    assert bench.measure(sweep) == [*range(8)]
    assert len(bench.store.names()) == 8
    assert bench.table(sweep)["cells"][0]["texts"] == 10


def test_other_texts_or_weights_are_measured_anew(bench, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    bench.models[str(folder)] = TableModel(1)
    changes = {"models": [str(folder)], "metrics": ["uniform"], "seeds": [1], "baseline": None}
    assert bench.measure(bench.sweep(**changes)) == [0, 1]
    before = bench.table(bench.sweep(**changes))["cells"]
    Path(bench.parts["data"][0]["dataset"]).write_text("\n".join(sample_texts(10, seed=99)))
    assert [cell["state"] for cell in bench.table(bench.sweep(**changes))["cells"]] == [
        "missing",
        "done",
    ]
    assert bench.measure(bench.sweep(**changes)) == [0]
    after = bench.table(bench.sweep(**changes))["cells"]
    assert after[0]["value"] != before[0]["value"]
    (folder / "config.json").write_text('{"other": 1}')
    assert bench.measure(bench.sweep(**changes)) == [0, 1]


def test_mean_and_spread_over_seeds(bench):
    """Against numpy's mean and sample standard deviation."""
    sweep = bench.sweep(seeds=[42, 1, 7])
    bench.measure(sweep)
    table = bench.table(sweep)
    assert len(table["over_seeds"]) == 2 * 2
    spread = table["over_seeds"][-1]
    assert (spread["model"], spread["data"], spread["seeds"]) == ("noisy", "second", [42, 1, 7])
    cells = [
        cell
        for cell in table["cells"]
        if (cell["model"], cell["data"], cell["metric"]) == ("noisy", "second", "uniform")
    ]
    values = np.array([[cell["value"], cell["relative_change"]] for cell in cells])
    result = [spread["mean"], spread["change_mean"]]
    assert result == pytest.approx(values.mean(axis=0))
    result = [spread["deviation"], spread["change_deviation"]]
    assert result == pytest.approx(values.std(axis=0, ddof=1))
    assert table["over_seeds"][0]["change_mean"] is None  # of the baseline


def test_other_tokenizers_compare_by_character_or_say_why_not(bench):
    bench.models["org/noisy"] = TableModel(2, vocabulary=letter_vocabulary())
    sweep = bench.sweep(seeds=[1])
    bench.measure(sweep)
    uniform, pseudo = bench.table(sweep)["cells"][-2:]
    assert uniform["verdict"] is None
    assert re.match("no verdict: .* have different tokenizers", uniform["note"])
    assert pseudo["verdict"]
    assert pseudo["compared_by"] == "character"


HOSTILE = '<script>alert("x")</script>[bold]'


def test_the_page_writes_all_numbers_and_escapes_every_name(bench):
    """A cell that fails stops no other; heat is the change as a share of the border."""
    data = bench.parts["data"]
    sweep = bench.sweep(
        models=["org/base", {"model": "org/noisy", "label": HOSTILE}, "org/none"],
        data=[{**data[0], "label": HOSTILE}, data[1]],
    )
    assert bench.measure(sweep) == [*range(12)]
    table = bench.table(sweep)
    html = render("sweep/page.html", sweep=table, pivots=[*pivots(table)])
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    for cell in table["cells"][:12]:
        assert f"{cell['value']:,.4f}<br>" in html
        assert cell["signature"] in html
        if change := cell["relative_change"]:
            assert f"{abs(change):.2%}<br>" in html
            heat, side = 100 * min(1, abs(change) / 0.1), "worse" if change > 0 else "better"
            assert f'class="sw-{side}" style="--sw-heat: {heat:.0f}%"' in html
    assert {(cell["state"], cell["note"]) for cell in table["cells"][12:]} == {
        ("failed", "no such model: org/none")
    }
