"""`fillmask-ui space`: the page as a tree of files that a Hugging Face Space runs."""

from __future__ import annotations

import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from fillmask_ui.cli.options import Force
from fillmask_ui.cli.terminal import folder_to_write, print_line
from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.files import asset, expanded, write_text, writing

# Shipped folders that the page reads, which lie beside the package there as in a clone.
_ASSETS = ("model", "texts")
# The hub takes larger files by Git LFS alone, which .gitattributes asks for by their endings.
_LARGE_BYTES = 10 * 1024**2
_APP = '''"""The page, as a Space runs it; a Space is public."""

from fillmask_ui.ui.page import build_app, launch, launch_options

demo = build_app(public=True)

if __name__ == "__main__":
    launch(demo, **launch_options(public=True))
    demo.block_thread()
'''
_TEXT = """
# Fill-mask explorer

A masked language model guesses hidden words. This page shows what it guesses, how sure it is, and
what that costs in the loss that it was trained with. The model and the texts lie in `assets/`, each
with its card; nothing is fetched.
"""


def space(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="Folder to write.")],
    force: Force = False,
) -> None:
    """Write the page as a folder that a Hugging Face Space runs, ready to upload.

    It holds the package, the embedded model and texts, and what the Space reads first.
    """
    package, within = Path(__file__).parent.parent, expanded(directory).resolve()
    sources = {package.name: package} | {f"assets/{name}": asset(name) for name in _ASSETS}
    inside = within == package.parent or not {within, *within.parents}.isdisjoint(sources.values())
    if inside and directory.strip():
        raise OptionError(f"{directory} is part of this installation: name another folder")
    target = folder_to_write(directory, force=force)
    copied = {
        target / name / path.relative_to(source): path
        for name, source in sources.items()
        for path in sorted(source.rglob("*"))
        if path.is_file() and not _is_left_out(path.relative_to(source))
    }
    large = sorted({path.suffix for path in copied.values() if path.stat().st_size > _LARGE_BYTES})
    texts = {
        "README.md": _card(),
        "app.py": _APP,
        "requirements.txt": _requirements(),
        ".gitattributes": "".join(f"*{own} filter=lfs diff=lfs merge=lfs -text\n" for own in large),
    }
    with writing(target):
        for fresh, path in copied.items():
            fresh.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, fresh)
    for name, text in texts.items():
        write_text(text, target / name)
    size = sum(path.stat().st_size for path in copied.values())
    print_line(f"{directory}: {len(copied) + len(texts)} files, {size / 1e6:,.1f} MB")


def _is_left_out(path: Path) -> bool:
    """What is hidden, compiled, or for browsers; the assets of a wheel are copied as such."""
    return any(
        part in ("_assets", "__pycache__", "node_modules", "packed.tar.xz") or part.startswith(".")
        for part in path.parts
    )


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
    try:
        declared = metadata.requires("fillmask-ui") or []
    except metadata.PackageNotFoundError as error:
        raise DataError(
            "fillmask-ui is not installed here, so that its dependencies are not known: install it "
            "(pip install -e . in a clone)"
        ) from error
    return "".join(f"{own}\n" for own in declared if "extra ==" not in own)
