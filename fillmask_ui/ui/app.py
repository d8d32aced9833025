"""The page, assembled from its tabs."""

import functools
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gradio as gr

from fillmask_ui.models import ModelStore
from fillmask_ui.show.render import render
from fillmask_ui.ui import api, guide, tour, widgets
from fillmask_ui.ui.evaluate import tab as evaluate
from fillmask_ui.ui.explore import tab as explore
from fillmask_ui.ui.learn import tab as learn
from fillmask_ui.ui.links import on_link
from fillmask_ui.ui.memory import share_heaps
from fillmask_ui.ui.quantize import tab as quantize
from fillmask_ui.ui.request_guard import UPLOAD_SECONDS, middleware
from fillmask_ui.ui.session import Session
from fillmask_ui.ui.theme import theme
from fillmask_ui.ui.unmask import tab as unmask

TITLE = "Fill-mask explorer"
# Name in the address, label, what builds it; the first is where the page opens.
TABS = (
    ("explore", "Explore", explore.build),
    ("evaluate", "Evaluate", evaluate.build),
    ("unmask", "Unmask", unmask.build),
    ("quantize", "Quantize", quantize.build),
    ("learn", "Learn", learn.build),
    ("guide", "Guide", guide.build),
)
# Those that a public page does not have, as they write files and keep the processor busy.
PRIVATE = ("quantize",)

# What every page loads, in this order; a feature of its own has files of its own.
STYLES = (
    *("page.css", "explore.css", "lenses.css", "apart.css", "guess.css", "present.css", "tour.css"),
    *("evaluate.css", "examples.css", "guide.css", "replay.css", "parting.css"),
    *("learn.css", "lesson_loss.css", "lesson_sides.css", "lesson_masking.css"),
    *("lesson_accuracy.css", "lesson_senses.css", "exercises.css", "unmask.css"),
    *("compare.css", "quantize.css", "diagnose.css"),
)
SCRIPTS = (
    *("page.js", "explore.js", "strip.js", "joint.js", "explain.js", "loss.js"),
    *("lenses.js", "parting.js", "guess.js", "present.js", "tour.js", "replay.js", "evaluate.js"),
    *("figures.js", "learn.js", "projector.js", "lesson_save.js", "exercises.js", "unmask.js"),
    *("compare.js", "quantize.js"),
)


def build_app(
    store: ModelStore | None = None, default_model: str = "embedded", *, public: bool = False
) -> gr.Blocks:
    """The page, ready to launch with `launch_options`.

    Args:
        store: of loaded models; a new one if not given.
        default_model: reference of the model that a visitor finds picked.
        public: offer only the models at hand and keep the queue short.
    """
    # Gradio sums up all events after each one, for a monitor that `launch_options` switches off.
    os.environ.setdefault("GRADIO_ANALYTICS_CACHE_FREQUENCY", "1000")
    os.environ.setdefault("GRADIO_ANALYTICS_MAX_EVENTS", "1000")
    os.environ["GRADIO_TEMP_DIR"] = str(_received())
    share_heaps()
    session = Session(store or ModelStore(), default_model, public=public)

    def selected(link: Mapping[str, str]) -> Any:
        return gr.Tabs(selected=tab_of(link.get("tab", ""), public=public))

    kept = (300, UPLOAD_SECONDS) if public else (3600, 3600)
    with gr.Blocks(
        title=TITLE, analytics_enabled=False, delete_cache=kept, fill_width=False
    ) as demo:
        api.build(session)  # first, so that no event of a tab takes one of its names
        header = render("page/header.html", title=TITLE)
        widgets.html_block(header, js_on_load=widgets.static("header.js"), elem_id="header")
        tour.build()
        with gr.Tabs(elem_id="tabs") as tabs:
            for name, label, build in tabs_of(public):
                with gr.Tab(label, id=name) as tab:
                    build(session)
                # The tab that is open stands in the address, but for the first.
                remember = f"window.fillmask.remember_tab('{name}', '{TABS[0][0]}')"
                tab.select(None, js=f"() => {{ {remember}; }}")
        opened = on_link("", selected, [tabs])
        opened.then(None, js="() => { window.fillmask.loaded = true; }")

    # Only once the page answers: until then the two would hold each other up.
    demo.extra_startup_events.append(session.preload)
    demo.queue(max_size=64 if public else None, default_concurrency_limit=4, api_open=not public)
    return demo


@functools.cache
def _received() -> Path:
    """A folder of its own for what visitors send and fetch, which ends with this process."""
    home = os.environ.get("GRADIO_TEMP_DIR")
    if home:
        Path(home).mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="fillmask-ui-", dir=home)).resolve()
    weakref.finalize(_received, shutil.rmtree, folder, ignore_errors=True)
    return folder


def tabs_of(public: bool) -> list[tuple[str, str, Callable[[Session], None]]]:
    """The rows of `TABS` that a page has."""
    return [row for row in TABS if not (public and row[0] in PRIVATE)]


def tab_of(name: str, *, public: bool = False) -> str:
    """The tab that an address asks for; the first for any name that is not known.

    >>> tab_of("guide"), tab_of("<script>"), tab_of("quantize", public=True)
    ('guide', 'explore', 'explore')
    """
    return name if name in {known for known, _, _ in tabs_of(public)} else TABS[0][0]


def launch_options(public: bool = False, host: str | None = None) -> dict[str, Any]:
    """What `demo.launch` is to be called with.

    Args:
        public: for a page that strangers can reach.
        host: what it listens on; None for `GRADIO_SERVER_NAME`, else 127.0.0.1.
    """
    return {
        "server_name": host,
        "app_kwargs": {"middleware": middleware(host, public=public)},
        "theme": theme(),
        "css": "".join(widgets.static(name) for name in STYLES),
        "head": f"<script>{''.join(widgets.static(name) for name in SCRIPTS)}</script>",
        "run_history": False,
        "ssr_mode": False,
        "enable_monitoring": False,
        "footer_links": ["api", "gradio", "settings"],
        "max_file_size": "20mb" if public else "4gb",
        **({"max_threads": 16} if public else {}),
    }
