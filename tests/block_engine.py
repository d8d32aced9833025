"""An engine for tests: this process, but rows come in blocks as if two workers had sent them."""

from contextlib import closing, contextmanager
from dataclasses import replace

from fillmask_ui.runs.perform import measure_here

BLOCK = 7


class BlockEngine:
    """Stands in for Ray; `opened` has each choice that was asked for, `open` how many are."""

    def __init__(self):
        self.opened, self.open = [], 0
        self.on_open = self.on_block = lambda: None

    @contextmanager
    def __call__(self, choice):
        """In place of `open_engine`."""
        self.opened.append(choice)
        if choice.engine == "local":
            yield None
            return
        self.open += 1
        try:
            self.on_open()
            yield self
        finally:
            self.open -= 1

    def prepare(self, plan, model, baseline):
        def measure(recorder, texts):
            rows = []
            with closing(measure_here(recorder, texts, model, baseline)) as steps:
                for step in steps:
                    rows += step.rows
                    if step.through is not None or len(rows) >= BLOCK:
                        yield replace(step, rows=tuple(rows), workers=2)
                        rows = []
                        self.on_block()
            yield replace(step, rows=tuple(rows), workers=2)

        return measure
