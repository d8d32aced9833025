"""The Guide tab: what the page shows and how to use it."""

from fillmask_ui.evaluation import METRICS
from fillmask_ui.intervals import Limits
from fillmask_ui.show.render import render
from fillmask_ui.ui import widgets
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
    (("Esc",), "leaves presenting or the tour"),
)


def build(_: Session) -> None:
    """Create the tab."""
    guide = render("page/guide.html", metrics=METRICS.values(), limits=Limits(), keys=KEYS)
    widgets.html_block(guide, js_on_load=widgets.static("guide.js"))
