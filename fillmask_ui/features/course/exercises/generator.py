"""The generator: tasks as data, which `texts/*.yaml` hold, become exercises.

Texts name what is drawn in braces and expressions compute with it, both in the language of Jinja2:
`{truth|dec(2)}` has two decimals (else three), `{truth|minus_ln}` is −ln 0.7 = 0.357.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from jinja2 import Environment, StrictUndefined

from fillmask_ui.features.course.distributions import compare
from fillmask_ui.features.course.exercises.draws import DRAWS, cosine, loss_nats
from fillmask_ui.features.course.exercises.exercise import (
    Choice,
    ChoiceOption,
    Exercise,
    Numeric,
    Ordering,
    Slip,
    written,
)
from fillmask_ui.masking import MaskRecipe

# What is said of these slips where a task does not say more.
_USUAL_SLIPS = {
    "answer / ln(2)": "That is in bits (log2); nats use the natural logarithm, ln.",
    "answer / ln(10)": "That uses log10; nats use the natural logarithm, ln.",
    "-answer": "The sign is wrong: ln of a number below 1 is negative, and the loss is minus that.",
}


@dataclass(frozen=True, kw_only=True)
class Task:
    """One exercise before its numbers are drawn.

    It asks for a number if it has an `answer`, for an order if `items` are drawn, else for one of
    the options. Without a text it draws what the tasks below it share.
    """

    draw: str | Mapping[str, str]  # function of `draws.py`, or an expression for each name
    course: dict[str, Any] = field(default_factory=dict)  # what the course notes have instead
    text: str = ""
    table: tuple[str, ...] = ()  # headings; `rows` are drawn
    answer: str = ""  # expression
    unit: str = "nats"
    decimals: int = 2  # that are enough
    slips: Mapping[str, str | None] = field(default_factory=dict)  # expression -> the mistake
    right: str = "{right}"
    wrong: Mapping[str, str] | None = None  # option -> why it is wrong; None where it is drawn
    explanation: str = ""

    def write(self, drawn: dict[str, Any], rng: np.random.Generator) -> Exercise:
        """The exercise with its numbers; the options of a choice stand in a drawn order."""

        def say(text: str) -> str:
            return _template(text).render(drawn)

        if self.answer:
            drawn["answer"] = float(_value(self.answer, drawn))
        rows = [tuple(map(_general, row)) for row in drawn.get("rows", ())]
        shared: Any = {
            "text": say(self.text),
            "explanation": say(self.explanation),
            "table": (tuple(map(say, self.table)), *rows) if rows else (),
        }
        if self.answer:
            shared |= {"answer": drawn["answer"], "unit": self.unit, "decimals": self.decimals}
            slips = (
                Slip(float(value), say(text or _USUAL_SLIPS[expression]))
                for expression, text in self.slips.items()
                if (value := _value(expression, drawn)) is not None
            )
            return Numeric(**shared, slips=tuple(slips))
        if "items" in drawn:
            return Ordering(**shared, items=drawn["items"])
        wrong = drawn["wrong"] if self.wrong is None else self.wrong
        options = [
            ChoiceOption(say(self.right)),
            *(ChoiceOption(say(o), say(why)) for o, why in wrong.items()),
        ]
        places = rng.permutation(len(options)).tolist()
        shuffled = tuple(options[index] for index in places)
        return Choice(**shared, options=shuffled, right=places.index(0))


def read_tasks(source: str) -> tuple[Task, ...]:
    """Tasks from YAML, a list of their fields."""
    return tuple(Task(**task) for task in yaml.safe_load(source))


_TEXTS = sorted((Path(__file__).parents[1] / "texts").glob("*.yaml"))
# By the name of their chapter, in the order of the course.
COURSE_TASKS = {path.stem.partition("-")[2]: read_tasks(path.read_text("utf-8")) for path in _TEXTS}


def ask(
    tasks: Sequence[Task], rng: np.random.Generator, in_course: bool = False
) -> tuple[Exercise, ...]:
    """Draw the numbers of a chapter, again until no slip passes for an answer."""
    while True:
        shared: dict[str, Any] = {}
        exercises = []
        for task in tasks:
            drawn = shared | _draw(task, rng, shared, task.course if in_course else {})
            if task.text:
                exercises.append(task.write(drawn, rng))
            else:
                shared = drawn
        if all(exercise.refuses_slips for exercise in exercises if isinstance(exercise, Numeric)):
            return tuple(exercises)


def _draw(
    task: Task, rng: np.random.Generator, shared: dict[str, Any], fixed: dict[str, Any]
) -> dict[str, Any]:
    """What is given, and all else that a task draws."""
    if isinstance(task.draw, str):
        return fixed or DRAWS[task.draw](rng)
    functions = {name: partial(function, rng) for name, function in DRAWS.items()}
    drawn = dict(fixed)
    for name, expression in task.draw.items():
        if name not in fixed:
            drawn[name] = _value(expression, functions | shared | drawn)
    return drawn


def _general(value: Any) -> Any:
    """Numbers as people write them, those of a list with commas between."""
    if isinstance(value, list | tuple | np.ndarray):
        return ", ".join(map(_general, value))
    return written(float(value)) if isinstance(value, int | float | np.number) else value


def _each(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one number, for lists too."""

    def of(value: Any, *more: Any) -> Any:
        if isinstance(value, list | tuple | np.ndarray):
            return [function(element, *more) for element in value]
        return function(value, *more)

    return of


_ENVIRONMENT = Environment(  # noqa: S701 - it makes texts, which the page escapes
    variable_start_string="{", variable_end_string="}", undefined=StrictUndefined, finalize=_general
)
_ENVIRONMENT.filters |= {
    "dec": _each(lambda value, decimals=3: written(value, decimals)),
    "general": _each(written),
    "minus_ln": _each(lambda p: f"−ln {p:g} = {written(loss_nats(p), 3)}"),
}
_ENVIRONMENT.globals |= {
    "acos": math.acos,
    "compare": compare,
    "cosine": cosine,
    "exp": _each(math.exp),
    "ln": math.log,
    "loss": _each(loss_nats),
    "mean": np.mean,
    "median": np.median,
    "norm": np.linalg.norm,
    "one_hot": lambda classes, true: np.eye(classes)[true],
    "prod": math.prod,
    "recipe": MaskRecipe(),
    "zip": zip,
}
_template = cache(_ENVIRONMENT.from_string)
_expression = cache(partial(_ENVIRONMENT.compile_expression, undefined_to_none=False))


def _value(expression: str, names: Mapping[str, Any]) -> Any:
    return _expression(str(expression))(**names)
