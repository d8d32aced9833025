"""Figures of a chapter."""

from collections.abc import Mapping

from fillmask_ui.ui.learn.figure import LessonFigure

FIGURES: Mapping[str, LessonFigure] = {}
