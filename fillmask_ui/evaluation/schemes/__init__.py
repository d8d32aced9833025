"""The metrics: each an object that says what it hides and which figure it gives.

A new metric is a file with a subclass of `Scheme` and a row here: the command line, the page,
run.json and every table of figures read this table.
"""

from dataclasses import fields
from typing import Any

from fillmask_ui.errors import OptionError, unknown
from fillmask_ui.evaluation.schemes.bits_per_byte import BitsPerByte
from fillmask_ui.evaluation.schemes.cross_entropy import CrossEntropy
from fillmask_ui.evaluation.schemes.pseudo_perplexity import PseudoPerplexity
from fillmask_ui.evaluation.schemes.scheme import Scheme
from fillmask_ui.evaluation.schemes.suffix import Suffix
from fillmask_ui.evaluation.schemes.uniform import Uniform
from fillmask_ui.evaluation.schemes.unmasking import Unmasking
from fillmask_ui.options import options_of

SCHEMES: dict[str, type[Scheme]] = {
    scheme.name: scheme
    for scheme in (CrossEntropy, PseudoPerplexity, BitsPerByte, Uniform, Suffix, Unmasking)
}


def make_scheme(metric: str, options: dict[str, Any]) -> Scheme:
    """The metric of a name, with its own options; those of other metrics need their defaults.

    Raises:
        OptionError: for an unknown metric, an option that it does not have, or a bad value.
        TypeError: for an option that no metric has.

    >>> make_scheme("suffix", {"suffix_tokens": 3, "within_word": False})
    Suffix(suffix_tokens=3)
    """
    if metric not in SCHEMES:
        raise OptionError(unknown("metric", metric, SCHEMES))
    own = {entry.name for entry in fields(SCHEMES[metric])}
    for name, value in options.items():
        if name in own:
            continue
        owners = [known for known in SCHEMES.values() if hasattr(known(), name)]
        if not owners:
            raise TypeError(f"no metric has the option {name!r}")
        if value != getattr(owners[0](), name):
            raise OptionError(_not_its_own(name, owners, SCHEMES[metric]))
    return SCHEMES[metric](**{name: options[name] for name in own & options.keys()})


def _not_its_own(name: str, owners: list[type[Scheme]], asked: type[Scheme]) -> str:
    value = getattr(owners[0](), name)
    nested = options_of(value) if hasattr(value, "__dataclass_fields__") else {}
    labels = [entry.label.lower() for entry in nested.values()]
    if labels:
        options = f"the options {', '.join(labels[:-1])} and {labels[-1]} belong to"
    else:
        options = f"the option {name.replace('_', ' ')} belongs to"
    return (
        f"{options} {' and '.join(owner.name for owner in owners)}; the metric was {asked.name}, "
        f"which hides {asked.hides}"
    )
