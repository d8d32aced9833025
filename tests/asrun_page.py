"""A page with a stored run whose tokens are opened in Explore, of table models."""

import torch
from table_model import TableModel
from torch.nn.functional import cross_entropy

from fillmask_ui.errors import ModelError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.masking import MaskRecipe
from fillmask_ui.models import ModelStore
from fillmask_ui.runs import RunStore, prepare_info, start
from fillmask_ui.ui.evaluate.evaluation_jobs import EvaluationJobs
from fillmask_ui.ui.session import Session

TEXTS = ["the cat sat on the old mat and jumped quickly.", "the dog ran to a river"]
MIXED = EvaluationConfig(recipe=MaskRecipe(0.7, 0.4, 0.3, 0.3), seed=3)


def page_of(root, *, public=False, **models):
    """The models of a page that keeps its runs under `root`."""
    models = models or {"table": TableModel(1), "noisy": TableModel(1, noise=0.3)}

    def load(choice, **_):
        if choice.reference not in models:
            raise ModelError(f"no model {choice.reference!r}")
        return models[choice.reference]

    session = Session(ModelStore(loader=load), "table", public=public)
    session.stored_runs = EvaluationJobs(session, root).store
    return session


def recorded(root, config=MIXED, model=None, baseline=None, texts=TEXTS, **options):
    """The rows of a run under `root`, by text, and what a link to it says."""
    store, model = RunStore(root), model or TableModel(1)
    choices = {"model": {"reference": "table", **options}, "baseline": {"reference": "noisy"}}
    info = prepare_info(config, model, baseline=baseline, choices=choices)
    with start(store, info) as recorder:
        rows = {row.id: row for row in recorder.measure(model, texts, baseline=baseline)}
    return rows, {"run": recorder.name, "example": "0"}


def nll_at(model, ids, position, true_id):
    """By torch, of the tables of a model."""
    logits = model.left[ids[position - 1]] + model.right[ids[position + 1]]
    logits = torch.from_numpy(logits + model.own[ids[position]]).double()
    return cross_entropy(logits[None], torch.tensor([true_id])).item()
