"""The table of rooms in code: imports only go down, heavy libraries live in one place each."""

import ast
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "fillmask_ui"

# From top to bottom; a module may import its own room and the rooms below it.
ROOMS = [
    "cli",
    "ui",
    "report",
    "plots_evaluation",
    "plots",
    "lessons",
    "training",
    "bench",
    "runs",
    "corpora",
    "models",
    "onnx_tools",
    "masking_stream",
    "evaluation",
    "statistics",
    "unmasking",
    "filling",
    "batching",
    "scoring",
    "masking",
    "protocol",
    "records",
    "assets",
    "errors",
]
CORE = ROOMS[ROOMS.index("evaluation") :]
# The two faces know nothing of each other; this one command starts the page.
EXCEPTIONS = {("cli/serve.py", "ui")}
# Heavy library -> the only places that import it.
HEAVY = {
    "gradio": ("ui/",),
    "plotly": ("plots",),
    "onnxruntime": ("models/onnx", "onnx_tools/"),
    "torch": ("models/torch", "training/", "onnx_tools/", "masking_stream"),
    "datasets": ("corpora/",),
    "pyarrow": ("corpora/", "runs"),
}


def modules():
    return sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def imports(module):
    """Dotted names of all that a module imports, also inside functions."""
    for node in ast.walk(ast.parse((PACKAGE / module).read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module
            if node.module == "fillmask_ui":
                yield from (f"fillmask_ui.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            raise AssertionError(f"{module}: relative import; write the full name")


def room(module):
    return module.split("/")[0].removesuffix(".py")


@pytest.mark.parametrize("module", modules())
def test_imports_only_go_down(module):
    if module in ("__init__.py", "__main__.py"):
        return
    own = room(module)
    assert own in ROOMS, f"{own} is not in the table of rooms"
    for name in imports(module):
        parts = name.split(".")
        if parts[0] != "fillmask_ui" or len(parts) == 1 or parts[1] not in ROOMS:
            continue
        below = parts[1]
        if below == own or (module, below) in EXCEPTIONS:
            continue
        assert ROOMS.index(below) > ROOMS.index(own), f"{module} imports {name}, which is above it"
        assert not {own, below} <= {"cli", "ui"}, f"{module} imports {name}: two faces"


@pytest.mark.parametrize("module", [name for name in modules() if room(name) in CORE])
def test_the_core_needs_numpy_alone(module):
    allowed = {*sys.stdlib_module_names, "numpy", "fillmask_ui"}
    foreign = {name.split(".")[0] for name in imports(module)} - allowed
    assert not foreign


@pytest.mark.parametrize("module", modules())
def test_heavy_libraries_stay_in_their_rooms(module):
    for name in imports(module):
        places = HEAVY.get(name.split(".")[0])
        assert places is None or module.startswith(places), f"{module} imports {name}"


@pytest.mark.parametrize("module", modules())
def test_files_stay_small(module):
    assert len((PACKAGE / module).read_text().splitlines()) <= 400
