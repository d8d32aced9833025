"""Links: a tab and its state as a query string, in the browser's address and inside the page.

`tab=explore&text=The+%5BMASK%5D+sat.&model=embedded` in the address opens the Explore tab with
that sentence and that model. A handler of any tab opens the same from inside the page: it returns
`link_to("explore", text=..., model=...)` for a component that `link()` made. Either way the tab
that is named takes the parameters up in the handler that it gave to `on_link`, and what a link
leaves out stays as it is. So no tab knows another's components.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import gradio as gr
from gradio.events import Dependency

from fillmask_ui.schema import from_values
from fillmask_ui.ui import widgets

# Longer texts stay out of the address; servers and chat programs cut addresses at about 8,000.
MAX_TEXT_CHARACTERS = 2_000


def link_to(tab: str, **state: str) -> str:
    """A link to a tab with a state.

    >>> link_to("explore", text="a [MASK]", words="")
    'tab=explore&text=a+%5BMASK%5D&words='
    """
    return urlencode({"tab": tab, **state})


def link() -> gr.HTML:
    """An invisible output: the `link_to` that a handler returns for it is opened at once."""
    return widgets.bridge("link.js")


def on_link(
    tab: str,
    take: Callable[[Mapping[str, str]], Any],
    outputs: Sequence[gr.components.Component | gr.blocks.BlockContext],
) -> Dependency:
    """Take links up: the address when the page opens, later those of other tabs.

    Args:
        tab: its name in links; blank to hear of links to any tab.
        take: parameters of a link -> updates of the outputs.
        outputs: components that a link sets.

    Returns:
        The event of the page's opening, for what has to follow it.
    """

    def follow(event: gr.EventData) -> Any:
        return take(from_values(dict[str, str], event.parameters, "the link"))

    def load(request: gr.Request) -> Any:
        return take(request.query_params)

    target = widgets.bridge("link_target.js", TAB=tab)
    target.follow(follow, None, outputs, **widgets.QUIET)
    return widgets.page().load(load, None, outputs, **widgets.QUIET)
