"""The package as a user gets it: import cost, requirements, wheel, Space, style."""

import importlib
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from contextlib import suppress
from fnmatch import fnmatch
from functools import partial
from itertools import chain
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
import yaml
from hatchling.build import build_editable
from packaging.requirements import Requirement
from recorded.program import ran
from serving import free_port
from test_layers import imports, modules
from typer.testing import CliRunner

from fillmask_ui.cli.main import app
from fillmask_ui.errors import OptionError
from fillmask_ui.features.sweep.sweep import tomllib
from fillmask_ui.files import asset

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


run = partial(ran, cwd=ROOT)


# What a process runs -> libraries that it does not import, for speed.
LIGHT = {
    "import fillmask_ui, fillmask_ui.cli.main, fillmask_ui.filling, fillmask_ui.models": (
        *("gradio", "torch", "transformers", "plotly", "onnxruntime", "onnx", "datasets"),
    ),
    "from fillmask_ui.cli.main import run; sys.argv = ['', 'predict', '--help']; run()": (
        *("gradio", "torch", "transformers", "plotly", "onnxruntime", "onnx", "datasets", "numpy"),
    ),
    "import fillmask_ui; fillmask_ui.load_model().vocabulary.encode('a [MASK]')": (
        *("gradio", "torch", "transformers"),
    ),
    "from fillmask_ui.texts import TextChoice, open_texts\n"
    "next(open_texts(TextChoice('requirements.txt').source()))": (
        *("datasets", "pyarrow", "torch", "transformers"),
    ),
    "from fillmask_ui.ui.page import build_app; build_app()": ("torch",),
}


@pytest.mark.parametrize("code", LIGHT)
def test_no_library_is_imported_that_is_not_needed(code):
    told = (
        f"import atexit, sys; atexit.register(lambda: print('', *sys.modules, sep=chr(10)));{code}"
    )
    loaded = run(sys.executable, "-c", told).stdout.split("\n")
    assert "fillmask_ui" in loaded
    assert not {*LIGHT[code]} & {*loaded}


def test_requirements_are_those_of_the_package():
    assert (ROOT / "requirements.txt").read_text().split("\n")[:-1] == PROJECT["dependencies"]


def test_what_is_imported_is_declared():
    """Imports name modules, and requirements name packages, which may be called otherwise."""
    groups = PROJECT["optional-dependencies"] | {"dev": PROJECT["dependencies"]}  # not for tests
    packages = {Requirement(line).name.replace("-", "_") for line in chain(*groups.values())}
    packages |= {"lm_eval", "markdown_it", "yaml"}  # lm-eval, markdown-it-py, pyyaml
    imported = {name.partition(".")[0] for module in modules() for name in imports(module)}
    assert not imported - packages - {"fillmask_ui", *sys.stdlib_module_names}


def new_environment(home, *requirements, offline=True):
    """Python of a new virtual environment with these requirements installed.

    Offline the dependencies come from this environment, without its copy of the package: a path
    line does not run the .pth files of that folder.
    """
    assert run(sys.executable, "-m", "venv", "--without-pip", str(home)).returncode == 0
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q"]
    if offline:
        code = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
        site = Path(run(str(python), "-c", code).stdout.strip())
        here = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
        (site / "dependencies.pth").write_text("\n".join([*here, ""]))
        pip.append("--no-index")
    installed = run(*pip, *requirements)
    assert installed.returncode == 0, installed.stderr
    code = "import fillmask_ui.cli.main"  # the namespace of a file beside it is none
    assert "--no-deps" in requirements or run(str(python), "-c", code, cwd=home).returncode == 1
    return python


def test_an_editable_installation_has_no_copy_of_the_model(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert (tmp_path / build_editable(str(tmp_path))).stat().st_size < 100_000


def test_links_of_a_published_readme_lead_to_the_repository(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    readme = importlib.import_module("hatch_build").Readme(str(ROOT), {})
    metadata = {"urls": {"Repository": "https://example.org/it"}}
    readme.update(metadata)
    text = metadata["readme"]["text"]
    assert "](https://example.org/it/raw/main/assets/explore-light.png)" in text
    assert "](https://example.org/it/blob/main/docs/page.md)" in text
    assert not re.search(r"\]\((?!https?:|#)", text)


def test_a_built_wheel_predicts_in_an_empty_environment(tmp_path, packed):
    built = run(
        sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), "."
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    files = zipfile.ZipFile(wheel)
    assert "fillmask_ui/py.typed" in files.namelist()
    versions = json.loads((ROOT / "fillmask_ui/features/site/package.json").read_text())
    (notice,) = (files.read(name).decode() for name in files.namelist() if name.endswith("/NOTICE"))
    for package, version in versions["dependencies"].items():
        assert package == "terser" or f"{package} {version}" in notice  # it stays at home
    venv = tmp_path / "venv"
    python = new_environment(venv, "--no-deps", str(wheel))
    code = "import fillmask_ui; print(fillmask_ui.__file__)"
    assert run(str(python), "-c", code, cwd=tmp_path).stdout.startswith(str(venv))
    program = python.with_name("fillmask-ui")
    text = "The capital of France is [MASK]."
    result = run(str(program), "predict", text, "--json", cwd=tmp_path, HF_HUB_OFFLINE="1")
    assert result.returncode == 0, result.stderr
    (mask,) = json.loads(result.stdout)["masks"]
    assert len(mask["candidates"]) == 5
    # What a browser needs came along.
    made = run(str(program), "site", "page", cwd=tmp_path, PATH="")
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "page" / "ort.wasm.gz").is_file()
    written = [
        run(str(own), "-m", "fillmask_ui", "space", "tree", "--force", cwd=tmp_path)
        for own in (python, sys.executable)  # of the wheel, of the clone
    ]
    assert written[0].stdout == written[1].stdout != ""


COMPILED = {"__pycache__", "_assets", "node_modules", "packed.tar.xz"}


def files_in(folder):
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path.as_posix() for path in paths if COMPILED.isdisjoint(path.parts)}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("space") / "tree"
    written = run(sys.executable, "-m", "fillmask_ui", "space", str(folder))
    assert written.returncode == 0, written.stderr
    assert written.stdout.startswith(f"{folder}: {len(files_in(folder))} files, ")
    return folder


def test_the_tree_holds_the_page_and_nothing_else(tree):
    assert {path.name for path in tree.iterdir()} == {
        *("README.md", "app.py", "requirements.txt", ".gitattributes", "fillmask_ui", "assets"),
        *("LICENSE", "NOTICE"),
    }
    assert files_in(tree / "fillmask_ui") == files_in(ROOT / "fillmask_ui")
    assert {path.name for path in (tree / "assets").iterdir()} == {"model", "texts"}
    for name in ("model", "texts"):
        assert files_in(tree / "assets" / name) == files_in(asset(name))
    header = yaml.safe_load((tree / "README.md").read_text("utf-8").split("---\n")[1])
    assert (header["sdk"], header["app_file"]) == ("gradio", "app.py")
    wanted = (tree / "requirements.txt").read_text().splitlines()
    ours = (ROOT / "requirements.txt").read_text().splitlines()
    assert {*map(Requirement, wanted)} == {*map(Requirement, ours)}
    gradio = next(own for own in map(Requirement, wanted) if own.name == "gradio")
    assert header["sdk_version"] in gradio.specifier
    kinds = [line.split()[0] for line in (tree / ".gitattributes").read_text().splitlines()]
    for path in tree.rglob("*"):
        if path.is_file() and path.stat().st_size > 10 * 1024**2:
            assert any(fnmatch(path.name, kind) for kind in kinds), path


@pytest.mark.parametrize("offline", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_space_shows_the_first_page(tree, tmp_path, offline):
    """Offline its requirements resolve to what is installed here; else they come from PyPI."""
    requirements = str(tree / "requirements.txt")
    python = new_environment(tmp_path / "venv", "-r", requirements, offline=offline)
    port = str(free_port())
    own = {"SPACE_ID": "me/space", "GRADIO_SERVER_NAME": "127.0.0.1", "GRADIO_SERVER_PORT": port}
    log = tmp_path / "log"
    with log.open("w") as file:
        page = subprocess.Popen(
            [str(python), "-B", "app.py"], cwd=tree, env=os.environ | own, stdout=file, stderr=file
        )
    try:
        while page.poll() is None:
            with suppress(URLError), urlopen(f"http://127.0.0.1:{port}/") as answer:
                assert b"Fill-mask explorer" in answer.read()
                assert "https://*.hf.space" in answer.headers["content-security-policy"]
                return
            time.sleep(0.1)
        pytest.fail(log.read_text())
    finally:
        page.kill()
        page.wait()


@pytest.mark.parametrize("directory", [".", "fillmask_ui/ui/new"])
def test_a_folder_of_this_installation_is_refused(directory, monkeypatch):
    monkeypatch.chdir(ROOT)
    answer = CliRunner().invoke(app, ["space", directory])
    assert isinstance(answer.exception, OptionError)
    assert "is part of this installation" in str(answer.exception)
