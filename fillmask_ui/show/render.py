"""HTML from templates of this room, the page and features; Jinja escapes all values in them."""

import math
from collections import deque
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined
from jinja2.meta import find_referenced_templates
from jinja2.runtime import Macro

from fillmask_ui.extensions import features
from fillmask_ui.files import visible
from fillmask_ui.show import numbers, words
from fillmask_ui.show.drawing import Scale
from fillmask_ui.show.sentences import as_unsure

_TEMPLATES = Path(__file__).parent / "templates"


def inserts(slot: str) -> list[str]:
    """The templates that features add at a named slot of a template."""
    return [feature.inserts[slot] for feature in features() if slot in feature.inserts]


# By the name in front of theirs: those of features, and of rooms above that add them.
_FOLDERS = {feature.name: FileSystemLoader(feature.folder / "templates") for feature in features()}
_LOADER = ChoiceLoader([PrefixLoader(_FOLDERS), FileSystemLoader(_TEMPLATES)])


def add_templates(name: str, folder: Path) -> None:
    """Make the templates of a folder known as `name/...`."""
    _FOLDERS[name] = FileSystemLoader(folder)


_ENVIRONMENT = Environment(
    loader=_LOADER,
    autoescape=True,
    undefined=StrictUndefined,
    # Controls and lone surrogates written out, which browsers cannot be sent.
    finalize=lambda value: visible(value) if type(value) is str else value,
    trim_blocks=True,
    lstrip_blocks=True,
)
_NUMBERS = "general grouped in_unit is_zero loss_number percent signed signed_loss signed_percent"
_ENVIRONMENT.filters |= {name: getattr(numbers, name) for name in _NUMBERS.split()}
_ENVIRONMENT.filters |= {
    "as_unsure": as_unsure,
    "cell": numbers.cell_text,
    "cosine": numbers.cosine_text,
    "exp": math.exp,
    "factors": words.factors,
    "guesses": words.guesses,
    "loss": numbers.loss_text,
    "names": words.candidate_names,
    "three_digits": numbers.three_digits,
}
_ENVIRONMENT.globals |= {
    "inserts": inserts,
    "Scale": Scale,
    "infinite": math.inf,
    "ln": math.log,
    "log2": math.log2,
}
# `live`: whether what is shown can be clicked, as on the page; else there are no buttons.
_STILL = _ENVIRONMENT.overlay(cache_size=100)
_STILL.globals = {**_ENVIRONMENT.globals, "live": False}
_ENVIRONMENT.globals["live"] = True

# What the templates of figures are made of, by the names under which they use it.
_PARTS = {
    "axes": "page/axes.html",
    "controls": "page/controls.html",
    "facts": "page/facts.html",
    "tables": "page/table.html",
}


def render(template: str, **values: Any) -> str:
    """A template, filled in; a missing value raises.

    Its name is a path below `templates/` of this room; those of a feature begin with its name, and
    those of the page as `add_templates` says. With `live=False` nothing in it can be clicked.
    """
    environment = _ENVIRONMENT if values.pop("live", True) else _STILL
    return environment.get_template(template).render(**values)


def sources(*templates: str) -> dict[str, str]:
    """Templates and all that they include or import, name -> source, to be filled in elsewhere."""
    texts: dict[str, str] = {}
    for name in templates:
        if name not in texts:
            source, _, _ = _LOADER.get_source(_ENVIRONMENT, name)
            inner = find_referenced_templates(_ENVIRONMENT.parse(source))
            texts |= {name: source, **sources(*filter(None, inner))}
    return texts


def macros(template: str, **values: Any) -> dict[str, Macro]:
    """The macros of a template in their order, called without a caller; `_PARTS` are known too."""
    parts = {name: _ENVIRONMENT.get_template(path).module for name, path in _PARTS.items()}
    loaded = _ENVIRONMENT.get_template(template)
    context = loaded.new_context(parts | values)
    deque(loaded.root_render_func(context), maxlen=0)
    return {
        name.removesuffix("_"): macro  # `true_`, as `true` is a word of Jinja
        for name, macro in context.vars.items()
        if isinstance(macro, Macro) and not macro.caller
    }


def render_part(template: str, part: str, **values: Any) -> str:
    """A macro without parameters of a template, filled in with values."""
    return str(macros(template, **values)[part]())
