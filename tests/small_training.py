"""Training runs of a second, for tests, and their cards."""

from dataclasses import replace
from pathlib import Path

from fillmask_ui.training.card import Package, PackageRequest, card_text, history_of
from fillmask_ui.training.corpus import CorpusPart
from fillmask_ui.training.recipe import Recipe
from fillmask_ui.training.run import RunRequest, prepare, read_request


def small(**changes):
    values = {
        "steps": 12,
        "block_tokens": 32,
        "batch_blocks": 4,
        "learning_rate": 5e-3,
        "precision": "fp32",
        "validation_segments": 20,
    }
    return Recipe(**(values | changes))


def run(folder, text_file, config, recipe):
    request = RunRequest((CorpusPart(text_file),), folder, config=config, vocabulary_size=200)
    prepared = prepare(request, recipe)
    return prepared, list(prepared.rows(log_every=1))


def card(source, *, parameters=1, compare=None, **changes):
    """The card of a run that was packaged without measuring anything.

    Changes are made to what the run was asked for.
    """
    request = PackageRequest(source, Path(source) / "out", compare=compare)
    made = Package(Path(source) / "out", parameters, 0.0, None)
    asked = replace(read_request(source), **changes)
    return card_text(request, made, asked, history_of(source, asked))
