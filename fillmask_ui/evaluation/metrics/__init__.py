"""The metrics: a file and a row each; features bring more.

The command line, the page, run.json and every table of figures read this table.
"""

from dataclasses import fields
from typing import Any

from fillmask_ui.errors import OptionError, unknown
from fillmask_ui.evaluation.metrics.bits_per_byte import BitsPerByte
from fillmask_ui.evaluation.metrics.cross_entropy import CrossEntropy
from fillmask_ui.evaluation.metrics.metric import Metric
from fillmask_ui.evaluation.metrics.pairs import Pairs
from fillmask_ui.evaluation.metrics.pseudo_perplexity import PseudoPerplexity
from fillmask_ui.evaluation.metrics.suffix import Suffix
from fillmask_ui.evaluation.metrics.uniform import Uniform
from fillmask_ui.extensions import features, load
from fillmask_ui.options import options_of

METRICS: dict[str, type[Metric]] = {
    metric.name: metric
    for metric in (
        *(CrossEntropy, PseudoPerplexity, BitsPerByte, Uniform, Suffix, Pairs),
        *(load(target) for feature in features() for target in feature.metrics),
    )
}


def make_metric(name: str, options: dict[str, Any]) -> Metric:
    """The metric of a name; options of other metrics must have their defaults.

    An `OptionError` for what does not fit, a `TypeError` for an option that no metric has.

    >>> make_metric("suffix", {"suffix_tokens": 3, "within_word": False})
    Suffix(suffix_tokens=3)
    """
    if name not in METRICS:
        raise OptionError(unknown("metric", name, METRICS))
    names = {column.name for column in fields(METRICS[name])}
    for option, value in options.items():
        if option in names:
            continue
        owners = [metric for metric in METRICS.values() if hasattr(metric(), option)]
        if not owners:
            listed = ", ".join(sorted(names)) or "none"
            raise TypeError(f"no metric has the option {option!r}; those of {name}: {listed}")
        if value != getattr(owners[0](), option):
            raise OptionError(_foreign_option(option, owners, METRICS[name]))
    return METRICS[name](**{option: options[option] for option in names & options.keys()})


def _foreign_option(option: str, owners: list[type[Metric]], metric: type[Metric]) -> str:
    value = getattr(owners[0](), option)
    nested = options_of(value) if hasattr(value, "__dataclass_fields__") else {}
    belongs = f"the option {option.replace('_', ' ')} belongs to"
    if nested:
        belongs = (
            f"the options {_listed([part.label.lower() for part in nested.values()])} belong to"
        )
    owned = f"{belongs} {_listed([owner.name for owner in owners])}"
    return f"{owned}; the metric was {metric.name}, which hides {metric.hides}"


def _listed(names: list[str]) -> str:
    """`a`, `a and b`, or `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
