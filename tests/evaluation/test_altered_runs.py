"""Stored runs that somebody altered: read as they are, or a `DataError` that names run and line."""

import json
import math
import shutil
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from table_model import TableModel, sample_texts

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.evaluation.row_values import said
from fillmask_ui.records import SkippedText
from fillmask_ui.runs import Run, RunStore, export
from fillmask_ui.runs.info import prepare_info
from fillmask_ui.runs.record import resume, start
from fillmask_ui.runs.shapes import check_shape

RECORDED = Path(__file__).parent.parent / "recorded" / "runs"
# By one tokenizer with a baseline, by two tokenizers, and of one model.
NAMES = [path.name for path in sorted(RECORDED.iterdir())]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 300),
    st.sampled_from([-1, 2**31, 2**63, 10**30, 10**400, 1e30, 1e308, math.inf, -math.inf]),
    st.floats(),
    st.sampled_from(["", "mask", "x", "\0", "\udcff", "running"]),
)
ANY_JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=6,
)
BOUNDED = settings(
    max_examples=100,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
MISSING = "missing"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Copies of recorded runs with a few of their rows, by name; and what these are."""
    root = tmp_path_factory.mktemp("runs")
    found = {}
    for name in NAMES:
        shutil.copytree(RECORDED / name, root / name)
        path = root / name / "rows.jsonl"
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        skipped = [row for row in rows if "skipped" in row][:1]
        found[name] = skipped + [row for row in rows if "skipped" not in row][:3]
        write(root / name, found[name])
        # A finished run would only ever be told to lack rows.
        info = json.loads((root / name / "run.json").read_text("utf-8"))
        info |= {"state": "stopped", "result": None}
        (root / name / "run.json").write_text(json.dumps(info), "utf-8")
    return root, found


def write(folder, rows):
    # `dump_row`'s layout, by which a row is found by its id.
    lines = (json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    (folder / "rows.jsonl").write_text("".join(lines), "utf-8")


def places(value, path=()):
    """The paths of all fields of an object, and of the first entry of each list."""
    inner = value.items() if isinstance(value, dict) else [*enumerate(value)][:1]
    for key, entry in inner:
        yield (*path, key)
        if isinstance(entry, dict | list):
            yield from places(entry, (*path, key))


def altered(value, path, new):
    copied = json.loads(json.dumps(value))
    inner = copied
    for key in path[:-1]:
        inner = inner[key]
    if new == MISSING:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return copied


def read_all(folder, target):
    """What every command does with a run."""
    run = Run(folder)
    run.state, run.expected, run.info.signature, run.row_count  # noqa: B018
    summary = run.summary()
    json.dumps(summary.to_dict())
    for ending in ("csv", "jsonl"):
        export(run, target / f"run.{ending}")
    return run


@BOUNDED
@given(data=st.data())
def test_an_altered_row_is_read_or_named(runs, tmp_path, data):
    root, rows = runs
    name = data.draw(st.sampled_from(NAMES))
    index = data.draw(st.integers(0, len(rows[name]) - 1))
    row = rows[name][index]
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from([*places(row)]))
        row = altered(row, path, data.draw(st.one_of(st.just(MISSING), ANY_JSON)))
    write(root / name, [row if i == index else own for i, own in enumerate(rows[name])])
    try:
        read_all(root / name, tmp_path)
    except DataError as error:
        # A row before it may be the one that is unlike the others.
        assert f"run {name}, line " in str(error)
        assert not (tmp_path / "run.csv").exists() or (tmp_path / "run.csv").stat().st_size
    finally:
        write(root / name, rows[name])


@BOUNDED
@given(data=st.data())
def test_an_altered_run_file_is_read_or_named(runs, tmp_path, data):
    root, _ = runs
    name = data.draw(st.sampled_from(NAMES))
    path = root / name / "run.json"
    before = path.read_text("utf-8")
    values = json.loads(before)
    place = data.draw(st.sampled_from([*places(values)]))
    new = data.draw(st.one_of(st.just(MISSING), ANY_JSON))
    path.write_text(json.dumps(altered(values, place, new)), "utf-8")
    try:
        read_all(root / name, tmp_path)
    except DataError as error:
        assert f"run {name}" in str(error)
    finally:
        path.write_text(before, "utf-8")
    assert name in RunStore(root).names()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (
            "nll_nats",
            None,
            "nll_nats must be a list of 1 numbers of at least 0, it was null",
        ),
        ("nll_nats", [math.nan], "it was a list with nan in it"),
        ("ids", [210] * 11, "ids must be a list of 11 whole numbers from 0 to 209, it was a list"),
        ("positions", [40], "positions must be a list of 1 whole numbers from 0 to"),
        ("spans", [[3, 2]], "spans must be a list of 1 pairs of a start and an end"),
        ("kinds", ["seen"], "kinds must be a list of 1 of mask, random, unchanged"),
        ("id", -1, "line 2: id must be a whole number from 0"),
        ("checksum", "x", "line 2: checksum must be a whole number from 0"),
        ("baseline", "x", "line 2: baseline must be an object, it was 'x'"),
        ("baseline", MISSING, "line 2: it must have a baseline, or other in its place,"),
    ],
)
def test_the_message_says_what_is_wanted_and_what_to_do(runs, field, value, message):
    root, rows = runs
    first, second = rows[NAMES[0]][:2]
    write(root / NAMES[0], [first, altered(second, (field,), value)])
    with pytest.raises(DataError) as error:
        list(Run(root / NAMES[0]).rows())
    assert message in str(error.value)
    assert str(error.value).startswith(f"run {NAMES[0]}, line 2: ")
    assert str(error.value).endswith("; delete the line or the run")


def test_an_infinite_loss_is_legal(runs):
    root, rows = runs
    skipped, row = rows[NAMES[0]][:2]
    count = len(row["nll_nats"])
    write(root / NAMES[0], [skipped, {**row, "nll_nats": [math.inf] * count}])
    first, second = islice(Run(root / NAMES[0]).rows(), 2)
    assert isinstance(first, SkippedText)
    assert second.scores.nll_nats.tolist() == [math.inf] * count


def test_a_shape_is_held_against_types():
    check_shape({"a": [None, 2.5], "more": 1}, {"a": tuple[float | None, ...]}, "f")
    with pytest.raises(ValueError, match=r"f: a\[0\] must be true or false, it was 1"):
        check_shape({"a": [1]}, {"a": tuple[bool, ...]}, "f")
    with pytest.raises(ValueError, match="f: a must be a list of 2, it was a list of 1"):
        check_shape({"a": [1]}, {"a": tuple[int, int]}, "f")
    assert said(True) == "true"


def _stopped(root, seed):
    """A run of the seed that stopped after its third text."""
    model = TableModel(1)
    with start(RunStore(root), prepare_info(EvaluationConfig(seed=seed), model)) as recorder:
        list(islice(recorder.measure(model, sample_texts(20, seed=3, longest=30)), 3))
    return root / recorder.name


def test_rows_of_another_run_are_refused(tmp_path):
    first, second = _stopped(tmp_path / "first", 1), _stopped(tmp_path / "second", 2)
    assert Run(second).row_count == 3
    shutil.copy(first / "rows.jsonl", second / "rows.jsonl")
    with pytest.raises(DataError, match="line 1: it was measured by another model"):
        resume(RunStore(second.parent), second.name)


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("config", "seed", 9),
        ("config", "max_tokens", 16),
        ("model", "sha256", "0" * 64),
        ("texts", "samples", 9),
    ],
)
def test_rows_of_other_choices_are_refused(tmp_path, part, name, value):
    folder = _stopped(tmp_path, 1)
    values = json.loads((folder / "run.json").read_text("utf-8"))
    values[part][name] = value
    (folder / "run.json").write_text(json.dumps(values), "utf-8")
    with pytest.raises(DataError, match=r"or with other options than run\.json says; delete"):
        list(Run(folder).rows())


def test_rows_of_an_earlier_version_have_no_plan(tmp_path):
    """Those that are recorded are read, and go on."""
    folder = _stopped(tmp_path, 1)
    lines = (folder / "rows.jsonl").read_bytes().splitlines()
    old = [line[: line.index(b',"plan"')] + b"}\n" for line in lines]
    (folder / "rows.jsonl").write_bytes(b"".join(old))
    assert len(list(Run(folder).rows())) == 3
