"""The Learn tab: a list of the chapters of the course, and places for them.

Which chapter and step are open lies in the browser (`learn.js`), which asks for a chapter when it
is first opened.
"""

from pathlib import Path

import gradio as gr

from fillmask_ui.features.course.chapter import chapters
from fillmask_ui.features.course.exercises import COURSE_SEED, EXERCISES, exercises_of
from fillmask_ui.features.course.learn_figures import SERVED
from fillmask_ui.show.render import render
from fillmask_ui.ui import components
from fillmask_ui.ui.session import Session


def build(session: Session) -> None:
    """Create the tab's components and wire them."""
    exercise_count = sum(len(exercises_of(name, COURSE_SEED)) for name in EXERCISES)
    page = render("course/page.html", chapters=chapters(), exercise_count=exercise_count)
    with gr.Column(elem_id="learn"):
        model = components.model_picker(
            session, elem_id="learn-model", elem_classes=["fm-model", "fm-beside"]
        )
        components.html_block(
            page,
            elem_id="learn-page",
            js_on_load=components.static("begin.js", Path(__file__).parent),
            server_functions=[
                components.served(session, name, function) for name, function in SERVED.items()
            ],
        )
    components.linked_picker(session, model, "learn")
