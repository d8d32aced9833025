"""A page on 127.0.0.1 and a browser, both started once a worker, and sessions without either.

What takes seconds to import is imported in the fixtures, as this is a plugin of all tests.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import pytest
from chromium import BUILT, PATIENCE_MS, chromium, faults_of
from serving import serving
from table_model import TableModel

if TYPE_CHECKING:
    from evaluate_page import HeldModel

    from fillmask_ui.evaluation import EvaluatedText
    from fillmask_ui.models import ModelChoice, ModelStore
    from fillmask_ui.protocol import MaskedLM
    from fillmask_ui.ui.session import Session


class Gates:
    """What a test opens for the page's slow models to go on."""

    def __init__(self) -> None:
        self.loaded, self.answered, self.asked = (threading.Event() for _ in range(3))


class LateModel:
    """The embedded model, whose first answer waits for the test."""

    def __init__(self, model: MaskedLM, gates: Gates) -> None:
        self.vocabulary, self.max_tokens = model.vocabulary, model.max_tokens
        self.signature = model.signature
        self._model, self._gates, self._held = model, gates, True

    def logits_at(self, *arrays: Any) -> Any:
        if self._held:
            self._held = False
            self._gates.asked.set()
            assert self._gates.answered.wait(300)
        return self._model.logits_at(*arrays)


@dataclass(frozen=True)
class Page:
    """A page that is being served.

    Attributes:
        url: where.
        gates: of its models `held` (answers late) and `far` (loads late).
        store: its models; `table` and `noisy` are small.
        table: the model that a test can let hang.
        runs: folder of its runs.
    """

    url: str
    gates: Gates
    store: ModelStore
    table: HeldModel
    runs: Path


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    from evaluate_page import HeldModel

    from fillmask_ui.models import LoadProgress, ModelStore, load_choice, load_model
    from fillmask_ui.ui.page import build_app

    gates, table, runs = Gates(), HeldModel(1), tmp_path_factory.mktemp("runs")
    models = {"table": table, "noisy": TableModel(1, noise=0.3)}

    def load(choice: ModelChoice, **options: Any) -> MaskedLM:
        if choice.reference in models:
            return models[choice.reference]
        if choice.reference == "held":
            return LateModel(load_model("embedded"), gates)
        if choice.reference == "far":
            report = options["on_progress"]
            report(LoadProgress("fetching <b>far</b>", 0.25, "download", 25, 100))
            assert gates.loaded.wait(300)
            return load_model("embedded:int8")
        return load_choice(choice, **options)

    store = ModelStore(loader=load)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FILLMASK_UI_RUNS", str(runs))
        demo = build_app(store)
    with serving(demo) as url:
        yield Page(url, gates, store, table, runs)


# While it runs nothing else in this thread may run an event loop: journeys come last.
@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Without one the tests fail."""
    with chromium() as running:
        yield running


@pytest.fixture
def visit(browser: Any, served: Page) -> Iterator[Callable[..., Any]]:
    """`visit(parameters, **options of a context)` opens the page of a new visitor.

    `assets` handles requests for Gradio's own files. No foreign host is asked, and no script
    error or dialog comes up.
    """
    contexts, faults, hosts = [], [], set[str]()

    def opened(
        parameters: dict[str, str] | None = None,
        *,
        url: str = served.url,
        width: int = 1280,
        height: int = 900,
        script: str = "",
        ready: str = BUILT,
        assets: Callable[[Any], None] | None = None,
        **options: Any,
    ) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(PATIENCE_MS)
        context.on("request", lambda request: hosts.add(urlsplit(request.url).hostname or ""))
        if script:
            context.add_init_script(script)
        if assets:
            context.route("**/assets/*", assets)
        contexts.append(context)
        faults.append(faults_of(context))
        page = context.new_page()
        page.goto(f"{url}?{urlencode(parameters or {})}", wait_until="commit" if assets else "load")
        page.wait_for_selector(ready)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert hosts - {""} <= {"127.0.0.1"}
    assert not any(faults), faults


@pytest.fixture
def session() -> Session:
    """Of a small table model that needs no file; its name is the reference."""
    from explore_page import session_of

    return session_of(table=TableModel())


@pytest.fixture(scope="session")
def pair() -> list[EvaluatedText]:
    """Rows of a model beside a noisy copy of it."""
    from evaluate_page import rows_of

    return rows_of(TableModel(1, noise=0.3))
