"""What programs may call on a page: plain functions of the session and of values of JSON.

The page serves each of `tools` as an endpoint `/NAME`, documented by the types and the docstring of
the function; an argument has one line there. Features may serve them elsewhere, too.
"""

# No `from __future__ import annotations`: Gradio reads the types below while the page is built.

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import wraps
from inspect import signature
from typing import Any, get_type_hints

import gradio as gr

from fillmask_ui import comparing, filling
from fillmask_ui.errors import FillmaskError, OptionError, explain
from fillmask_ui.evaluation import EvaluationConfig, Heartbeat
from fillmask_ui.evaluation import evaluate as evaluate_texts
from fillmask_ui.evaluation.catalogue import SPLITS
from fillmask_ui.extensions import features, load
from fillmask_ui.files import visible
from fillmask_ui.filling import MAX_TOP_K
from fillmask_ui.filling.prompt import split_words
from fillmask_ui.filling.word_surprisal import BEST_TOKENS
from fillmask_ui.models import available_models
from fillmask_ui.records import Example
from fillmask_ui.runs.info import prepare_info
from fillmask_ui.schema import from_values
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.ui.evaluate import evaluate_form
from fillmask_ui.ui.job import Report, Unfinished, Waiting
from fillmask_ui.ui.session import Session

Json = dict[str, Any]
Tool = Callable[..., Any]
_NO_TEXTS: list[str] = []


def predict(
    session: Session, text: str, model: str = "", top_k: int = 5, candidates: str = ""
) -> Json:
    """The most probable words at each mask of a text, by a masked language model.

    Returns JSON: `masks`, from left to right, each with `entropy_nats` and its `candidates`
    (probability from 0 to 1, nll_nats = -ln probability), best first; `scored` has the words
    that `candidates` names; `joint` the best fillings of several masks together.

    Args:
        text: a text with one mask or more: [MASK], <mask>, ____ or the model's own mask token.
        model: a reference that `models` lists, a hub id, folder or .onnx file; empty: the page's.
        top_k: words listed at each mask, 1 to 100; 50 at most for a language model.
        candidates: up to 100 words to score at each mask as well, separated by commas.
    """
    check_top_k(top_k)
    words, loaded = split_words(candidates), session.model_soon(model)
    return session.ask(loaded, filling.fill, text, top_k=top_k, candidates=words).to_dict()


def score_candidates(
    session: Session, text: str, candidates: str, model: str = ""
) -> list[list[Json]]:
    """Probability and NLL of words at each mask of a text: a list per mask, an entry per word.

    Args:
        text: a text with one mask or more: [MASK], <mask>, ____ or the model's own mask token.
        candidates: up to 100 words of any number of tokens, separated by commas.
        model: a reference that `models` lists, a hub id, folder or .onnx file; empty: the page's.
    """
    words, loaded = split_words(candidates), session.model_soon(model)
    masks = session.ask(loaded, filling.score_candidates, text, candidates=words)
    return [[asdict(word) for word in scored] for scored in masks]


def surprise(session: Session, text: str, model: str = "", top_k: int = 1) -> Json:
    """How surprising each word of a text is, hidden in turn and predicted from the others.

    Returns JSON: `words`, each with `nll_nats`, its surprisal in nats (0: certain; above 8: very
    surprising), probability, rank and `expected`, the words that the model expected; of the text
    `total_nll_nats`, means and `pseudo_perplexity` (lower: more natural to the model).

    Args:
        text: a text without a mask; the time grows with the square of its length.
        model: a reference that `models` lists, a hub id, folder or .onnx file; empty: the page's.
        top_k: words listed that the model expected in place of each, 1 to 5.
    """
    check_top_k(top_k, BEST_TOKENS)
    answer = session.ask(session.model_soon(model), filling.surprisal, text).to_dict()
    for word in answer["words"]:
        word["expected"] = word["expected"][:top_k]
    return answer


def compare(
    session: Session,
    text: str,
    baseline: str = "",
    model: str = "",
    top_k: int = 5,
    candidates: str = "",
) -> Json:
    """What two masked language models expect at each mask of a text.

    Returns JSON: `reference` (the baseline) and `candidate` (the model), each as `predict`
    answers; `masks` with the divergences `kl_nats` and `js_nats` (0: equal; null: other
    tokenizers), whether the best word `flipped`, and both probabilities of each word.

    Args:
        text: a text with one mask or more: [MASK], <mask>, ____ or the models' own mask token.
        baseline: the reference model, named as `model` is; empty: the page's.
        model: the candidate: one that `models` lists, a hub id, folder or .onnx file.
        top_k: words listed at each mask, 1 to 100; 50 at most for a language model.
        candidates: up to 100 words to score at each mask as well, separated by commas.
    """
    check_top_k(top_k)
    words = split_words(candidates)
    pair = session.model_soon(baseline), session.model_soon(model)
    return session.ask(pair, comparing.compare, text, top_k=top_k, candidates=words).to_dict()


def evaluate(
    session: Session,
    texts: list[str] = _NO_TEXTS,
    samples: int = evaluate_form.PUBLIC_TEXTS_ONE_BY_ONE,
    metric: str = "cross-entropy",
    model: str = "",
    baseline: str = "",
) -> Json:
    """Measure a masked language model over texts, alone or beside a baseline on equal masks.

    Returns JSON: the metric's value (such as `cross_entropy`) with `interval_95`, its 95%
    interval over texts; `mean_nll_nats`, the mean loss of a hidden token in nats (lower is
    better), accuracies, and `alarms` to heed. With a baseline also `relative_change` (below
    0: `model` is better), its interval and a `verdict`: PASS (below 0.05), AT_RISK (below
    0.1), REGRESSION, INCONCLUSIVE (also of fewer than 30 texts) or NEAR_CHANCE. Texts are cut
    at 128 tokens. It may take a minute.

    Args:
        texts: at most 200 texts; empty: `samples` of 300 embedded English ones.
        samples: number of embedded texts, at most 200; of metrics word by word at most 50.
        metric: its name, such as cross-entropy, pseudo-perplexity, uniform or bits-per-byte.
        model: a reference that `models` lists, a hub id, folder or .onnx file; empty: the page's.
        baseline: a second model for a paired comparison, named as `model` is; empty: none.
    """
    config = EvaluationConfig(metric, max_tokens=evaluate_form.PUBLIC_TOKENS)
    evaluate_form.check_bounds(len(texts) or samples, config, "this page")
    if texts:
        signed, examples = "texts:given", [Example(*row) for row in enumerate(texts)]
    else:
        source = TextSource(samples=samples)
        with open_texts(source) as rows:
            signed, examples = str(source), list(rows)
    candidate = session.model_soon(model)
    reference = session.model_soon(baseline) if baseline else None
    loaded = [candidate, reference] if reference else [candidate]
    longest = min(evaluate_form.PUBLIC_TOKENS, *(each.max_tokens for each in loaded))
    config = EvaluationConfig(metric, max_tokens=longest)
    info = prepare_info(config, candidate, baseline=reference, texts={"signature": signed})

    def work(report: Report) -> Json:
        running, total = info.running(), len(examples)
        measured = evaluate_texts(
            reference or candidate,
            examples,
            info.config,
            candidate=candidate if reference else None,
            heartbeat=True,
        )
        with closing(measured) as rows:
            for row in rows:
                if isinstance(row, Heartbeat):
                    report(Waiting(f"{row.texts:.0f} of {total} texts", row.texts / total))
                else:
                    running.add(row)
        values = running.summary().to_dict()
        for name in SPLITS:
            for figures in (values, values.get("reference", {}), values.get("comparison", {})):
                figures.pop(name, None)
        return values | {"signature": info.signature}

    question = (info.signature, *map(id, loaded), *(example.text for example in examples))
    return session.slowly(candidate, question, work, title="an evaluation", long=True)


def models(session: Session) -> list[Json]:
    """The models at hand without a network; others take a `reference` as `model`."""
    return [asdict(model) for model in available_models()]


def tools() -> list[Tool]:
    """What programs may call: the functions above, then those of features."""
    more = [load(target) for feature in features() for target in feature.tools]
    return [predict, score_candidates, surprise, compare, evaluate, models, *more]


def build(session: Session, visibility: Any = "public") -> None:
    """Add an endpoint for each of the `tools` to the page being built.

    Where Gradio serves tools to language models, all that is "public" is one.
    """
    for tool in tools():
        # Few at a time: they must leave threads to the visitors of a public page.
        gr.api(
            served(tool, session),
            api_name=tool.__name__,
            api_visibility=visibility,
            concurrency_limit=2,
        )


def served(tool: Tool, session: Session) -> Tool:
    """A tool as Gradio takes it: without the session; it waits, and words its errors."""
    kinds = get_type_hints(tool)
    kinds.pop("session")
    whole = signature(tool)
    arguments = [entry for name, entry in whole.parameters.items() if name != "session"]

    @wraps(tool)
    def call(*values: Any) -> Any:
        try:
            checked = [
                from_values(kinds[entry.name], value, entry.name)
                for entry, value in zip(arguments, values, strict=True)
            ]
            return _awaited(tool, session, checked)
        except Exception as error:
            message = visible(explain(error)[0], lines=True)
            is_bug = not isinstance(error, FillmaskError)
            raise gr.Error(message, print_exception=is_bug) from error

    call.__annotations__ = kinds
    call.__signature__ = whole.replace(parameters=arguments)  # type: ignore[attr-defined]
    return call


def _awaited(tool: Tool, session: Session, values: Sequence[Any]) -> Any:
    """The answer once it is no longer `Unfinished`; the caller is told how far it is."""
    tell = gr.Progress()
    while True:
        try:
            return tool(session, *values)
        except Unfinished as work:  # noqa: PERF203 - once a wait
            state = work.state
            tell((round(100 * (state.fraction or 0)), 100), desc=state.message or None)
            time.sleep(0.05)  # where many compute, it is raised at once


def check_top_k(top_k: int, most: int = MAX_TOP_K) -> None:
    """An `OptionError` for a number of words that cannot be listed."""
    if not 1 <= top_k <= most:
        raise OptionError(f"top_k was {top_k}: give a whole number from 1 to {most}")
