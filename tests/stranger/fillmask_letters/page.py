"""The mode of Explore and the tab, which show the same line."""

import gradio as gr

from fillmask_letters.letters import mean_letters
from fillmask_ui.show.render import render
from fillmask_ui.ui import components
from fillmask_ui.ui.explore.explore_state import Question
from fillmask_ui.ui.session import Session


def mode(session: Session, question: Question) -> dict[str, str]:
    letters = session.ask(session.model(question.model), mean_letters, question.text)
    return {"html": render("letters/line.html", letters=letters)}


def tab(session: Session) -> None:
    sentence = gr.Textbox("The [MASK] sat on the mat.", label="Sentence with a mask")
    line = components.html_block()
    show = components.noticing(str)(lambda text: mode(session, Question(text))["html"])
    sentence.submit(show, sentence, line, **components.QUIET)
