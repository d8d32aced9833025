"""Explore asked without a browser: states as its script sends them, and tokens of stored runs."""

import re
from html import unescape

from stored_runs import record
from table_model import TableModel, log_softmax_at

from fillmask_ui.errors import ModelError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.masking import MaskRecipe
from fillmask_ui.models import ModelStore
from fillmask_ui.runs import RunStore
from fillmask_ui.show.render import render
from fillmask_ui.ui.components import answered
from fillmask_ui.ui.session import Session

TEXTS = ["the cat sat on the old mat and jumped quickly.", "the dog ran to a river"]
MIXED = EvaluationConfig(recipe=MaskRecipe(0.7, 0.4, 0.3, 0.3), seed=3)
_OF_STATE = ("base", "hidden", "run", "run_b", "example", "token", "side", "alone")

_EXPLAINED = r'<span id="about-(\w+)">([^<]*)</span>'
# What the page says of each figure, by the name of the figure.
EXPLANATIONS = {
    name: unescape(line)
    for name, line in re.findall(_EXPLAINED, render("ui/header.html", title=""))
}


def sent(state):
    """What `explore.js` asks with for the fields of its state."""
    question = {name: value for name, value in state.items() if name not in _OF_STATE}
    if "base" in state:
        question["draft"] = {"text": state["base"], "hidden": state.get("hidden", [])}
    if "example" in state:
        token_place = {"run": state["run"], "other": state.get("run_b", "")}
        token_place |= {"example": int(state["example"]), "position": int(state["token"])}
        question["run"] = token_place | {"side": int(state.get("side") == "B")}
    elif "run" in state:
        question["run"] = state["run"]
    return question | {"alone": bool(state.get("alone"))}


def asked(function, session, state):
    """What the page is told where a served function is asked with a state, once it is known."""
    while (reply := answered(function, session, sent(state))).get("kind") == "busy":
        pass
    return reply


def session_of(root=None, *, public=False, **models):
    """The session of a page that keeps its runs under `root`."""
    models = models or {"table": TableModel(1), "noisy": TableModel(1, noise=0.3)}

    def load(choice, **_):
        if choice.reference not in models:
            raise ModelError(f"no model {choice.reference!r}")
        return models[choice.reference]

    session = Session(ModelStore(loader=load), "table", public=public)
    if root is not None:
        from fillmask_ui.ui.evaluate.evaluation_jobs import EvaluationJobs

        session.stored_runs = EvaluationJobs(session, root).store
    return session


def recorded(root, config=MIXED, model=None, baseline=None, texts=TEXTS, **options):
    """The rows of a run under `root`, by text, and what a link to it says."""
    choices = {"model": {"reference": "table", **options}, "baseline": {"reference": "noisy"}}
    run = record(RunStore(root), model, texts, config, baseline, choices=choices)
    return {row.id: row for row in run.rows()}, {"run": run.info.name, "example": "0"}


def nll_at(model, ids, position, true_id):
    """By torch, of the tables of a model."""
    return -log_softmax_at(model, ids, position)[true_id].item()
