"""Training runs of a second, for tests, and their cards."""

from dataclasses import replace

from fillmask_ui.features.train.package_model import (
    Package,
    PackageRequest,
    card_text,
    training_history,
)
from fillmask_ui.features.train.training_recipe import TrainingRecipe
from fillmask_ui.features.train.training_run import RunRequest, prepare, read_request

STEPS = 30  # of the run that is made once


def small(**changes):
    values = {
        "steps": 12,
        "block_tokens": 32,
        "batch_blocks": 4,
        "learning_rate": 5e-3,
        "precision": "fp32",
        "validation_segments": 20,
    }
    return TrainingRecipe(**(values | changes))


def run(folder, text_file, config, recipe):
    request = RunRequest([str(text_file)], folder, config=config, vocabulary_size=200)
    prepared = prepare(request, recipe)
    return prepared, list(prepared.rows(log_every=1))


def card(source, *, compare=None, **changes):
    """The card of a run that was packaged without measuring anything.

    Changes are made to what the run was asked for.
    """
    request = PackageRequest(source, source / "out", baseline=compare)
    stored_run = replace(read_request(source), **changes)
    history = {"notes": "# A model", **training_history(source, stored_run)}
    return card_text(request, Package(source / "out", 1, 0.0, None), history)
