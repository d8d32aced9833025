"""A small sweep over tables as models and texts in files."""

from dataclasses import dataclass, field
from functools import lru_cache

import pytest
from table_model import TableModel, sample_texts

from fillmask_ui.errors import FillmaskError, ModelError
from fillmask_ui.features.sweep.sweep import measure_cell, stored_runs, sweep_of, sweep_table
from fillmask_ui.runs import RunStore


@dataclass
class Bench:
    """A store, texts and models by their reference."""

    store: RunStore
    parts: dict
    models: dict
    failures: dict = field(default_factory=dict)  # of the last call of `measure`

    def load(self, choice):
        if choice.reference not in self.models:
            raise ModelError(f"no such model: {choice.reference}")
        return self.models[choice.reference]

    def sweep(self, **changes):
        return sweep_of({**self.parts, **changes}, "tried")

    def measure(self, sweep, engine=None):
        """Numbers of the cells in which something was measured."""
        stored, load, measured = stored_runs(self.store), lru_cache(1)(self.load), []
        self.failures = {}
        for number, cell in enumerate(sweep.cells):
            try:
                if [*measure_cell(cell, stored.get(cell.key), self.store, load, engine)]:
                    measured.append(number)
            except FillmaskError as error:  # noqa: PERF203 - once a cell
                self.failures[cell] = str(error)
        return measured

    def table(self, sweep):
        return sweep_table(sweep, self.store, self.failures)


@pytest.fixture
def bench(tmp_path):
    for name, seed in (("first", 3), ("second", 4)):
        texts = sample_texts(10, seed=seed, longest=20)
        (tmp_path / f"{name}.txt").write_text("\n".join(texts) + "\n")
    parts = {
        "models": ["org/base", {"model": "org/noisy", "label": "noisy"}],
        "data": [
            {"dataset": str(tmp_path / f"{name}.txt"), "label": name}
            for name in ("first", "second")
        ],
        "metrics": ["uniform", "pseudo-perplexity"],
        "seeds": [42, 1],
        "baseline": "org/base",
    }
    models = {"org/base": TableModel(1), "org/noisy": TableModel(1, noise=0.4, noise_seed=2)}
    return Bench(RunStore(tmp_path / "runs"), parts, models)
