"""The page, assembled from its tabs."""

import asyncio
import contextlib
import functools
import html
import json
import logging
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.components import Component
from gradio.context import get_blocks_context
from gradio.networking import url_ok
from gradio.themes.utils import fonts
from starlette.middleware import Middleware

from fillmask_ui.errors import FillmaskError, NetworkError
from fillmask_ui.extensions import Tab, features, load
from fillmask_ui.files import visible
from fillmask_ui.models import ModelStore
from fillmask_ui.show.charts.chart import new_figure
from fillmask_ui.show.render import render
from fillmask_ui.ui import components
from fillmask_ui.ui.evaluate.evaluation_jobs import EvaluationJobs
from fillmask_ui.ui.explore.explore_modes import served
from fillmask_ui.ui.explore.explore_state import Json
from fillmask_ui.ui.explore.tab import first_answer, tab_html
from fillmask_ui.ui.job import Unfinished
from fillmask_ui.ui.memory import share_heaps
from fillmask_ui.ui.page_files import PageFiles
from fillmask_ui.ui.request_guard import MOST_SESSIONS, UPLOAD_SECONDS, middleware
from fillmask_ui.ui.served import serve
from fillmask_ui.ui.session import Session

_LOG = logging.getLogger(__name__)
TITLE = "Fill-mask explorer"
# The page opens at the first.
TABS = (
    Tab("explore", "Explore", "fillmask_ui.ui.explore.tab:build"),
    Tab("evaluate", "Evaluate", "fillmask_ui.ui.evaluate.tab:build"),
    Tab("guide", "Guide", "fillmask_ui.ui.guide:build"),
)
# Of a page that has started, for a first answer; each waits some seconds at most.
ATTEMPTS = 40


def build_app(
    store: ModelStore | None = None,
    default_model: str = "embedded",
    *,
    public: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> gr.Blocks:
    """The page, ready to launch with `launch_options`.

    A visitor finds `default_model` picked; a `public` page offers only the models at hand and keeps
    the queue short. Features read their `settings` from the session.
    """
    # Gradio sums up all events after each one, for a monitor that `launch_options` switches off.
    os.environ.setdefault("GRADIO_ANALYTICS_CACHE_FREQUENCY", "1000")
    os.environ.setdefault("GRADIO_ANALYTICS_MAX_EVENTS", "1000")
    os.environ["GRADIO_TEMP_DIR"] = str(_received())
    share_heaps()
    session = Session(store or ModelStore(), default_model, public=public, settings=settings)
    # Explore shows tokens of stored runs, too.
    session.stored_runs = session.shared(EvaluationJobs).store

    cache_seconds = (60, UPLOAD_SECONDS) if public else (3600, 3600)
    with _Page(
        title=TITLE, analytics_enabled=False, delete_cache=cache_seconds, fill_width=False
    ) as demo:
        # First, so that no event takes their names.
        load(session.settings.get("endpoints", "fillmask_ui.ui.api:build"))(session)
        components.place_of("page-header")
        openers = {row.name: _opener(row.name) for row in tabs(public)[1:]}
        with gr.Tabs(elem_id="tabs", overflow_behavior="wrap"):
            for row in tabs(public):
                with gr.Tab(row.label, id=row.name) as tab:
                    if row.name == TABS[0].name:
                        load(row.target)(session)
                    else:
                        _build_when_opened(row, openers[row.name], session)
                # The tab that is open stands in the address, but for the first.
                remember = f"window.fillmask.remember_tab('{row.name}', '{TABS[0].name}')"
                tab.select(None, js=f"() => {{ {remember}; }}")
        for feature in features():
            for target in feature.on_page:
                load(target)(demo, session)

        demo.unload(_leaving(session))

    _prepare_first_sight(demo, session)
    demo.extra_startup_events.append(serve(demo, session, served()))
    demo.queue(max_size=64 if public else None, default_concurrency_limit=4, api_open=not public)
    return demo


# A lock of each session: two threads must not change its table of components at once.
_BUILDING: weakref.WeakKeyDictionary[Any, asyncio.Lock] = weakref.WeakKeyDictionary()


class _Page(gr.Blocks):
    """Tells a value that a control cannot hold in a line; Gradio would log a traceback of each."""

    first_sight: str = ""  # HTML that stands there until Gradio has built the page

    async def process_api(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        """As Gradio does, but a session builds one tab after the other."""
        state = options.get("state")
        if state is None or getattr(options.get("block_fn"), "renderable", None) is None:
            return await super().process_api(*arguments, **options)
        async with _BUILDING.setdefault(state, asyncio.Lock()):
            return await super().process_api(*arguments, **options)

    async def preprocess_data(self, *arguments: Any, **options: Any) -> Any:
        try:
            return await super().preprocess_data(*arguments, **options)
        except Exception as error:
            message = (error.message if isinstance(error, gr.Error) else str(error))[:200]
            _LOG.warning("a request was refused: %s", visible(message))
            raise gr.Error(html.escape(message), print_exception=False) from error


def _leaving(session: Session) -> Callable[[gr.Request], None]:
    def leave(request: gr.Request) -> None:
        session.leave(request.session_hash or "")

    return leave


def _opener(tab: str) -> gr.HTML:
    """What the browser triggers once somebody is about to open a tab (`page.prepare_tab`)."""
    script = f"window.fillmask.tab_opener({json.dumps(tab)}, () => trigger('submit'));"
    return components.html_block(js_on_load=script, visible="hidden")


def _build_when_opened(row: Tab, opener: gr.HTML, session: Session) -> None:
    """Create the components of a tab once a page opens it: until then they cost nothing."""

    @gr.render(triggers=[opener.submit], queue=False, show_progress="hidden")
    def _() -> None:
        load(row.target)(session)
        # Gradio lets a visitor change what a function reads, but not in what comes later.
        config = get_blocks_context()
        functions = config.fns.values() if config else ()
        inputs = [block for function in functions for block in function.inputs]
        for block in inputs:
            if isinstance(block, Component) and block.rendered_in and block.interactive is None:
                block.interactive = True


@functools.cache
def _received() -> Path:
    """A folder for uploads and downloads, removed when this process ends."""
    home = os.environ.get("GRADIO_TEMP_DIR")
    if home:
        Path(home).mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="fillmask-ui-", dir=home)).resolve()
    weakref.finalize(_received, shutil.rmtree, folder, ignore_errors=True)
    return folder


def _prepare_first_sight(demo: _Page, session: Session) -> None:
    """Let the page open with Explore, and soon with its first answer, which needs a model."""
    offered = tabs(session.public)
    not_offered = [tab for tab in tabs(public=False) if tab not in offered]

    def draw(first: Json | None) -> None:
        explore = tab_html(session, first, not_offered)
        demo.first_sight = render("ui/shell.html", title=TITLE, tabs=offered, explore=explore)

    def prepare() -> None:
        # The first visitor to use the model sees the error.
        with contextlib.suppress(FillmaskError, Unfinished):
            draw(first_answer(session))
        new_figure("")  # imports plotly

    async def begin() -> None:
        threading.Thread(target=prepare, daemon=True, name="first answer").start()

    draw(None)
    # Only once the page answers: until then the two would hold each other up.
    demo.extra_startup_events.append(begin)


def tabs(public: bool) -> list[Tab]:
    """The tabs of a page from left to right: those of the core, and between them the features'."""
    rows = list(TABS)
    for feature in features():
        for tab in feature.tabs:
            names = [row.name for row in rows]
            position = names.index(tab.after) + 1 if tab.after in names else len(rows) - 1
            rows.insert(position, tab)
    return [row for row in rows if not (public and row.private)]


def launch_options(public: bool = False, host: str | None = None) -> dict[str, Any]:
    """Arguments for `demo.launch`; without a `host` that of `GRADIO_SERVER_NAME`, or 127.0.0.1."""
    files = Middleware(PageFiles)
    return {
        "server_name": host,
        "app_kwargs": {"middleware": [*middleware(host, public=public), files]},
        "theme": theme(),
        "run_history": False,
        "ssr_mode": False,
        "mcp_server": False,  # whatever `GRADIO_MCP_SERVER` says: it would serve other functions
        "enable_monitoring": False,
        "footer_links": ["api", "gradio", "settings"],
        "max_file_size": "20mb" if public else "4gb",
        **({"max_threads": 16, "state_session_capacity": MOST_SESSIONS} if public else {}),
    }


def launch(demo: gr.Blocks, **options: Any) -> str:
    """Start the page on a thread of its own; its address on this machine, once it answers.

    Gradio gives up a page that has started but does not answer once within 3 s, as on a busy
    machine. It is asked again instead.

    Raises:
        NetworkError: if it has started, but does not answer.
        OSError: if nothing can listen there.
    """
    try:
        demo.launch(prevent_thread_lock=True, **options)
    except ValueError:
        url: Any = demo.local_url
        if not getattr(demo, "is_running", False) or not url:
            raise
        if not any(url_ok(url) for _ in range(ATTEMPTS)):
            demo.close(verbose=False)
            raise NetworkError(
                f"the page has started, but {url} does not answer this machine: "
                "look at the settings of its proxy or firewall"
            ) from None
    return str(demo.local_url)


# The same in both themes.
_SHAPES = {
    "block_border_width": "0px",
    "block_shadow": "none",
    "block_padding": "0px",
    "block_title_text_weight": "700",
    "input_border_width": "1px",
    "input_shadow": "none",
    "input_shadow_focus": "0 0 0 3px rgba(13, 148, 136, .18)",
    "button_primary_text_color": "white",
}
# In the light theme and in the dark one.
_COLOURS = {
    "body_background_fill": ("*neutral_50", "#171513"),
    "body_text_color": ("*neutral_800", "*neutral_200"),
    "body_text_color_subdued": ("*neutral_600", "*neutral_400"),
    "background_fill_primary": ("white", "#211e1b"),
    "block_background_fill": ("transparent", "transparent"),
    "block_label_background_fill": ("transparent", "transparent"),
    "block_title_text_color": ("*neutral_800", "*neutral_200"),
    "block_info_text_color": ("*neutral_600", "*neutral_400"),
    "input_background_fill": ("white", "#211e1b"),
    "input_border_color": ("*neutral_300", "*neutral_700"),
    "input_border_color_focus": ("*primary_600", "*primary_400"),
    "button_primary_background_fill": ("*primary_700", "*primary_700"),
    "button_primary_background_fill_hover": ("*primary_800", "*primary_800"),
    "link_text_color": ("*primary_700", "*primary_300"),
    "link_text_color_active": ("*primary_700", "*primary_300"),
    "link_text_color_hover": ("*primary_800", "*primary_200"),
    "link_text_color_visited": ("*primary_700", "*primary_300"),
    "button_secondary_background_fill": ("white", "*neutral_800"),
    "button_secondary_border_color": ("*neutral_300", "*neutral_700"),
}
# Relative to the page's own size of letters, which grows with the screen.
_TEXT = gr.themes.sizes.Size(
    xxs="0.65rem", xs="0.75rem", sm="0.85rem", md="1rem", lg="1.1rem", xl="1.35rem", xxl="1.65rem"
)


def _fonts(name: str, *fallbacks: str) -> list[fonts.Font | str]:
    # The SemiBold files of Plex lack most letters.
    return [fonts.LocalFont(name, weights=(400, 700)), *fallbacks]


def theme() -> gr.themes.Base:
    """Paper and ink, one accent; the same in light and dark."""
    light = {name: pair[0] for name, pair in _COLOURS.items()}
    dark = {f"{name}_dark": pair[1] for name, pair in _COLOURS.items()}
    return gr.themes.Base(
        primary_hue=gr.themes.colors.teal,
        secondary_hue=gr.themes.colors.amber,
        neutral_hue=gr.themes.colors.stone,
        radius_size=gr.themes.sizes.radius_md,
        text_size=_TEXT,
        font=_fonts("IBM Plex Sans", "system-ui", "sans-serif"),
        font_mono=_fonts("IBM Plex Mono", "ui-monospace", "monospace"),
    ).set(**_SHAPES, **light, **dark)
