"""The Guide tab: what the page shows and how to use it."""

from dataclasses import dataclass

import gradio as gr

from fillmask_ui.evaluation import METRICS
from fillmask_ui.intervals import Limits
from fillmask_ui.show.render import render
from fillmask_ui.ui import components
from fillmask_ui.ui.session import Session

KEYS = (
    (("Tab",), "goes from part to part"),
    (("←", "→"), "in the sentence: go from word to word"),
    (("Enter",), "hides a word, brings it back, fills it in: what a click does"),
    (("Ctrl+Z",), "takes back the last click"),
    (("p",), "presents the sentence, or in Learn the chapter; leaves presenting"),
    (("←", "→"), "while presenting: the sentence or step before, the next one"),
    (("↓", "↑"), "while presenting: go from word to word"),
    (("h", "Space"), "while presenting: hide the answers; show the answer"),
    (("l",), "while presenting: show the loss of each word on its curve"),
    (("Esc",), "leaves presenting or the tour"),
)


def build(_: Session) -> None:
    """Create the tab."""
    guide = render("page/guide.html", metrics=METRICS.values(), limits=Limits(), keys=KEYS)
    components.html_block(guide, js_on_load=components.static("guide.js"))


@dataclass(frozen=True)
class Step:
    """One card of the tour."""

    target: str  # CSS selectors of what it is about; the first that is visible
    title: str
    text: str
    below: str = ""  # CSS selector of what the card stands below, else near the target


STEPS = (
    Step(
        "#sentence",
        "Type a sentence, or pick an example",
        "Write [MASK] or ___ where a word is hidden. The model guesses that word from the words "
        "on both sides, while you type.",
        below="#strip",
    ),
    Step(
        "#strip",
        "Click a word to hide it",
        "Here the sentence stands word by word. Click a word and the model has to guess it; click "
        "it again to put it back.",
    ),
    Step(
        "#bars, #stage",
        "Read the bars and the loss",
        "A bar is the probability of one word. The loss is \u2212ln of the probability of the word "
        "that you hid: near 0 if the model was sure of it, large if it was surprised.",
    ),
    Step(
        "#present, #strip",
        "Hide nothing, and see what surprises",
        "Without a hidden word, each word takes a colour by how much it surprises the model. Press "
        "p, or Present, and a lecture hall can read it.",
    ),
    Step(
        '#tabs [role="tab"]:nth-of-type(2)',
        "Measure a model on many texts",
        "The Evaluate tab hides words in many texts and averages the losses. It also says how far "
        "two models differ, and how certain that is.",
    ),
)


def build_tour() -> gr.HTML:
    """The card of the tour; built near the top of the page for the tab order."""
    card = render("page/tour.html", steps=STEPS)
    return components.html_block(
        card, js_on_load="window.fillmask.tour.mount(element);", elem_id="tour"
    )
