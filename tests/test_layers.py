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
    "show",
    "lessons",
    "training",
    "quantizing",
    "bench",
    "sweeps",
    "cluster",
    "runs",
    "texts",
    "models",
    "onnx_tools",
    "schema",
    "evaluation",
    "intervals",
    "unmasking",
    "comparing",
    "filling",
    "batching",
    "scoring",
    "masking",
    "protocol",
    "records",
    "options",
    "files",
    "errors",
]
CORE = ROOMS[ROOMS.index("evaluation") :]
# The two faces know nothing of each other; this one command starts the page.
EXCEPTIONS = {("cli/serve.py", "ui")}
# Heavy library -> the only places that import it.
HEAVY = {
    "gradio": ("ui/",),
    "plotly": ("show/charts/",),
    "jinja2": ("show/render",),
    "onnxruntime": ("models/onnx", "onnx_tools/", "bench/products"),
    "torch": ("models/torch", "training/", "onnx_tools/", "runs/collator_masks", "bench/peers"),
    "pydantic": ("schema",),
    "platformdirs": ("files",),
    "yaml": ("lessons/chapter",),
    "datasets": ("texts/",),
    "pyarrow": ("texts/", "runs/", "cluster/"),
    "ray": ("cluster/",),
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
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
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


def test_the_table_lists_the_rooms_that_exist():
    assert set(ROOMS) == {room(module) for module in modules()} - {"__init__", "__main__"}


def module_name(module):
    return "fillmask_ui." + module.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def test_no_module_imports_itself_through_others():
    """Also inside a room; what is imported for types alone counts, as readers follow it too."""
    names = {module_name(module): module for module in modules()}
    reached = {
        name: {target for target in imports(module) if target in names and target != name}
        for name, module in names.items()
        if module not in ("__init__.py", "__main__.py")
    }
    # A package's own __init__ gathers its modules: a module that imports it goes in a circle.
    circles = set()
    for start in reached:
        seen, waiting = set(), list(reached[start])
        while waiting:
            name = waiting.pop()
            if name == start:
                circles.add(start)
                break
            if name not in seen:
                seen.add(name)
                waiting += reached.get(name, ())
    assert not circles


@pytest.mark.parametrize("module", [name for name in modules() if room(name) in CORE])
def test_the_core_needs_numpy_alone(module):
    # platformdirs: in `files` alone, when a folder of the user is asked for.
    allowed = {*sys.stdlib_module_names, "numpy", "fillmask_ui", "platformdirs"}
    foreign = {name.split(".")[0] for name in imports(module)} - allowed
    assert not foreign


@pytest.mark.parametrize("module", modules())
def test_heavy_libraries_stay_in_their_rooms(module):
    for name in imports(module):
        places = HEAVY.get(name.split(".")[0])
        assert places is None or module.startswith(places), f"{module} imports {name}"


@pytest.mark.parametrize("module", modules())
def test_files_stay_small(module):
    assert len((PACKAGE / module).read_text().splitlines()) <= 500
