"""`fillmask-ui site`: the Explore page for any static host, with the model in the browser."""

from __future__ import annotations

from typing import Annotated

import typer

from fillmask_ui.cli.options import Force, option
from fillmask_ui.cli.terminal import folder_to_write, given_texts, print_line
from fillmask_ui.files import writing


def site(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="Folder to write.")],
    model: Annotated[
        str, option("Model in the browser; one that runs on ONNX Runtime.", "--model", "-m")
    ] = "embedded:int8",
    title: Annotated[str, option("Title of the page.", "--title")] = "Fill-mask explorer",
    frozen: Annotated[
        str | None,
        option("Bake in the answers for its sentences, one per line.", "--frozen", metavar="F|-"),
    ] = None,
    force: Force = False,
) -> None:
    """Write a page that any static host serves, with the model in the browser.

    Nothing is fetched from elsewhere. With --frozen one page without a model or scripts.
    """
    from fillmask_ui.ui.site.build import build, freeze

    target = folder_to_write(directory, force=force)
    if frozen is None:
        files = build(model, title)
    else:
        files = freeze(model, title, [*given_texts(None, frozen, "")[0]])
    with writing(target):
        target.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (target / name).write_bytes(content)
    size = sum(map(len, files.values()))
    shown = f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.0f} kB"
    print_line(f"{directory}: {len(files)} files, {shown}")
    if frozen is None:
        print_line(f"See it: python -m http.server -d {directory}, then http://localhost:8000")
