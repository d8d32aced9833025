"""A small sweep over tables as models and texts in files."""

from dataclasses import dataclass, field

import pytest
from table_model import TableModel, sample_texts

from fillmask_ui.errors import ModelError
from fillmask_ui.features.sweep.sweep_file import sweep_of
from fillmask_ui.features.sweep.sweep_perform import perform_sweep
from fillmask_ui.features.sweep.sweep_table import sweep_table
from fillmask_ui.runs import RunStore


@dataclass
class Bench:
    """A store, texts and models by their reference."""

    store: RunStore
    parts: dict
    models: dict
    loads: list = field(default_factory=list)  # references, in the order of loading

    def load(self, choice):
        self.loads.append(choice.reference)
        if choice.reference not in self.models:
            raise ModelError(f"no such model: {choice.reference}")
        return self.models[choice.reference]

    def sweep(self, **changes):
        return sweep_of({**self.parts, **changes}, "tried")

    def perform(self, sweep, engine=None):
        """All steps but those of single rows."""
        steps = perform_sweep(sweep, self.store, self.load, engine)
        return [step for step in steps if step.state != "measuring"]

    def table(self, sweep, steps=()):
        return sweep_table(sweep, self.store, {step.cell.key: step for step in steps})

    def digits(self, table):
        """All that is told of each cell but the names of runs."""
        return [{**entry.to_dict(), "run": ""} for entry in table.entries]


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
