"""The table of rooms in code: imports only go down, heavy libraries live in one place each."""

import ast
import sys
from functools import cache
from pathlib import Path

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
    "bridges",
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
    "text_words",
    "records",
    "options",
    "files",
    "errors",
]
CORE = ROOMS[ROOMS.index("evaluation") :]
# The two faces know nothing of each other; this one command starts the page.
EXCEPTIONS = {("cli/serve.py", "ui"), ("cli/site.py", "ui")}
# Heavy library -> the only places that import it.
HEAVY = {
    "gradio": ("ui/",),
    "plotly": ("show/charts/",),
    "segno": ("ui/classroom/",),
    "pandas": ("show/displays",),
    "jinja2": ("show/render", "lessons/exercises/generator"),
    "onnxruntime": ("models/onnx", "onnx_tools/", "bench/machine"),
    "torch": ("models/torch", "training/", "onnx_tools/", "runs/collator_masks", "bench/peers"),
    "pydantic": ("schema",),
    "platformdirs": ("files",),
    "yaml": ("lessons/", "ui/explore/examples"),
    "datasets": ("texts/", "bridges/"),
    "pyarrow": ("texts/", "runs/", "cluster/"),
    "ray": ("cluster/",),
    "lm_eval": ("bridges/",),
    "evaluate": ("bridges/",),
}


def modules():
    return sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


@cache
def imports(module):
    """Dotted names of all that a module imports, also inside functions."""
    names = []
    for node in ast.walk(ast.parse((PACKAGE / module).read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import; write the full name"
            names += (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
    return names


def room(module):
    return module.split("/")[0].removesuffix(".py")


def module_name(module):
    return "fillmask_ui." + module.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def test_imports_only_go_down():
    inside = [name for name in modules() if name not in ("__init__.py", "__main__.py")]
    assert set(ROOMS) == {room(module) for module in inside}
    wrong = []
    for module in inside:
        own = room(module)
        for name in imports(module):
            first, _, rest = name.partition(".")
            below = rest.split(".")[0]
            if first != "fillmask_ui" or below not in ROOMS or below == own:
                continue
            up = ROOMS.index(below) < ROOMS.index(own)
            if (up or {own, below} == {"cli", "ui"}) and (module, below) not in EXCEPTIONS:
                wrong.append(f"{module} imports {name}")
    assert not wrong


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


def test_libraries_stay_in_their_rooms():
    """Heavy ones in one place each; the core needs numpy alone."""
    light = {*sys.stdlib_module_names, "numpy", "fillmask_ui", "platformdirs"}
    wrong = []
    for module in modules():
        for name in imports(module):
            library = name.split(".")[0]
            places = HEAVY.get(library, ("",))
            if not module.startswith(places) or (room(module) in CORE and library not in light):
                wrong.append(f"{module} imports {name}")
    assert not wrong


def test_files_stay_small():
    lines = {
        module: len((PACKAGE / module).read_text("utf-8").splitlines()) for module in modules()
    }
    assert not {module: count for module, count in lines.items() if count > 500}
