"""What the tests of the Evaluate tab share: models by name, texts in a file, jobs at once."""

import functools
import itertools
import threading
import time

import gradio as gr
from explore_page import session_of
from table_model import TableModel, letter_vocabulary, sample_texts

from fillmask_ui.evaluation import EvaluationConfig, evaluate, summarize
from fillmask_ui.ui.evaluate import evaluate_form
from fillmask_ui.ui.evaluate.evaluate_form import UPLOAD
from fillmask_ui.ui.evaluate.evaluation_jobs import EvaluationJobs

VISITOR = "visitor1"
_OPENED = itertools.count(1)
TEXTS = sample_texts(60, seed=5)


class HeldModel(TableModel):
    """Answers a number of calls, then waits for the test at each one."""

    def __init__(self, *arguments, free_calls=10**9, **options):
        super().__init__(*arguments, **options)
        self.free_calls = free_calls
        self.reached, self.open = threading.Event(), threading.Event()

    def logits_at(self, *inputs):
        if len(self.calls) >= self.free_calls:
            self.reached.set()
            assert self.open.wait(300)
        return super().logits_at(*inputs)


def models():
    """A fresh model a name."""
    return {
        "table": HeldModel(1),
        "noisy": HeldModel(1, noise=0.3),
        "chance": HeldModel(1, scale=0.0),
        "letters": HeldModel(2, vocabulary=letter_vocabulary()),
    }


def evaluation_jobs(root, *, public=False, loaded_models=None):
    return EvaluationJobs(session_of(public=public, **(loaded_models or models())), root)


def own_page_jobs(root, **options):
    """The page_jobs of a visitor of a page of its own."""
    return arrived(evaluation_jobs(root, **options))


def arrived(all_jobs, visitor=VISITOR, page=None):
    """The page_jobs of a page that a visitor has just opened, or opened again under its name."""
    return all_jobs.arrive(f"opened{next(_OPENED)}", visitor, page or f"{visitor} page")


def upload(folder, texts=TEXTS, name="texts.txt"):
    path = folder / name
    path.write_text("".join(text + "\n" for text in texts), "utf-8")
    return str(path)


@functools.cache
def opened_controls():
    """The controls of the page as it opens; a table model is its default."""
    with gr.Blocks():
        return evaluate_form.build(evaluation_jobs(None).session)


def form(**choices):
    """What the controls hold as the page opens, but for these choices; no model is picked."""
    values = {name: control.value for name, control in opened_controls().items()}
    unknown = choices.keys() - values.keys()
    assert not unknown, unknown
    return values | {"model": ""} | choices


def uploaded(folder, **choices):
    """Of an upload of `TEXTS`, all of them, in their order."""
    texts = {"where": UPLOAD, "upload": upload(folder), "samples": 0, "shuffle": False}
    return form(**texts | choices)


def finish(job):
    """The last status of a job, as its page sees it."""
    until(lambda: job.poll().ended)
    return job.poll()


def until(condition, seconds=300.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def direct(config=None):
    """The same evaluation without a page."""
    config = config or EvaluationConfig()
    rows = list(evaluate(TableModel(1), TEXTS, config))
    return summarize(rows, config=config, vocabulary_size=TableModel(1).signature.vocabulary_size)


def begun(page_jobs, folder, **choices):
    return page_jobs.begin(uploaded(folder, **choices))


def rows_of(baseline=None, config=None, model=None, texts=TEXTS):
    model = model or TableModel(1)
    rows = evaluate(baseline or model, texts, config, candidate=model if baseline else None)
    return [row for row in rows if hasattr(row, "scores")]
