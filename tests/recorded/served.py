"""Where the functions that the page serves to the browser are, and how a browser asks them.

A rewrite of the page changes this file and none of the recorded figures.
"""

import json
import time
from collections.abc import Mapping
from typing import Any

from explore_page import sent

from fillmask_ui.features.course.learn_figures import SERVED as LEARN
from fillmask_ui.features.quantize.diagnosis_view import SERVED as QUANTIZE
from fillmask_ui.features.unmask.unmask_view import SERVED as UNMASK
from fillmask_ui.models import ModelStore
from fillmask_ui.ui.components import answered
from fillmask_ui.ui.explore.explore_modes import served as explore
from fillmask_ui.ui.session import Session

TABS = {"explore": explore(), "learn": LEARN, "quantize": QUANTIZE, "unmask": UNMASK}
SECONDS = 300  # that a browser asks again and again
NOT_YET = "The decoding is not finished yet"

Json = dict[str, Any]


class Page:
    """One visitor's page, with answers of its own and models that all visitors share."""

    def __init__(self, store: ModelStore) -> None:
        self._session = Session(store, "table")

    def ask(self, tab: str, function: str, values: Mapping[str, Any]) -> Json:
        """The answer as JSON, once nothing more is on its way.

        An `action` is a click on what the same state without it shows.
        """
        action = values.get("action")
        if isinstance(action, dict) and "version" not in action:
            before = self.ask(tab, function, {k: v for k, v in values.items() if k != "action"})
            clicked = {**action, "version": before["version"]}
            sentence = {key: before[key] for key in ("text", "base", "hidden")}
            values = {**values, **sentence, "action": clicked}
        if (tab, function) == ("unmask", "cell"):
            self.ask(tab, "history", values)
        if function == "parting":
            return self._searched(values)
        return self._settled(tab, function, values)

    def _searched(self, values: Mapping[str, Any]) -> Json:
        """After the last window: how many sentences fit into one depends on the machine."""
        start = 0
        while start is not None:
            answer = self._settled("explore", "parting", {**values, "start": start})
            start = answer.get("next")
        return answer

    def _settled(self, tab: str, function: str, values: Mapping[str, Any]) -> Json:
        until = time.monotonic() + SECONDS
        request = sent(values) if tab == "explore" else values
        while _on_its_way(answer := answered(TABS[tab][function], self._session, request)):
            assert time.monotonic() < until, answer
            time.sleep(0.01)
        return json.loads(json.dumps(answer, allow_nan=False))


def _on_its_way(answer: Json) -> bool:
    busy = answer.get("kind") == "busy" or "waiting" in answer or "busy" in answer
    return busy or answer.get("error") == NOT_YET
