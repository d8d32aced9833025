"""The Learn tab: the chapters of the course, each a row of steps.

Which chapter and step are open lies in the browser (`learn.js`). A chapter is a tab of its own, so
that it is made when it is first opened.
"""

from functools import partial
from pathlib import Path

import gradio as gr

from fillmask_ui.features.course.chapter import Chapter, Step, chapters
from fillmask_ui.features.course.exercises import COURSE_SEED, EXERCISES, MOST_SEED, exercises_of
from fillmask_ui.features.course.learn_figures import FIGURES, SERVED
from fillmask_ui.show.render import render_part
from fillmask_ui.ui import components
from fillmask_ui.ui.session import Session

_DELIMITERS: list[dict[str, str | bool]] = [
    {"left": "$$", "right": "$$", "display": True},
    {"left": "$", "right": "$", "display": False},
]


def build(session: Session) -> None:
    """Create the tab's components and wire them."""
    course = chapters()
    with gr.Column(elem_id="learn"):
        components.html_block(_part("contents", chapters=course))
        model = components.model_picker(
            session, elem_id="learn-model", elem_classes=["fm-model", "fm-beside"]
        )
        with gr.Tabs(elem_id="learn-chapters"):
            for chapter in course:
                with gr.Tab(chapter.title, id=f"chapter-{chapter.name}"):
                    _chapter(chapter)
        components.html_block(
            _part("foot", count=sum(len(exercises_of(own, COURSE_SEED)) for own in EXERCISES)),
            elem_id="learn-foot",
            js_on_load=components.static("begin.js", _FOLDER),
            server_functions=[components.served(session, *item) for item in SERVED.items()],
        )
    components.linked_picker(session, model, "learn")


_FOLDER = Path(__file__).parent
_part = partial(render_part, "course/page.html")


def _chapter(chapter: Chapter) -> None:
    with gr.Column(elem_id=f"chapter-{chapter.name}", elem_classes="fm-chapter"):
        components.html_block(_part("head", chapter=chapter))
        for number, step in enumerate(chapter.steps, 1):
            _step(step, f"step-{chapter.name}-{number}")
        with gr.Column(elem_id=f"step-{chapter.name}-{number + 1}", elem_classes="fm-step"):
            own = {"chapter": chapter.name, "seed": COURSE_SEED, "most": MOST_SEED}
            components.html_block(
                _part("exercises", **own), js_on_load="window.fillmask.exercises.show();"
            )


def _step(step: Step, element: str) -> None:
    with gr.Column(elem_id=element, elem_classes="fm-step"):
        _text(f"### {step.title}\n\n{step.text}")
        if step.figure:
            components.html_block(
                FIGURES[step.figure].form_html(),
                js_on_load=components.static("figure_mounted.js", _FOLDER),
            )
        if step.after:
            _text(step.after)


def _text(markdown: str) -> None:
    gr.Markdown(markdown, latex_delimiters=_DELIMITERS, elem_classes="fm-lesson-text")
