"""Example sentences in sets (`examples.yaml`), and the claims that can be made about them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

MASK = "[MASK]"
TEXT, OTHER = 0, 1  # the two sentences of an example, where a claim is about one of them


@dataclass(frozen=True)
class First:
    """The model's first word for a mask."""

    word: str
    sentence: int = TEXT
    mask: int = 0


@dataclass(frozen=True)
class Among:
    """All these words are among the first `k` of the first mask."""

    words: tuple[str, ...]
    k: int


@dataclass(frozen=True)
class Above:
    """At the first mask a word has at least `times` the probability of another."""

    word: str
    lesser: str
    sentence: int = TEXT
    times: float = 1.5


@dataclass(frozen=True)
class Likelier:
    """A word has at least `times` the probability in this sentence that it has in the other one."""

    word: str
    times: float
    sentence: int = TEXT


@dataclass(frozen=True)
class SubTokens:
    """A word has so many sub-tokens, and at least this probability as a whole."""

    word: str
    count: int
    probability: float


@dataclass(frozen=True)
class MostSurprising:
    """This word has the largest loss in a sentence without masks."""

    word: str


Claim = First | Among | Above | Likelier | SubTokens | MostSurprising


@dataclass(frozen=True)
class Example:
    """A sentence to click on."""

    name: str  # on its button
    text: str
    question: str  # to the class, one line
    claims: tuple[Claim, ...]
    words: str = ""  # candidates, separated by commas
    other: str = ""  # a second sentence to compare with
    hidden: tuple[str, ...] = ()  # the true words, one per mask; empty if there are none

    def state(self) -> dict[str, Any]:
        """Values of the page's state, by name."""
        hidden: list[str | None] = [*self.hidden] or [None] * self.text.count(MASK)
        shown = {"text": self.text, "hidden": hidden, "words": self.words}
        return shown | {"other": self.other, "selected": 0}


@dataclass(frozen=True)
class ExampleSet:
    """Examples of one idea."""

    name: str
    examples: tuple[Example, ...]


_CLAIMS = {
    kind.__name__: kind for kind in (First, Among, Above, Likelier, SubTokens, MostSurprising)
}


def _claim(entry: Mapping[str, Mapping[str, Any]]) -> Claim:
    """A claim of the file.

    >>> _claim({"Among": {"words": ["tea", "coffee"], "k": 3}})
    Among(words=('tea', 'coffee'), k=3)
    """
    ((kind, values),) = entry.items()
    return _CLAIMS[kind](**_frozen(values))


def _frozen(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(own) if isinstance(own, list) else own for key, own in values.items()}


def _example(entry: Mapping[str, Any]) -> Example:
    claims = [_claim(claim) for claim in entry["claims"]]
    return Example(**_frozen({**entry, "claims": claims}))


def read_sets(path: Path) -> tuple[ExampleSet, ...]:
    """The sets of a YAML file."""
    return tuple(
        ExampleSet(group["name"], tuple(_example(entry) for entry in group["examples"]))
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))
    )


EXAMPLE_SETS = read_sets(Path(__file__).with_suffix(".yaml"))
EXAMPLES = tuple(example for group in EXAMPLE_SETS for example in group.examples)
