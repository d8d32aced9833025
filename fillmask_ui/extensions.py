"""The slot: what a feature adds to the program, as rows of a few kinds.

A feature is a folder `fillmask_ui/features/NAME/` whose `feature.py` has one object, `FEATURE`. A
package from elsewhere adds one by an entry point of the group `fillmask_ui.features`. The core has
rows of the same kinds for its own commands, tabs, metrics, modes and displays.

A target is the place of a function or a class, as `module:name`. It is imported when it is used, so
that a feature costs nothing until somebody asks for it.

Source:
    Hooks and entry points as in llm (`hookspecs.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

GROUP = "fillmask_ui.features"
# The features of this project, each a folder of `fillmask_ui/features/`.
FEATURES = (
    "unmask",
    "attention",
    "slots",
    "quantize",
    "course",
    "classroom",
    "train",
    "sweep",
    "ray",
    "site",
    "mcp",
    "bridges",
)


# Panels of commands in `fillmask-ui --help`, in this order; others follow.
LOOK, MEASURE, MAKE, SERVE = "Look at sentences", "Measure", "Make models", "Serve and teach"


@dataclass(frozen=True)
class Command:
    """A command of `fillmask-ui`."""

    help: str  # one line of at most 64 characters, shown by `fillmask-ui --help`
    target: str  # a function with options, or a `typer.Typer` with commands of its own
    panel: str = "More"  # of `fillmask-ui --help`: `LOOK`, `MEASURE`, `MAKE`, `SERVE` or another
    prints: bool = False  # whether it is done when the reader of its output leaves (`| head`)


@dataclass(frozen=True)
class Tab:
    """A tab of the page."""

    name: str  # in the address, and the folder of its scripts and styles
    label: str
    target: str  # called with the `Session` when a visitor first opens the tab
    after: str = ""  # the name of the tab to its left; without such a tab it stands before Guide
    private: bool = False  # left out of a public page


@dataclass(frozen=True)
class Mode:
    """A way to look at a sentence in Explore; one is shown at a time.

    Its script, if any, lies with the scripts of its feature: see `explore.modes` in `explore.js`.
    """

    name: str  # in the browser's state and in links; blank for the first
    label: str
    about: str  # a tooltip
    # The key of `views` that is asked about a sentence with a mask, about one without, and about a
    # token of a stored run as its run saw it; blank where nothing is.
    masked: str = ""
    whole: str = ""
    replayed: str = ""
    needs_mask: bool = False
    joint: bool = False  # whether the fillings of all masks together are shown, too
    state_field: str = ""  # of the browser's state, if no other mode has it
    # More fields of the state that only this mode has: name -> value at first. They are parameters
    # of the link, and its views find them in `Question.fields`.
    fields: Mapping[str, str] = field(default_factory=dict)
    two_models: bool = False  # whether it offers a second model, `Question.compare`
    # Whether its fields hold the sentence: the sentence of the page is then out of sight, and the
    # view `masked` is called whatever it is.
    has_sentence: bool = False
    # Name in the browser -> a function of the `Session` and the `Question`; its answer has `html`.
    views: Mapping[str, str] = field(default_factory=dict)
    template: str = ""  # of its controls, above the answer of its view
    below: str = ""  # of its controls below it


@dataclass(frozen=True)
class EngineRow:
    """A way to measure an evaluation elsewhere than in this process."""

    target: str  # a context manager that gives an `Engine` for an `EngineChoice`
    package: str  # the library that it needs, whose name is that of the extra, too


@dataclass(frozen=True)
class Feature:
    """All that a feature adds."""

    name: str  # also of its templates: `render("NAME/...")`
    package: str  # in whose folder its scripts and styles lie, and its templates in `templates/`
    # By name; `runs push` stands in the group `runs`.
    commands: Mapping[str, Command] = field(default_factory=dict)
    tabs: Sequence[Tab] = ()
    metrics: Sequence[str] = ()  # targets of subclasses of `Metric`
    modes: Sequence[Mode] = ()
    exports: Mapping[str, str] = field(default_factory=dict)  # name in `fillmask_ui` -> target
    # Target of a kind of record -> target of the `Display` that shows it in a notebook.
    displays: Mapping[str, str] = field(default_factory=dict)
    engines: Mapping[str, EngineRow] = field(default_factory=dict)  # by name
    # Called without arguments: references of more models at hand -> how menus name them.
    models: Sequence[str] = ()
    # Name of a place in a template of the core -> template that is included there.
    inserts: Mapping[str, str] = field(default_factory=dict)
    # Stores of runs of other kinds than evaluations: each is made of the folder of all runs.
    stores: Sequence[str] = ()
    # Functions of the session and of values of JSON, for programs: see `ui/api.py`.
    tools: Sequence[str] = ()
    # Called with the `gr.Blocks` and the session once all tabs are built: adds events and routes.
    on_page: Sequence[str] = ()

    @property
    def folder(self) -> Path:
        """Where its templates, scripts and styles lie."""
        return Path(str(files(self.package)))


@cache
def features() -> tuple[Feature, ...]:
    """The features of this project in the order of `FEATURES`, then those of other packages."""
    house = [import_module(f"fillmask_ui.features.{name}.feature").FEATURE for name in FEATURES]
    return (*house, *(entry.load() for entry in metadata.entry_points(group=GROUP)))


def load(target: str) -> Any:
    """What stands at a place `module:name`.

    >>> load("math:sqrt")(9)
    3.0
    """
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
