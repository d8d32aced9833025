"""`fillmask-ui site`: the Explore page for any static host, with the model in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fillmask_ui.cli.options import Force, option
from fillmask_ui.cli.terminal import print_line
from fillmask_ui.errors import DataError, OptionError, opening
from fillmask_ui.files import expanded, writing


def site(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="Folder to write.")],
    model: Annotated[
        str, option("Model in the browser; one that runs on ONNX Runtime.", "--model", "-m")
    ] = "embedded:int8",
    title: Annotated[str, option("Title of the page.", "--title")] = "Fill-mask explorer",
    frozen: Annotated[
        Path | None,
        option("Bake in the answers for its sentences, one per line.", "--frozen", metavar="FILE"),
    ] = None,
    force: Force = False,
) -> None:
    """Write a page that any static host serves, with the model in the browser.

    Nothing is fetched from elsewhere. With --frozen one page without a model or scripts.
    """
    from fillmask_ui.ui.site.build import build, freeze

    target = expanded(directory)
    if not directory.strip():
        raise OptionError("DIR is empty: name a folder to write, such as ./site")
    if target.exists() and not target.is_dir():
        raise OptionError(f"{directory} is a file: name a folder to write")
    if not force and target.is_dir() and any(target.iterdir()):
        raise OptionError(
            f"{directory} exists and holds files: name another folder, or use --force to write "
            "into this one"
        )
    files = build(model, title) if frozen is None else freeze(model, title, _sentences(frozen))
    with writing(target):
        target.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (target / name).write_bytes(content)
    size = sum(map(len, files.values()))
    shown = f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.0f} kB"
    print_line(f"{directory}: {len(files)} files, {shown}")
    if frozen is None:
        print_line(f"See it: python -m http.server -d {directory}, then http://localhost:8000")


def _sentences(path: Path) -> list[str]:
    with opening("text", path):
        lines = expanded(str(path)).read_text(encoding="utf-8").splitlines()
    if not (found := [line.strip() for line in lines if line.strip()]):
        raise DataError(f"{path} has no sentence: write one per line, with [MASK] or without")
    return found
