"""The course on the masked-LM loss: its chapters, its exercises, and what both compute."""

from fillmask_ui.lessons.chapter import Chapter, Step, chapters

__all__ = ["Chapter", "Step", "chapters"]
