"""Names say what they hold: words that fit anything stay rare, and a class name stands once."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "fillmask_ui"
# Words that fit a loop item, a record, an option or a file alike.
EMPTY_WORDS = {
    "own",
    "asked",
    "wanted",
    "given",
    "known",
    "kept",
    "shown",
    "said",
    "told",
    "made",
    "found",
    "place",
    "way",
    "turn",
    "piece",
    "pieces",
    "side",
    "sides",
    "end",
    "ends",
    "one",
    "other",
    "others",
    "both",
    "what",
    "rest",
    "here",
    "now",
    "many",
}
MOST_USES = 500


def names_in(tree: ast.Module) -> Iterator[str]:
    """Variables, parameters, attributes and keywords."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                yield name
            case ast.keyword(arg=str(name)):
                yield name


def trees() -> dict[str, ast.Module]:
    files = sorted(PACKAGE.rglob("*.py"))
    return {str(path.relative_to(PACKAGE)): ast.parse(path.read_text("utf-8")) for path in files}


def test_few_names_fit_anything():
    uses = Counter(
        {
            path: sum(name in EMPTY_WORDS for name in names_in(tree))
            for path, tree in trees().items()
        }
    )
    assert uses.total() < MOST_USES, uses.most_common(10)


def test_a_class_name_stands_once():
    places: dict[str, list[str]] = {}
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(path)
    assert not {name: paths for name, paths in places.items() if len(paths) > 1}
