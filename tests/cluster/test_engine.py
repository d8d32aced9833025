"""The engine on two processes of Ray: rows and figures of one process, to the last digit.

The other side of each comparison is the local engine, whose figures are checked against torch and
transformers in `tests/evaluation`.
"""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cluster.conftest import assert_same, measured, rows_of, write_texts

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.models import load_choice
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.runs import Cell, Plan, perform, perform_cells, perform_rest
from fillmask_ui.texts import TextSource


def tiny(tiny_models, family, runtime="auto"):
    return ModelChoice(str(tiny_models.folder(family)), runtime=runtime)


@pytest.fixture
def lines(tmp_path):
    return write_texts(tmp_path / "texts.txt", 1300)


@pytest.mark.parametrize(
    ("metric", "samples", "options"),
    [
        ("cross-entropy", None, {"shuffle": False}),
        ("cross-entropy", 700, {}),
        ("pseudo-perplexity", 60, {}),
        ("unmasking", 30, {"shuffle": False}),
    ],
)
def test_the_digits_of_one_process(engine, store, tiny_models, lines, metric, samples, options):
    source = TextSource("file", str(lines), samples=samples, **options)
    plan = Plan(tiny(tiny_models, "bert"), None, EvaluationConfig(metric), source)
    assert_same(measured(plan, store, engine), measured(plan, store))


@pytest.mark.parametrize("runtime", ["onnx", "torch"])
def test_two_models(engine, store, tiny_models, lines, runtime):
    model = tiny(tiny_models, "roberta", runtime)
    plan = Plan(model, model, source=TextSource("file", str(lines), samples=200))
    assert_same(measured(plan, store, engine), measured(plan, store))


def test_two_tokenizers(engine, store, tiny_models, lines):
    config = EvaluationConfig("pseudo-perplexity")
    models = tiny(tiny_models, "bert"), tiny(tiny_models, "xlm-roberta")
    plan = Plan(*models, config, TextSource("file", str(lines), samples=40))
    assert_same(measured(plan, store, engine), measured(plan, store))


def test_a_model_of_bytes(engine, store, lines):
    plan = Plan(ModelChoice("embedded:int8"), source=TextSource("file", str(lines), samples=150))
    assert_same(measured(plan, store, engine), measured(plan, store))


@pytest.mark.parametrize(("samples", "layout"), [(None, "txt"), (1100, "parquet")])
def test_files_of_a_folder(engine, store, tiny_models, tmp_path, samples, layout):
    folder = tmp_path / "parts"
    folder.mkdir()
    for number, count in enumerate((300, 0, 700, 450)):
        path = write_texts(folder / f"part-{number}.txt", count, 1000 * number)
        if not count:
            path.write_text("")
        if layout == "parquet":
            column = pa.array(path.read_text().splitlines(), pa.string())
            pq.write_table(pa.table({"text": column}), path.with_suffix(".parquet"))
            path.unlink()
    source = TextSource("folder", str(folder), shuffle=False, samples=samples)
    plan = Plan(tiny(tiny_models, "bert"), source=source)
    assert_same(measured(plan, store, engine), measured(plan, store))


def test_a_surrogate_in_json_comes_through(engine, store, tiny_models, tmp_path):
    path = tmp_path / "odd.jsonl"
    path.write_text('{"text": "a broken \\ud800 cat"}\n' + '{"text": "the river was cold"}\n' * 20)
    plan = Plan(tiny(tiny_models, "bert"), source=TextSource("file", str(path)))
    assert_same(measured(plan, store, engine), measured(plan, store))


def test_progress_and_engine_of_a_run(engine, store, tiny_models, lines):
    source = TextSource("file", str(lines))
    plan = Plan(tiny(tiny_models, "bert"), source=source)
    steps = list(perform(plan, store, load_choice, engine))
    assert steps[0].through == 0
    assert steps[-1].through == steps[-1].expected == 1300
    assert steps[-1].workers >= 1
    rows = [row for step in steps for row in step.rows]
    run = store.open(steps[-1].info.name)
    assert sorted(row.id for row in rows) == sorted(rows_of(run)) == list(range(1300))
    scored = sum(len(row.scores.nll_nats) for row in rows if hasattr(row, "scores"))
    assert steps[-1].tokens == scored
    (entry,) = json.loads((run.folder / "run.json").read_text())["engines"]
    assert entry["name"] == "ray"
    assert (entry["workers"], entry["threads_per_worker"]) == (2, 1)


@pytest.mark.parametrize("here_first", [True, False])
def test_a_run_goes_on_with_another_engine(engine, store, tiny_models, lines, here_first):
    plan = Plan(tiny(tiny_models, "bert"), source=TextSource("file", str(lines)))
    whole = measured(plan, store)
    first, second = (None, engine) if here_first else (engine, None)
    steps = perform(plan, store, load_choice, first)
    name = next(steps).info.name
    while not next(steps).rows:
        pass
    steps.close()
    begun = store.open(name)
    assert begun.state == "stopped"
    assert 0 < begun.row_count < 1300
    list(perform_rest(name, store, load_choice, second))
    run = store.open(name)
    assert_same(run, whole)
    names = [entry["name"] for entry in run.info.engines]
    assert names == (["local", "ray"] if here_first else ["ray", "local"])
    # Of a run that is done nothing is measured again.
    assert [step.info.state for step in perform_rest(name, store, load_choice, engine)] == ["done"]


def test_several_runs_of_one_model(engine, store, tiny_models, lines):
    model = tiny(tiny_models, "bert")
    plans = [
        Plan(model, None, EvaluationConfig(seed=seed), TextSource("file", str(lines), samples=600))
        for seed in (1, 2)
    ]
    cells = [Cell(plan, label={"sweep": "s", "key": str(n)}) for n, plan in enumerate(plans)]
    names = {step.info.name for step in perform_cells(cells, store, load_choice, engine)}
    runs = sorted((store.open(name) for name in names), key=lambda run: run.info.config.seed)
    for run, plan in zip(runs, plans, strict=True):
        assert_same(run, measured(plan, store))
    assert [run.info.cell["key"] for run in runs] == ["0", "1"]


def test_a_broken_cell_leaves_the_others(engine, store, tiny_models, lines, tmp_path):
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"text": "all is well"}\n' * 600 + "no JSON\n")
    model = tiny(tiny_models, "bert")
    sources = [TextSource("file", str(path), shuffle=False) for path in (broken, lines)]
    cells = [Cell(Plan(model, source=source)) for source in sources]
    with pytest.raises(DataError, match="line 601"):
        list(perform_cells(cells, store, load_choice, engine))
    states = {
        store.open(name).info.texts["where"]: store.open(name).state for name in store.names()
    }
    assert states == {str(broken): "failed", str(lines): "done"}


def test_texts_that_have_changed_since(engine, store, tiny_models, lines):
    plan = Plan(tiny(tiny_models, "bert"), source=TextSource("file", str(lines), shuffle=False))
    steps = perform(plan, store, load_choice)
    name = next(steps).info.name
    while not next(steps).rows:
        pass
    steps.close()
    stored = min(rows_of(store.open(name)))
    texts = lines.read_text().splitlines()
    texts[stored] += " More."
    lines.write_text("\n".join(texts) + "\n")
    with pytest.raises(DataError, match=f"text {stored} is not the one"):
        list(perform_rest(name, store, load_choice, engine))
    assert store.open(name).state == "failed"


def test_a_model_that_has_changed_since(engine, store, tiny_models, lines):
    plan = Plan(tiny(tiny_models, "bert"), source=TextSource("file", str(lines)))
    steps = perform(plan, store, load_choice)
    name = next(steps).info.name
    steps.close()
    other = load_choice(tiny(tiny_models, "roberta"))
    with pytest.raises(DataError, match="the model is not the one that the run has"):
        list(perform_rest(name, store, lambda choice: other, engine))


def test_what_processes_cannot_share_is_refused_before_a_run(engine, store, tiny_models, tmp_path):
    model = tiny(tiny_models, "bert")
    with pytest.raises(OptionError, match="save the texts to a file"):
        list(perform(Plan(model, source=TextSource("stdin")), store, load_choice, engine))
    config = EvaluationConfig(mask_stream="collator")
    with pytest.raises(OptionError, match="collator"):
        list(perform(Plan(model, config=config), store, load_choice, engine))
    source = TextSource("file", str(tmp_path / "none.txt"))
    with pytest.raises(DataError, match=r"none\.txt"):
        list(perform(Plan(model, source=source), store, load_choice, engine))
    blank = tmp_path / "blank.txt"
    blank.write_text(" \n" * 9)
    with pytest.raises(DataError, match="blank"):
        list(
            perform(Plan(model, source=TextSource("file", str(blank))), store, load_choice, engine)
        )
    assert store.names() == [] or store.open("latest").state == "failed"
