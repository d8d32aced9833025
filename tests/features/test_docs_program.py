"""The documents name and count what the program has: tabs, commands, options, names, chapters."""

import inspect
import re
from pkgutil import resolve_name

import pytest
from features.test_docs import (
    FENCE,
    PAPERS,
    PROGRAM,
    ROOT,
    STANDARD,
    commands,
    named,
    options,
    read,
    section,
)

import fillmask_ui
from fillmask_ui.evaluation import METRICS
from fillmask_ui.features.course.chapter import chapters
from fillmask_ui.features.course.exercises import COURSE_SEED, EXERCISES, exercises_of
from fillmask_ui.onnx_tools import schemes
from fillmask_ui.ui.explore.examples import EXAMPLE_SETS
from fillmask_ui.ui.page import tabs

# What a reader of today's program reads; one page is of a package that adds a command and a metric.
CURRENT = [
    *(paper for paper in PAPERS if paper.name not in ("CHANGELOG.md", "extending.md")),
    *sorted((ROOT / "assets").glob("*/README.md")),
    ROOT / "fillmask_ui/ui/templates/guide.html",
]
COUNTS = {
    "tab": len(tabs(public=False)),
    "chapter": len(chapters()),
    "exercise": sum(len(exercises_of(name, COURSE_SEED)) for name in EXERCISES),
    "command": len(PROGRAM.list_commands(None)),
    "option": len({option for _, option in options()}),
    "metric": len(METRICS),
    "scheme": len(schemes.SCHEMES),
    "public name": len(fillmask_ui.__all__),
}
WORDS = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
COUNTED = re.compile(
    rf"(?<![\w,.-])(\d+|{'|'.join(WORDS)})\s+({'|'.join(COUNTS)})s\b", re.IGNORECASE
)


def wrong_counts(text):
    for number, noun in COUNTED.findall(text):
        count = int(number) if number.isdigit() else WORDS.index(number.lower()) + 2
        if count != COUNTS[noun.lower()]:
            yield f"{number} {noun}s"


@pytest.mark.parametrize("paper", CURRENT, ids=named)
def test_counts_are_those_of_the_program(paper):
    assert not list(wrong_counts(paper.read_text("utf-8")))


def between(name, start, end):
    return read(name).split(start, 1)[1].split(end, 1)[0]


LABELS = [tab.label for tab in tabs(public=False)]
# What a page lists -> what the program has.
LISTS = {
    "tabs of the README": (re.findall(r"^- \*\*(\w+)\*\*", read("README.md"), re.M), LABELS),
    "tabs": (re.findall(r"[A-Z]\w+", between("docs/page.md", " tabs: ", ". ")), LABELS),
    "commands of the README": (
        re.findall(
            r"(?:fillmask-ui |(?<=[\s(])`)([a-z]+)(?=[ `])",
            section(read("README.md"), "The command line"),
        ),
        PROGRAM.list_commands(None),
    ),
    "public names": (
        re.findall(r"`(\w+)`", between("docs/python.md", "The public names are", ";"))
        + re.findall(r"(?m)(?:^\| |is a )`(\w+Error)`", section(read("docs/python.md"), "Errors")),
        list(fillmask_ui.__all__),
    ),
    "arguments of load_model": (
        re.findall(r"`(\w+)`", between("docs/python.md", "of `load_model` are", ".")),
        list(inspect.signature(fillmask_ui.load_model).parameters)[1:],
    ),
    "chapters": (
        re.findall(r"^\| (\d+) \| `(\S+)` \| (.*) \|$", read("docs/learn.md"), re.M),
        [(str(chapter.number), chapter.name, chapter.question) for chapter in chapters()],
    ),
    "example sets": (
        between("docs/page.md", "come in sets (", ")").replace("\n", " ").split(", "),
        [examples.name.lower() for examples in EXAMPLE_SETS],
    ),
}


def test_lists_are_those_of_the_program():
    for what, (stated, there) in LISTS.items():
        assert sorted(set(stated)) == sorted(there), what


@pytest.mark.parametrize("paper", CURRENT, ids=named)
def test_command_lines_are_those_of_the_program(paper):
    text = paper.read_text("utf-8").replace("\\\n", " ")
    known = dict(commands(PROGRAM))
    for line in re.findall(r"\bfillmask-ui ([^\n`|>#&]*)", "".join(code_of(text))):
        words = [word for word in line.split() if word != "..."]
        name = " ".join(["fillmask-ui", *words[: 2 if words[:1] == ["runs"] else 1]])
        if words and words[0].islower() and words[0].isalpha():
            assert name in known, line
        taken = {option for of, option in options() if of == name or name not in known}
        assert set(re.findall(r"(?<=\s)--[a-z0-9-]+", line)) <= taken | STANDARD, line


@pytest.mark.parametrize("paper", CURRENT, ids=named)
def test_options_are_those_of_the_program(paper):
    """In running text; of other programs those that pytest and the benchmarks have."""
    text = FENCE.sub("", paper.read_text("utf-8"))
    used = re.findall(r"(?<![\w-])--[a-z0-9-]+", "".join(code_of(text)))
    known = (
        {option for _, option in options()} | STANDARD | {"--randomly-seed", "--peers", "--rounds"}
    )
    assert set(used) <= known


def test_names_of_python_exist():
    for paper in CURRENT:
        for name in re.findall(r"`(fillmask_ui(?:\.\w+)+)`", paper.read_text("utf-8")):
            assert resolve_name(name)
    sources = (path for top in ("fillmask_ui", "tests") for path in (ROOT / top).rglob("*.py"))
    code = "".join(path.read_text("utf-8") for path in sources)
    for name in re.findall(r"`(_?[A-Z]\w+)`", read("CONTRIBUTING.md")):
        assert name == "PATH" or re.search(rf"(?m)^(class {name}\b|{name}\b.*=)", code), name


def code_of(text):
    """Fences and spans of code, a line each."""
    yield from (f"{code}\n" for _, code in FENCE.findall(text))
    yield from (f"{code}\n" for code in re.findall(r"`([^`\n]+)`", FENCE.sub("", text)))
