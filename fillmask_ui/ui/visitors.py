"""What Gradio keeps on the server for each page that is open, made small and forgotten in time.

By itself it keeps a copy of the whole page's configuration (0.7 MB) for every page that was ever
open and every call of a program, up to 10,000 of them. The copy serves links by `DeepLinkButton`,
which this page does not have.
"""

from __future__ import annotations

from datetime import datetime
from types import SimpleNamespace
from typing import Any

import gradio as gr
from gradio.state_holder import SessionState, StateHolder

# Pages at a time; of more, those that were used least lately start anew.
MOST_PAGES = 500
# Of closed pages, which may come back when a connection was lost.
MOST_CLOSED, CLOSED_SECONDS = 64, 3600.0
# Of what holds nothing of its own: events take less long to begin and end with it.
BLANK_SECONDS = 60.0
_OF_EVENTS = ("value", "render")  # arguments of a component that do not shape it


class PageState(SessionState):
    """Values of one page, and those of its components that an event changed."""

    def __init__(self, blocks: gr.Blocks) -> None:
        # Of a page without components there is no configuration to be copied.
        bare: Any = SimpleNamespace(default_config=blocks.default_config, blocks={})
        super().__init__(bare)
        self.blank = True  # whether it can be made again as it is

    def __getitem__(self, key: int) -> Any:
        self.blank = self.blank and not self.blocks_config.blocks[key].stateful
        return super().__getitem__(key)

    def __setitem__(self, key: int, value: Any) -> None:
        known = self.blocks_config.blocks.get(key)
        # An event makes each of its outputs anew, also those that it leaves as they are.
        if known is value or (not isinstance(known, gr.State) and _shape(known) == _shape(value)):
            return
        self.blank = False
        super().__setitem__(key, value)
        self.config_values.clear()

    def _update_config(self, key: int) -> None:
        """Nothing, as there is no configuration."""

    def _update_value_in_config(self, key: int, value: Any) -> None:
        """Nothing, as there is no configuration."""


def _shape(component: Any) -> Any:
    """The arguments that a component was made with; nothing equals one without."""
    arguments = getattr(component, "constructor_args", None) or {"none": object()}
    return {name: own for name, own in arguments.items() if name not in _OF_EVENTS}


class PageStates(StateHolder):
    """The states of all pages; Gradio looks for expired ones every second.

    Args:
        blocks: the page, built.
    """

    def __init__(self, blocks: gr.Blocks) -> None:
        super().__init__()
        self.set_blocks(blocks)
        self.capacity = MOST_PAGES

    def __getitem__(self, session_id: str) -> SessionState:
        if session_id not in self.session_data:
            self.session_data[session_id] = PageState(self.blocks)
        return super().__getitem__(session_id)

    def delete_all_expired_state(self) -> None:
        super().delete_all_expired_state()
        now = datetime.now()  # noqa: DTZ005 - as Gradio notes when a page was last used
        states = list(self.session_data.items())
        closed = [page for page, state in states if state.is_closed]  # the longest unused first
        gone = set(closed[:-MOST_CLOSED])
        for page, state in states:
            unused = (now - self.time_last_used.get(page, now)).total_seconds()
            blank = isinstance(state, PageState) and state.blank
            if unused > (BLANK_SECONDS if blank else CLOSED_SECONDS) and (blank or state.is_closed):
                gone.add(page)
        with self.lock:
            for page in gone:
                self.session_data.pop(page, None)
                self.time_last_used.pop(page, None)
