"""A plan: every choice of an evaluation, to and from run.json.

The page and the command line make the same plan and store it in the same words, so either goes on
with a run that the other has begun.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.intervals import Limits
from fillmask_ui.models.choice import ModelChoice
from fillmask_ui.runs.info import RunInfo
from fillmask_ui.texts import TextSource


@dataclass(frozen=True)
class Plan:
    """What is to be measured."""

    model: ModelChoice = field(default_factory=ModelChoice)  # how the model is loaded
    baseline: ModelChoice | None = None  # how the second model is loaded; None without one
    config: EvaluationConfig = field(default_factory=EvaluationConfig)  # what is measured
    source: TextSource = field(default_factory=TextSource)  # the texts
    limits: Limits = field(default_factory=Limits)  # borders of the verdict
    hide_folders: bool = False  # from the signature: on a server they are nobody's business

    def texts(self) -> dict[str, Any]:
        """`RunInfo.texts`: where the texts come from, and the signature of that."""
        named = self.source
        if self.hide_folders and named.kind in ("file", "folder"):
            named = replace(named, where=Path(named.where).absolute().name)
        return {**self.source.to_dict(), "signature": str(named)}

    def choices(self) -> dict[str, Any]:
        """`RunInfo.choices`: how the models were asked for."""
        baseline = self.baseline.to_dict() if self.baseline else None
        return {"model": self.model.to_dict(), "baseline": baseline}

    @classmethod
    def of(cls, info: RunInfo) -> Plan:
        """The plan of a stored run; a `DataError` where only a Python program knows it."""
        if "model" not in info.choices:
            raise DataError(
                f"run {info.name} does not say how its model and texts were asked for (it was made "
                "from Python): resume it there, with fillmask_ui.runs.resume"
            )
        baseline = model_choice(info, "baseline") if info.choices.get("baseline") else None
        try:
            source = TextSource.from_dict(info.texts)
        except OptionError as error:
            raise _cannot(info, error) from error
        return cls(model_choice(info, "model"), baseline, info.config, source, info.limits)


def model_choice(info: RunInfo, which: str) -> ModelChoice:
    """How the `model` or the `baseline` of a run was asked for.

    A `DataError` if the run does not say, as it was made from Python.
    """
    choice = info.choices.get(which)
    if not choice:
        raise DataError(f"run {info.name} does not say how its {which} was asked for")
    try:
        return ModelChoice.from_dict(choice)
    except OptionError as error:
        raise _cannot(info, error) from error


def _cannot(info: RunInfo, error: OptionError) -> DataError:
    return DataError(f"run {info.name} asks for what cannot be: {error}; start a new run")
