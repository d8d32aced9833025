"""The documents: every command, option, metric, figure and room is in them, links lead somewhere,
paths and names exist, examples run.
"""

import ast
import json
import re
import runpy
from pathlib import Path

import pytest
import typer
from serving import serving
from test_layers import HEAVY, ROOMS

from fillmask_ui.cli.main import app
from fillmask_ui.evaluation import METRICS
from fillmask_ui.evaluation.catalogue import SPLITS, figures_of
from fillmask_ui.evaluation.summary import COMPARISON_FIGURES, MODEL_FIGURES
from fillmask_ui.extensions import FEATURES
from fillmask_ui.features.unmask.metric import WrittenFigures

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "recorded" / "outputs" / "json"
EXPLAINED = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAPERS = [*EXPLAINED, *(ROOT / f"{name}.md" for name in ("CONTRIBUTING", "SECURITY", "CHANGELOG"))]
PROGRAM = typer.main.get_command(app)
STANDARD = {"--help", "--help-all", "--install-completion", "--show-completion"}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def read(name):
    return (ROOT / name).read_text("utf-8")


def named(path):
    return path.relative_to(ROOT).as_posix()


def headings(text):
    """Anchors of the headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]


def section(text, title):
    """What stands below a heading of the second level."""
    start = text.index(f"\n## {title}\n")
    return text[start : (text + "\n## ").index("\n## ", start + 1)]


def commands(command, name="fillmask-ui"):
    yield name, command
    for sub in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from commands(command.get_command(None, sub), f"{name} {sub}")


def test_every_command_and_option_is_documented():
    script = runpy.run_path(str(ROOT / "docs/reference.py"))
    written = read("docs/command-line.md").split(script["MARK"])[1]
    assert written == script["reference"](), "run `python docs/reference.py`"


def options():
    """Every long option with its command."""
    return sorted(
        {
            (name, option)
            for name, command in commands(PROGRAM)
            for parameter in command.params
            for option in (*parameter.opts, *parameter.secondary_opts)
            if option.startswith("--") and option not in STANDARD
        }
    )


def keys(value):
    """Names in JSON; those of groups and of reasons come from the data."""
    if isinstance(value, list):
        return {key for entry in value for key in keys(entry)}
    if not isinstance(value, dict):
        return set()
    found = set(value)
    for key, inner in value.items():
        from_data = key in SPLITS or key == "skipped"
        found |= keys([*inner.values()] if from_data else inner)
    return found


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("predict", "predict-joint"),
        ("predict", "predict-candidates"),
        ("surprise", "surprise"),
        ("models", "models"),
        ("eval", "eval-baseline"),
        ("eval", "eval-pseudo-perplexity"),
        ("runs", "runs-list"),
    ],
)
def test_every_key_of_the_json_is_documented(title, name):
    own = section(read("docs/json.md"), f"`fillmask-ui {title}`")
    recorded = json.loads((RECORDED / f"{name}.json").read_text("utf-8"))
    printed = recorded["stdout"] if isinstance(recorded, dict) else recorded
    assert not [key for key in keys(printed) if f'"{key}"' not in own]


def test_every_metric_and_figure_is_defined():
    text = read("docs/evaluate.md")
    for metric in METRICS:
        assert f"\n| `{metric}` |" in section(text, "Metrics")
    for figure in (*MODEL_FIGURES, *figures_of(WrittenFigures), *COMPARISON_FIGURES):
        assert re.search(rf"^\|[^|]*`{figure.key}`", text, re.MULTILINE), figure.key


@pytest.mark.parametrize("paper", PAPERS, ids=named)
def test_links_lead_somewhere(paper):
    text = FENCE.sub("", paper.read_text("utf-8"))
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (paper.parent / path).resolve() if path else paper
        assert target.is_relative_to(ROOT), link
        assert target.exists(), link
        assert not anchor or anchor in headings(target.read_text("utf-8")), link


@pytest.mark.parametrize("paper", PAPERS, ids=named)
def test_paths_and_what_they_define_exist(paper):
    """`folder/file.py` is of the repository, the package or the model; `a.py: name` is in it."""
    if paper.name == "CHANGELOG.md":
        return  # it tells of what is gone
    text = FENCE.sub("", paper.read_text("utf-8"))
    for path, name in re.findall(r"`([\w/]+/[\w/]*\.\w+|[\w/]+/)(?:: (\w+))?`", text):
        if path == "onnx/" or "NAME" in path:
            continue  # of a model, or to be chosen
        homes = (ROOT, ROOT / "fillmask_ui", ROOT / "assets" / "model", ROOT / "tests" / "stranger")
        found = [home / path for home in homes if (home / path).exists()]
        assert found, path
        if name:
            names = {getattr(node, "name", "") for node in ast.parse(found[0].read_text()).body}
            assert name in names, f"{path}: {name}"


def rooms():
    """Rows of the table of rooms: name -> libraries."""
    table = section(read("docs/architecture.md"), "The rooms")
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in table.splitlines()
        if "|" in line
    ]
    return {row[0].strip("`").removesuffix("/").removesuffix(".py"): row[2] for row in rows[2:]}


def test_the_table_of_rooms_is_the_one_in_force():
    assert list(rooms()) == ROOMS


def test_the_table_names_the_rooms_of_heavy_libraries():
    stated = {library.strip() for libraries in rooms().values() for library in libraries.split(",")}
    assert stated - {""} == {library for library, places in HEAVY.items() if places}
    for library, places in HEAVY.items():
        named_in = {room for room, libraries in rooms().items() if library in libraries.split(", ")}
        assert named_in == {place.split("/")[0] for place in places}, library


def test_a_sentences_way_is_in_the_code():
    """Each line that the first page quotes stands in the file named before it."""
    way = section(read("docs/architecture.md"), "The path of a sentence")
    quotes = re.findall(r"(.*?)^```py\n(.*?)^```$", way, re.DOTALL | re.MULTILINE)
    for text, code in quotes:
        path = re.findall(r"`([\w/]+\.py)", text)[-1]
        lines = read(f"fillmask_ui/{path}").splitlines()
        assert not [line for line in code.splitlines() if line not in lines], path
    assert len(quotes) >= 8 and sum(len(code.splitlines()) for _, code in quotes) <= 45


def test_the_table_of_features_is_that_of_the_slot():
    table = section(read("docs/architecture.md"), "Features")
    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == FEATURES


def test_what_a_public_page_promises_is_what_the_code_has():
    from fillmask_ui.ui import job, session
    from fillmask_ui.ui.evaluate import evaluate_form, evaluation_jobs, uploads
    from fillmask_ui.ui.page import launch_options

    *first, last = (name for name, metric in METRICS.items() if metric.one_by_one)
    one_by_one = f"{', '.join(first)} and {last}"
    promises = section(read("SECURITY.md"), "A page for strangers")
    options = launch_options(public=True)
    assert options["max_file_size"] == "20mb"
    assert uploads.PUBLIC_BYTES == 20_000_000
    for stated in (
        f"{session.MAX_CHARACTERS:,} characters",
        f"{session.MAX_WORDS} candidate words",
        f"{session.MAX_WORK:,} tokens",
        f"20 MB as sent; 20 MB and {uploads.PUBLIC_ROWS:,} lines",
        f"{evaluate_form.PUBLIC_TEXTS} texts "
        f"({evaluate_form.PUBLIC_TEXTS_ONE_BY_ONE} for {one_by_one})",
        f"cut at {evaluate_form.PUBLIC_TOKENS} tokens",
        f"left alone for {evaluation_jobs.LEFT_SECONDS // 3600} hours",
        f"{options['max_threads']} threads",
        f"{options['state_session_capacity']} sessions",
        f"{job.MOST_JOBS} evaluations",
    ):
        assert stated in promises
    assert evaluation_jobs.PUBLIC_SLOTS == 1


@pytest.fixture(scope="module")
def served():
    """Address of a page with the embedded model."""
    from fillmask_ui.ui.page import build_app

    with serving(build_app()) as url:
        yield url.rstrip("/")


@pytest.mark.parametrize("paper", EXPLAINED, ids=named)
def test_python_examples_run(paper, request, monkeypatch, tmp_path):
    """From top to bottom, in one namespace."""
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for kind, code in FENCE.findall(paper.read_text("utf-8")):
        if kind != "python":
            continue
        if "127.0.0.1:7860" in code:
            code = code.replace("http://127.0.0.1:7860", request.getfixturevalue("served"))
        exec(compile(code, str(paper), "exec"), names)
