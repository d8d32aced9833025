"""The table of rooms in code: imports only go down, heavy libraries live in one place each.

A name in a string counts as an import: `import_module("fillmask_ui.show")`, and targets in tables.
"""

import ast
import re
import sys
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "fillmask_ui"

# From top to bottom; a module may import its own room and the rooms below it.
ROOMS = [
    "cli",
    "ui",
    "show",
    "publishing",
    "runs",
    "texts",
    "models",
    "onnx_tools",
    "schema",
    "evaluation",
    "extensions",
    "intervals",
    "comparing",
    "filling",
    "batching",
    "scoring",
    "masking",
    "tokenizers",
    "protocol",
    "text_words",
    "records",
    "options",
    "files",
    "errors",
]
CORE = ROOMS[ROOMS.index("evaluation") :]
# The two faces know nothing of each other; one command starts the page.
EXCEPTIONS = {("cli/serve.py", "ui")}
# Heavy library -> the only places of the core that import it; features import what they need.
HEAVY = {
    "gradio": ("ui/",),
    "plotly": ("show/charts/",),
    "pandas": ("show/displays",),
    "jinja2": ("show/render",),
    "onnxruntime": ("models/onnx", "onnx_tools/"),
    "torch": ("models/torch", "onnx_tools/", "runs/collator_masks"),
    "pydantic": ("schema",),
    "platformdirs": ("files",),
    "yaml": ("ui/explore/examples",),
    "datasets": ("texts/",),
    "pyarrow": ("texts/", "runs/"),
    "segno": (),
    "ray": (),
    "lm_eval": (),
    "evaluate": (),
}


def modules():
    return sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


DOTTED = re.compile(r"fillmask_ui(\.\w+)+(:\w+)?")


@cache
def imports(module):
    """Dotted names of all that a module imports, also inside functions and by strings."""
    names = []
    for node in ast.walk(ast.parse((PACKAGE / module).read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import; write the full name"
            names += (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.Constant) and DOTTED.fullmatch(str(node.value)):
            names.append(node.value.replace(":", "."))
    return names


def room(module):
    """The first part of its path; of a feature its folder."""
    first, *others = module.split("/")
    return (
        f"features/{others[0]}" if first == "features" and others[1:] else first.removesuffix(".py")
    )


def module_name(module):
    return "fillmask_ui." + module.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def target_room(name):
    """The room of a dotted name; blank for a name that is none of the package."""
    parts = name.split(".")
    if parts[0] != "fillmask_ui" or len(parts) < 2:
        return ""
    return "/".join(parts[1:3]) if parts[1] == "features" else parts[1]


def test_imports_only_go_down():
    inside = [name for name in modules() if name not in ("__init__.py", "__main__.py")]
    core = {name for name in map(room, inside) if not name.startswith("features")}
    assert set(ROOMS) == core
    wrong = []
    for module in inside:
        home = room(module)
        for name in imports(module):
            target = target_room(name)
            if home.startswith("features/"):
                # A feature may import all of the core, and nothing of another feature.
                allowed = target in (home, "", *ROOMS) or not target.startswith("features/")
            elif target.startswith("features"):
                allowed = module == "extensions.py"  # the slot
            elif target not in ROOMS or target == home:
                allowed = True
            else:
                faces = {target, home} == {"cli", "ui"}
                down = ROOMS.index(target) > ROOMS.index(home)
                allowed = (module, target) in EXCEPTIONS or (down and not faces)
            if not allowed:
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
            allowed = module.startswith(("features/", *places))
            if not allowed or (room(module) in CORE and library not in light):
                wrong.append(f"{module} imports {name}")
    assert not wrong


def test_files_stay_small():
    lines = {
        module: len((PACKAGE / module).read_text("utf-8").splitlines()) for module in modules()
    }
    assert not {module: count for module, count in lines.items() if count > 500}
