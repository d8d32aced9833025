"""The figures that the page serves to a browser; variants and sweeps by the commands as well.

What the clock, the machine or the library that writes a file decides stands as its type.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from recorded.program import call
from recorded.recording import OUTPUTS, anywhere, cells, check_json, figures, parsed, steady
from recorded.served import TABS, Page

from fillmask_ui.extensions import features
from fillmask_ui.models import ModelStore

# By group and case what is asked, `ask` (tab, function and the values sent), and the `figures` of
# the answer. Groups with `embedded` in their name ask the shipped model, all others those of the
# workshop. A new case needs only its `ask`; see `recording`.
GROUPS = {path.stem: json.loads(path.read_text("utf-8")) for path in OUTPUTS.glob("json/page/*")}


@pytest.fixture(scope="module")
def store() -> ModelStore:
    return ModelStore()


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_answers(group, store):
    # A page for each case: what one was asked before may come along with an answer.
    questions = {name: case["ask"] for name, case in GROUPS[group].items()}
    answers = {
        name: {"ask": ask, "figures": figures(Page(store).ask(*ask))}
        for name, ask in questions.items()
    }
    check_json(f"page/{group}", answers, close="embedded" in group)


def test_every_function_is_asked():
    """But that of Quantize, which is below, replays, and what has no figures."""
    cases = (case for group in GROUPS.values() for case in group.values())
    functions = {tuple(case["ask"][:2]) for case in cases}
    served = {(tab, function) for tab, functions in TABS.items() for function in functions}
    elsewhere = {("quantize", "figure"), ("explore", "replay"), ("explore", "both_replayed")}
    elsewhere |= {("explore", "about"), ("explore", "models"), ("learn", "chapter")}
    # Modes of features have numbers of transformers in their own tests.
    elsewhere |= {
        ("explore", view) for feature in features() for mode in feature.modes for view in mode.views
    }
    assert functions == served - elsewhere


# Of files that other versions of onnx write otherwise.
FILES = ("sha256", "size_bytes", "baseline_bytes", "ratio")
_SAME_SECOND = re.compile(r"(\b\d{8}-\d{6}-[a-z-]*[a-z])-\d+\b")
FEW = ("--dataset", "texts.txt", "--samples", "12")

SWEEP = """
baseline = "table"
seeds = [42, 1]
[[models]]
model = "table"
[[models]]
model = "noisy"
label = "with noise"
[[data]]
dataset = "texts.txt"
[[metrics]]
metric = "cross-entropy"
[[metrics]]
metric = "pseudo-perplexity"
"""
BROKEN = """
models = [{ model = "table" }, { model = "./missing" }]
data = [{ dataset = "texts.txt", samples = 9 }]
metrics = [{ metric = "uniform" }, { metric = "bits-per-byte" }]
"""


def printed(*arguments: Any, root: Path, also: Sequence[str] = ()) -> dict[str, Any]:
    """What a command prints, without the path of the folder it writes to."""
    result = call(*arguments, "--json")
    values = parsed(named(result.stdout, root))
    return {"code": result.returncode, "stdout": anywhere(values, also=tuple(also))}


def named(text: str, root: Path) -> str:
    """Without the folder, and without the number of a run that began in the same second."""
    return _SAME_SECOND.sub(r"\1", text.replace(str(root), "@ROOT@"))


@pytest.fixture(scope="module")
def broken(workshop, tmp_path_factory) -> Path:
    """An int8 variant of `table` in which one matrix has a wrong scale."""
    import onnx
    from onnx import numpy_helper

    root = tmp_path_factory.mktemp("broken")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(workshop)
        quantized = call("quantize", "table", "-o", root, "--scheme", "int8-tensor", "--no-measure")
    assert quantized.returncode == 0, quantized.stderr
    (path,) = root.glob("onnx/*_int8_tensor.onnx")
    graph = onnx.load(path)
    (scale,) = (each for each in graph.graph.initializer if each.name == "table_left_scale")
    wrong = numpy_helper.to_array(scale) * 4
    scale.CopyFrom(numpy_helper.from_array(wrong.astype("float32"), scale.name))
    onnx.save(graph, path)
    return path


def test_quantize(tmp_path):
    schemes = [part for name in ("int8-tensor", "int4", "fp16") for part in ("--scheme", name)]
    measured = ("quantize", "table", "-o", tmp_path / "out", *schemes, *FEW)
    plain = ("quantize", "noisy", "-o", tmp_path / "two", "--scheme", "qdq", "--no-measure")
    exclude = ("--scheme", "int8-tensor", "--exclude", "table_own", "--no-measure")
    excluded = (*plain[:4], "--force", *exclude)
    printed_values = {
        name: printed(*arguments, root=tmp_path, also=FILES)
        for name, arguments in {"measured": measured, "plain": plain, "kept": excluded}.items()
    }
    printed_values["default"] = printed(
        *measured[:3], tmp_path / "three", *FEW, root=tmp_path, also=FILES
    )
    printed_values["again"] = printed(*plain, root=tmp_path, also=FILES)
    check_json("quantize", printed_values, close=True)


def test_diagnose(broken, tmp_path):
    command = ("diagnose", broken, "--baseline", "table", *FEW, "--most", "2")
    root = broken.parents[1]
    printed_values = {
        "plain": printed(*command, root=root, also=FILES),
        "all": printed(*command, "--budget", "0%", root=root, also=FILES),
        "none": printed(*command[:-1], "0", "--metric", "uniform", root=root, also=FILES),
    }
    check_json("diagnose", printed_values, close=True)


def test_the_panel_of_a_variant(broken):
    store = ModelStore()
    plain = {"variant": str(broken), "baseline": "table", "name": "int8 <b>", "most": "2"}
    values = {
        "diagnosed": {"texts": "12"},
        "any_budget": {"texts": "12", "budget": "100"},
        "made": {"texts": "12", "budget": "0", "make": "1"},
    }
    answers = {}
    for name, more in values.items():
        request = {"name": "diagnose", "model": str(broken), "values": plain | more}
        answers[name] = figures(Page(store).ask("quantize", "figure", request))
    check_json("diagnose-panel", answers, close=True)


@pytest.mark.parametrize(("name", "text"), [("sweep", SWEEP), ("sweep-broken", BROKEN)])
def test_sweep(name, text, tmp_path):
    (tmp_path / "mine.toml").write_text(text)
    table = tmp_path / "table.csv"
    first = printed("sweep", tmp_path / "mine.toml", "--csv", table, root=tmp_path)
    again = printed("sweep", tmp_path / "mine.toml", "--table-only", root=tmp_path)
    lines = cells(steady(named(table.read_text(), tmp_path))) if table.exists() else None
    check_json(name, {"first": first, "table": lines, "again": again})
