"""The Explore tab, whose HTML needs nothing of Gradio.

The tab's state is in the browser (`explore.js`), which calls the functions of `explore_modes` and
shows their answers. So the page shows the tab before Gradio is up, and Gradio gives it a place.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict

from fillmask_ui.extensions import Tab
from fillmask_ui.filling import MAX_TOP_K
from fillmask_ui.show.render import render
from fillmask_ui.ui import components
from fillmask_ui.ui.components import MAX_TEXT_CHARACTERS
from fillmask_ui.ui.explore.downloads import DOWNLOADS
from fillmask_ui.ui.explore.examples import EXAMPLE_SETS, EXAMPLES
from fillmask_ui.ui.explore.explore_answer import answer
from fillmask_ui.ui.explore.explore_modes import modes
from fillmask_ui.ui.explore.explore_state import Json, Question
from fillmask_ui.ui.session import Session

# Of the state as the page opens.
_FIELDS = ("text", "model", "compare", "top_k", "words", "unit")


def build(_: Session) -> None:
    """Create the place of the tab."""
    components.place_of("explore")


def tab_html(session: Session, first: Json | None, not_offered: Sequence[Tab] = ()) -> str:
    """The tab as HTML, with the `first_answer` if it is known.

    `not_offered` are tabs that a link may name but this page does not have.
    """
    question = asdict(_first_question(session))
    return render(
        "explore/explore.html",
        plain=json.dumps({name: question[name] for name in _FIELDS}),
        text=question["text"],
        top_k=question["top_k"],
        max_top_k=MAX_TOP_K,
        models=components.model_choices(session),
        modes=modes(),
        sets=EXAMPLE_SETS,
        most_characters=MAX_TEXT_CHARACTERS,
        downloads=list(DOWNLOADS),
        first=first,
        public=session.public,
        not_offered=not_offered,
    )


def first_answer(session: Session) -> Json:
    """The answer for the first example, by the page's default model, which is loaded for it.

    Raises:
        ModelError, NetworkError: if the model cannot be loaded.
    """
    session.model("")
    return answer(session, _first_question(session))


def _first_question(session: Session) -> Question:
    return Question(text=EXAMPLES[0].text, model=session.default_model)
