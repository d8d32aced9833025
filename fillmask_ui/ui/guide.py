"""The Guide tab: what the page shows and how to use it."""

from fillmask_ui.evaluation import METRICS
from fillmask_ui.intervals import Limits
from fillmask_ui.show.render import render
from fillmask_ui.ui import components
from fillmask_ui.ui.session import Session


def build(_: Session) -> None:
    """Create the tab."""
    guide = render("ui/guide.html", metrics=METRICS.values(), limits=Limits())
    components.html_block(guide, js_on_load=components.static("guide.js"))
