"""Example sentences in sets (`examples.yaml`)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fillmask_ui.schema import from_trusted_values

MASK = "[MASK]"


@dataclass(frozen=True)
class ExampleSentence:
    """A sentence to click on."""

    name: str  # on its button
    text: str
    question: str  # to the class, one line
    claims: tuple[dict[str, dict[str, Any]], ...]  # what it rests on; a test holds each
    words: str = ""  # candidates, separated by commas
    other: str = ""  # a second sentence to compare with
    hidden: tuple[str, ...] = ()  # the true words, one per mask; empty if there are none

    def state(self) -> dict[str, Any]:
        hidden: list[str | None] = [*self.hidden] or [None] * self.text.count(MASK)
        values = {"text": self.text, "hidden": hidden, "words": self.words}
        return values | {"other": self.other, "selected": 0}


@dataclass(frozen=True)
class ExampleSet:
    """Examples of one idea."""

    name: str
    examples: tuple[ExampleSentence, ...]


def read_sets(path: Path) -> tuple[ExampleSet, ...]:
    """The sets of a YAML file."""
    return from_trusted_values(
        tuple[ExampleSet, ...], yaml.safe_load(path.read_text(encoding="utf-8")), path.name
    )


EXAMPLE_SETS = read_sets(Path(__file__).with_suffix(".yaml"))
EXAMPLES = tuple(example for group in EXAMPLE_SETS for example in group.examples)
