"""Runs on disk for tests: a store with a fixed clock, runs recorded to their end, processes."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import recorded_run
from table_model import TableModel, sample_texts

from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.masking import MaskRecipe
from fillmask_ui.runs import Run, RunStore, prepare_info, start

TEXTS = [*sample_texts(40, seed=8), ""]
CONFIG = EvaluationConfig(recipe=MaskRecipe(0.4))


def record(store, model=None, texts=TEXTS, config=CONFIG, baseline=None, **fields):
    """A run, recorded to its end."""
    model = model or TableModel(1)
    with start(store, prepare_info(config, model, baseline=baseline, **fields)) as recorder:
        rows = list(recorder.measure(model, texts, baseline=baseline))
    assert len(rows) == len(texts)
    return store.open(recorder.name)


def record_at(folder, baseline=None):
    """The same in a folder of that name; its model is `table-1-0`."""
    run = record(RunStore(folder.parent / "begun"), baseline=baseline)
    run.folder.rename(folder)
    run.folder.parent.rmdir()
    return Run(folder)


@contextmanager
def spawn(*arguments):
    """A recording process, killed at the latest when the block ends."""
    script = Path(recorded_run.__file__)
    paths = [str(script.parent), str(script.parent.parent)]
    with subprocess.Popen(
        [sys.executable, str(script), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    ) as process:
        try:
            yield process
        finally:
            process.kill()
