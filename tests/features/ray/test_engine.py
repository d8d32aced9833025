"""The engine on two processes of Ray: rows and figures of one process.

The other side of each comparison is the local engine, whose figures are checked against torch and
transformers in `tests/evaluation`.
"""

import json
import sys
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from features.ray.conftest import assert_same, measured, rows_of, write_texts
from recorded.program import ran

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.models import load_choice
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.runs import Plan, perform, perform_rest
from fillmask_ui.runs.engines import EngineChoice, open_engine
from fillmask_ui.texts import TextSource


def tiny(tiny_models, family):
    return ModelChoice(str(tiny_models.folder(family)))


@pytest.fixture
def lines(tmp_path):
    return write_texts(tmp_path / "texts.txt", 1100)


def folder_of(path, layout):
    """A folder of four files, one of them empty."""
    path.mkdir()
    for number, count in enumerate((100, 0, 500, 50)):
        part = write_texts(path / f"part-{number}.txt", count, 1000 * number)
        if not count:
            part.write_text("")
        if layout == "parquet":
            column = pa.array(part.read_text().splitlines(), pa.string())
            pq.write_table(pa.table({"text": column}), part.with_suffix(".parquet"))
            part.unlink()
    return str(path)


@pytest.mark.parametrize(
    "kind",
    [
        "order",
        pytest.param("samples", marks=pytest.mark.slow),
        "readings",
        "odd",
        "folder",
        "groups",
    ],
)
def test_the_rows_of_one_process(engine, store, tiny_models, lines, tmp_path, kind):
    """Orders, metrics, kinds of texts, a lone surrogate."""
    odd = tmp_path / "odd.jsonl"
    odd.write_text('{"text": "a broken \\ud800 cat"}\n' + '{"text": "the river was cold"}\n' * 20)
    table = tmp_path / "grouped.csv"
    cells = (
        f"{text},{'ab'[place % 2]}"
        for place, text in enumerate(lines.read_text().split("\n")[:150])
    )
    table.write_text("\n".join(["text,topic", *cells]))
    file = TextSource("file", str(lines))
    folder = folder_of(tmp_path / "parquet", "parquet")
    metric, source = {
        "order": ("cross-entropy", replace(file, shuffle=False, samples=300)),
        "samples": ("cross-entropy", replace(file, samples=200)),
        "readings": ("pseudo-perplexity", replace(file, samples=70)),
        "odd": ("cross-entropy", TextSource("file", str(odd))),
        "folder": ("cross-entropy", TextSource("folder", folder, shuffle=False)),
        "groups": ("cross-entropy", TextSource("file", str(table), group_column="topic")),
    }[kind]
    plan = Plan(tiny(tiny_models, "bert"), None, EvaluationConfig(metric), source)
    steps = list(perform(plan, store, load_choice, engine))
    run = store.open(steps[-1].info.name)
    assert_same(run, measured(plan, store))
    assert {*run.info.result["by_group"]} == ({"a", "b"} if kind == "groups" else set())
    assert steps[0].through == 0
    assert steps[-1].through == len(rows_of(run))
    assert steps[-1].workers >= 1
    rows = [row for step in steps for row in step.rows]
    assert sorted(row.id for row in rows) == sorted(rows_of(run))
    scored = sum(len(row.scores.nll_nats) for row in rows if hasattr(row, "scores"))
    assert steps[-1].tokens == scored
    (entry,) = json.loads((run.folder / "run.json").read_text())["engines"]
    assert (entry["name"], entry["workers"], entry["threads_per_worker"]) == ("ray", 2, 1)


def test_two_models_and_the_bytes_of_int8(engine, store, tiny_models, lines):
    source = TextSource("file", str(lines), samples=40)
    models = tiny(tiny_models, "bert"), tiny(tiny_models, "xlm-roberta")
    for plan in (
        Plan(*models, EvaluationConfig("pseudo-perplexity"), source),
        Plan(ModelChoice("embedded:int8"), source=source),
    ):
        assert_same(measured(plan, store, engine), measured(plan, store))


def test_a_run_goes_on_with_another_engine(engine, store, tiny_models, lines):
    """Stopped here, then on Ray, and ended here."""
    plan = Plan(tiny(tiny_models, "bert"), source=TextSource("file", str(lines)))
    whole = measured(plan, store)
    name = stopped(perform(plan, store, load_choice))
    here = store.open(name).row_count
    stopped(perform_rest(name, store, load_choice, engine))
    assert store.open(name).state == "stopped"
    assert 0 < here < store.open(name).row_count < 1100
    list(perform_rest(name, store, load_choice))
    run = store.open(name)
    assert_same(run, whole)
    assert [entry["name"] for entry in run.info.engines] == ["local", "ray", "local"]
    # Of a run that is done nothing is measured again.
    assert [step.info.state for step in perform_rest(name, store, load_choice, engine)] == ["done"]


def stopped(steps):
    """The name of a run that is stopped when it has some new rows."""
    name = next(steps).info.name
    while not next(steps).rows:
        pass
    steps.close()
    return name


def test_what_is_wrong_with_texts_is_an_error_of_the_run(
    engine, store, tiny_models, lines, tmp_path
):
    """Of a file that ends badly, and of one that has changed since the run began."""
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"text": "all is well"}\n' * 600 + "no JSON\n")
    model = tiny(tiny_models, "bert")
    plan = Plan(model, source=TextSource("file", str(broken), shuffle=False))
    with pytest.raises(DataError, match="line 601"):
        measured(plan, store, engine)
    assert store.open("latest").state == "failed"

    plan = Plan(model, source=TextSource("file", str(lines), shuffle=False))
    name = stopped(perform(plan, store, load_choice))
    stored = min(rows_of(store.open(name)))
    texts = lines.read_text().splitlines()
    texts[stored] += " More."
    lines.write_text("\n".join(texts) + "\n")
    with pytest.raises(DataError, match=f"text {stored} is not the one"):
        list(perform_rest(name, store, load_choice, engine))
    assert store.open(name).state == "failed"
    other = load_choice(tiny(tiny_models, "roberta"))
    with pytest.raises(DataError, match="the model is not the one that the run began with"):
        list(perform_rest(name, store, lambda choice: other, engine))


def test_what_is_refused_before_a_run(engine, store, tiny_models, tmp_path):
    model = tiny(tiny_models, "bert")
    config = EvaluationConfig(mask_stream="collator")
    with pytest.raises(OptionError, match="collator"):
        measured(Plan(model, config=config), store, engine)
    with pytest.raises(DataError, match=r"none\.txt"):
        measured(Plan(model, source=TextSource("file", str(tmp_path / "none.txt"))), store, engine)
    with (
        pytest.raises(DataError, match="another evaluation of this process"),
        open_engine(EngineChoice("ray")),
    ):
        pass
    assert store.names() == []


SCRIPT = """
from fillmask_ui.runs.engines import EngineChoice, open_engine
from fillmask_ui.errors import FillmaskError
for options in (("here",), ("ray://127.0.0.1:10001",), ("127.0.0.1:9",), (None, 10000, 2)):
    try:
        with open_engine(EngineChoice("ray", *options)):
            pass
    except FillmaskError as error:
        print(error)
import ray
try:
    ray.put(1)  # as a thread that is late, after the end
except Exception as error:
    print(error)
"""


def test_wrong_addresses_and_sizes_start_no_ray():
    """Nor does a late call: Ray would start itself, unless told not to before its import."""
    done = ran(sys.executable, "-c", SCRIPT)
    assert done.stdout.count("the address must be HOST:PORT") == 2
    assert "answers at 127.0.0.1:9: is it the port" in done.stdout
    assert "need 20000 cores, and this machine has" in done.stdout
    assert "Ray has not been started yet" in done.stdout
