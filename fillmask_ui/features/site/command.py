"""`fillmask-ui site` and `space`: the page as a folder, for any static host or as a Space."""

import shutil
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import fillmask_ui
from fillmask_ui.cli.options import FORCE, argument, option
from fillmask_ui.cli.terminal import folder_to_write, print_line, sentences_of
from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.files import asset, expanded, writing

DIRECTORY = argument(..., "DIR", "Folder to write.")

# Shipped folders that the page reads, which lie beside the package there as in a clone.
_ASSETS = ("model", "texts")
# What is compiled, or for browsers; the assets of a wheel are copied as such.
_LEFT_OUT = {"_assets", "__pycache__", "node_modules", "packed.tar.xz"}
# The hub takes larger files by Git LFS alone, which .gitattributes asks for by their endings.
_LARGE_BYTES = 10 * 1024**2
_APP = '''"""The page, as a Space runs it; a Space is public."""

from fillmask_ui.ui.page import build_app, launch, launch_options

demo = build_app(public=True)

if __name__ == "__main__":
    url = launch(demo, quiet=True, **launch_options(public=True))
    print(f"The page is at {url}")
    demo.block_thread()
'''
_TEXT = """
# Fill-mask explorer

A masked language model predicts hidden words. This page shows its predictions, how certain it is,
and how large the loss is that it was trained to reduce. The model and the texts are in `assets/`,
each with its card; the page downloads nothing.
"""


def site(
    directory: str = DIRECTORY,
    model: str = option(
        "embedded:int8", "Model in the browser; one that runs on ONNX Runtime.", "--model", "-m"
    ),
    title: str = option("Fill-mask explorer", "Title of the page.", "--title"),
    frozen: str | None = option(
        None,
        "Write one page with the answers for these sentences, one per line.",
        "--frozen",
        metavar="F|-",
    ),
    force: bool = FORCE,
) -> None:
    """Write a page that any static host serves, with the model in the browser.

    The page fetches nothing from elsewhere. With --frozen it has no model and no scripts.
    """
    from fillmask_ui.features.site.build import build, freeze

    target = folder_to_write(directory, force=force)
    if frozen is None:
        files = build(model, title) | {name: text.encode() for name, text in _licences().items()}
    else:
        files = freeze(model, title, [*sentences_of(None, frozen, "")])
    _write(files, target)
    size = sum(map(len, files.values()))
    size_text = f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.0f} kB"
    print_line(f"{directory}: {len(files)} files, {size_text}")
    if frozen is None:
        print_line(f"See it: python -m http.server -d {directory}, then http://localhost:8000")


def space(directory: str = DIRECTORY, force: bool = FORCE) -> None:
    """Write the page as a folder that a Hugging Face Space runs, ready to upload.

    It holds the package, the embedded model and texts, and the files that the Space starts from.
    """
    package, within = Path(fillmask_ui.__file__).parent, expanded(directory).resolve()
    sources = {package.name: package} | {f"assets/{name}": asset(name) for name in _ASSETS}
    inside = within == package.parent or not {within, *within.parents}.isdisjoint(sources.values())
    if inside and directory.strip():
        raise OptionError(f"{directory} is part of this installation: name another folder")
    target = folder_to_write(directory, force=force)
    copied = {
        f"{name}/{path.relative_to(source).as_posix()}": path
        for name, source in sources.items()
        for path in sorted(source.rglob("*"))
        if path.is_file() and not _is_left_out(path.relative_to(source))
    }
    large = sorted({path.suffix for path in copied.values() if path.stat().st_size > _LARGE_BYTES})
    texts = {
        "README.md": _card(),
        "app.py": _APP,
        "requirements.txt": _requirements(),
        **_licences(),
        ".gitattributes": "".join(
            f"*{suffix} filter=lfs diff=lfs merge=lfs -text\n" for suffix in large
        ),
    }
    _write(copied | {name: text.encode() for name, text in texts.items()}, target)
    size = sum(path.stat().st_size for path in copied.values())
    print_line(f"{directory}: {len(copied) + len(texts)} files, {size / 1e6:,.1f} MB")


def _write(files: Mapping[str, bytes | Path], target: Path) -> None:
    """Write files by their names below a folder; a path is that of a file to copy."""
    with writing(target):
        for name, content in files.items():
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Path):
                shutil.copyfile(content, path)
            else:
                path.write_bytes(content)


def _is_left_out(path: Path) -> bool:
    return any(part in _LEFT_OUT or part.startswith(".") for part in path.parts)


def _card() -> str:
    """README.md: what the Space is to run, and a word to its visitors."""
    from huggingface_hub import SpaceCardData

    header = SpaceCardData(
        title="Fill-mask explorer",
        emoji="🔎",
        colorFrom="indigo",
        colorTo="gray",
        sdk="gradio",
        sdk_version=metadata.version("gradio"),
        python_version=f"{sys.version_info.major}.{sys.version_info.minor}",
        app_file="app.py",
        license="apache-2.0",
        short_description="Look inside masked language models, offline",
    )
    return f"---\n{header.to_yaml()}\n---\n{_TEXT}"


def _requirements() -> str:
    """The dependencies of the package; the package itself, which lies in the tree, is none.

    A Space installs them before it has the tree.
    """
    declared = _distribution().requires or []
    return "".join(f"{name}\n" for name in declared if "extra ==" not in name)


def _licences() -> dict[str, str]:
    """The licence of the package, and what it contains from elsewhere."""
    names, checkout = ("LICENSE", "NOTICE"), Path(fillmask_ui.__file__).parents[1]
    if (checkout / "pyproject.toml").is_file():
        return {name: (checkout / name).read_text("utf-8") for name in names}
    texts = {name: _distribution().read_text(f"licenses/{name}") for name in names}
    return {name: text for name, text in texts.items() if text}


def _distribution() -> metadata.Distribution:
    """What is known of the installed package."""
    try:
        return metadata.distribution("fillmask-ui")
    except metadata.PackageNotFoundError as error:
        raise DataError(
            "fillmask-ui is not installed here, so that its dependencies are not known: install it "
            "(pip install -e . in a clone)"
        ) from error
