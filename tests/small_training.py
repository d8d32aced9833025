"""Training runs of a second, for tests."""

from fillmask_ui.training.corpus import CorpusPart
from fillmask_ui.training.recipe import Recipe
from fillmask_ui.training.run import RunRequest, prepare


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
