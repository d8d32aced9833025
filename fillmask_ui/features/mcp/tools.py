"""What a language model may call on the page of `fillmask-ui mcp`: four tools, and the features'.

Gradio makes a tool of the Model Context Protocol of each public endpoint, from the name, types and
docstring of its function; so these are the public ones there, and those of `api` are not. A
call goes through the page's queue and session, as a visitor's question does.
"""

# No `from __future__ import annotations`: Gradio reads the types below while the page is built.

import json
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial, wraps
from inspect import getdoc, signature
from typing import Any, TypeVar, get_type_hints

import gradio as gr

from fillmask_ui import comparing, evaluation, filling
from fillmask_ui.evaluation import METRICS, EvaluationConfig, Heartbeat
from fillmask_ui.evaluation.catalogue import SPLITS
from fillmask_ui.extensions import features, load
from fillmask_ui.filling.prompt import encode_unmasked
from fillmask_ui.filling.word_surprisal import WANTED, SentenceSurprisal
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Example
from fillmask_ui.runs.info import prepare_info
from fillmask_ui.schema import from_values
from fillmask_ui.texts import TextSource, open_texts
from fillmask_ui.ui import api
from fillmask_ui.ui.evaluate import evaluate_form as form
from fillmask_ui.ui.explore.attribution_view import measured_words
from fillmask_ui.ui.job import Report, Unfinished, Waiting
from fillmask_ui.ui.session import MAX_WORDS, Session, check_text

MOST_LISTED = 50  # words at a mask: their reader pays for each
_EMBEDDED: list[str] = []
# Of arguments; of those that mean something else for one tool as TOOL.ARGUMENT.
_ARGUMENTS = {
    "text": "a text with one mask or more: [MASK], <mask>, ____ or the model's own mask token",
    "surprise.text": "a text without a mask; the time grows with the square of its length",
    "baseline": "the reference that `model`, the candidate, is compared with; named as `model` is",
    "evaluate.baseline": "a second model for a paired comparison, named as `model` is; empty: none",
    "top_k": f"words listed at each mask, 1 to {MOST_LISTED}",
    "surprise.top_k": f"words listed that the model wanted in place of each, 1 to {WANTED}",
    "candidates": f"up to {MAX_WORDS} words to score at each mask as well, separated by commas",
    "texts": f"at most {form.PUBLIC_TEXTS} texts; empty: `samples` of 300 embedded English ones",
    "samples": f"number of embedded texts, at most {form.PUBLIC_TEXTS}",
    "metric": f"one of {', '.join(METRICS)}; some of {form.PUBLIC_TEXTS_ONE_BY_ONE} texts at most",
}

Json = dict[str, Any]
Answer = TypeVar("Answer")


def build(session: Session) -> None:
    """Add the tools, and the endpoints of `api`, to the page being built."""
    api.build(session, "undocumented")
    more = ", a Hugging Face id (fetched at its first use), a model folder or an .onnx file"
    offered = f"one of {', '.join(session.offered())}{'' if session.public else more}"
    tools, models = Tools(session), f"{offered}; empty: {session.default_model}"
    brought = [load(target) for feature in features() for target in feature.tools]
    for tool in (
        *(tools.predict, tools.surprise, tools.compare, tools.evaluate),
        *(_bound(tool, session) for tool in brought),
    ):
        gr.api(_served(tool, models), api_name=f"tool_{tool.__name__}", concurrency_limit=2)


class Tools:
    """What is called, with the values of JSON, on the models of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def predict(self, text: str, model: str = "", top_k: int = 5, candidates: str = "") -> Json:
        """The most probable words at each mask of a text, by a masked language model.

        Returns JSON: `masks`, from left to right, each with `entropy_nats` and its `candidates`
        (probability from 0 to 1, nll_nats = -ln probability), best first; `scored` has the words
        asked for in `candidates`; `joint` the best fillings of several masks together.
        """
        asked = api.listed(top_k, candidates, MOST_LISTED)
        return self._session.ask(self._model(model), filling.fill, text, **asked).to_dict()

    def surprise(self, text: str, model: str = "", top_k: int = 1) -> Json:
        """How surprising each word of a text is, hidden in turn and predicted from the others.

        Returns JSON: `words`, each with `nll_nats`, its surprisal in nats (0: certain; above 8:
        very surprising), probability, rank and `wanted`, what the model expected there; of the
        text `total_nll_nats`, means and `pseudo_perplexity` (lower: more natural to the model).
        """
        api.check_top_k(top_k, WANTED)
        check_text(text)
        own = self._model(model)
        encoding, words = encode_unmasked(own, text), measured_words(self._session, own, text, 0)
        while len(found := measured_words(self._session, own, text, len(words))) > len(words):
            words = found
        answer = SentenceSurprisal(encoding, own.signature, words).to_dict()
        for word in answer["words"]:
            word["wanted"] = word["wanted"][:top_k]
        return answer

    def compare(
        self, text: str, baseline: str, model: str = "", top_k: int = 5, candidates: str = ""
    ) -> Json:
        """What two masked language models expect at each mask of a text.

        Returns JSON: `reference` (the baseline) and `candidate` (the model), each as `predict`
        answers; `masks` with the divergences `kl_nats` and `js_nats` (0: equal; null: other
        tokenizers), whether the best word `flipped`, and both probabilities of each word.
        """
        asked = api.listed(top_k, candidates, MOST_LISTED)
        both = self._model(baseline), self._model(model)
        return self._session.ask(both, comparing.compare, text, **asked).to_dict()

    def evaluate(
        self,
        texts: list[str] = _EMBEDDED,
        samples: int = form.PUBLIC_TEXTS_ONE_BY_ONE,
        metric: str = "cross-entropy",
        model: str = "",
        baseline: str = "",
    ) -> Json:
        """Measure a masked language model over texts, alone or beside a baseline on equal masks.

        Returns JSON: the metric's value (such as `cross_entropy`) with `interval_95`, its 95 %
        interval over texts; `mean_nll_nats`, the mean loss of a hidden token in nats (lower is
        better), accuracies, and `alarms` to heed. With a baseline also `relative_change` (below
        0: `model` is better), its interval and a `verdict`: PASS (below 0.05), AT_RISK (below
        0.1), REGRESSION, INCONCLUSIVE (also of fewer than 30 texts) or NEAR_CHANCE. Texts are cut
        at 128 tokens. It may take a minute.
        """
        config = EvaluationConfig(metric, max_tokens=form.PUBLIC_TOKENS)
        form.check_bounds(len(texts) or samples, config, "this tool")
        signed, examples = "texts:given", [Example(*own) for own in enumerate(texts)]
        if not texts:
            source = TextSource(samples=samples)
            with open_texts(source) as opened:
                signed, examples = str(source), [*opened]
        models = [self._model(own) for own in ([model, baseline] if baseline else [model])]
        longest = min(form.PUBLIC_TOKENS, *(own.max_tokens for own in models))
        config = EvaluationConfig(metric, max_tokens=longest)
        other = models[1] if baseline else None
        info = prepare_info(config, models[0], baseline=other, texts={"signature": signed})
        measure = partial(evaluation.evaluate, models[0], examples, info.config, baseline=other)

        def work(report: Report) -> Json:
            running, total = info.running(), len(examples)
            with closing(measure(heartbeat=True)) as rows:
                for row in rows:
                    if isinstance(row, Heartbeat):
                        report(Waiting(f"{row.texts:.0f} of {total} texts", row.texts / total))
                    else:
                        running.add(row)
            values = running.summary().to_dict()
            for name in SPLITS:
                del values[name]
                values.get("baseline", {}).pop(name, None)
            return values | {"signature": info.signature}

        question = (info.signature, *map(id, models), *(own.text for own in examples))
        return _awaited(partial(self._session.slowly, models[0], question, work))

    def _model(self, reference: str) -> MaskedLM:
        return _awaited(partial(self._session.model_soon, reference))


def _bound(tool: Callable[..., Json], session: Session) -> Callable[..., Json]:
    """A feature's function of the session and values of JSON, without the session."""

    @wraps(tool)
    def call(*values: Any) -> Json:
        return _awaited(partial(tool, session, *values))

    kinds = get_type_hints(tool)
    del kinds["session"]
    call.__annotations__ = kinds
    whole = signature(tool)
    rest = [entry for name, entry in whole.parameters.items() if name != "session"]
    call.__signature__ = whole.replace(parameters=rest)  # type: ignore[attr-defined]
    return call


def _served(tool: Callable[..., Json], models: str) -> Callable[..., str]:
    """A tool as Gradio takes it, with JSON as its answer; some clients know plain types alone."""
    kinds = {name: kind for name, kind in get_type_hints(tool).items() if name != "return"}
    about = {"model": models, **_ARGUMENTS}
    texts = {name: about.get(f"{tool.__name__}.{name}", about.get(name)) for name in kinds}
    arguments = [f"{name}: {text}" for name, text in texts.items() if text is not None]

    @wraps(tool)
    def call(*given: Any) -> str:
        with api.errors_in_words():
            asked = map(from_values, kinds.values(), given, kinds)
            return json.dumps(tool(*asked), ensure_ascii=False, separators=(",", ":"))

    # What a feature's tool says of arguments that it alone has comes last in its docstring.
    head, _, more = str(getdoc(tool)).partition("\nArgs:\n")
    call.__doc__ = "\n".join([head, "Args:", *arguments, *map(str.strip, more.splitlines())])
    call.__annotations__ = kinds | {"return": str}
    return call


def _awaited(ask: Callable[[], Answer]) -> Answer:
    """What is asked for, once it is no longer `Unfinished`; the caller is told how far it is."""
    tell = gr.Progress()
    while True:
        try:
            return ask()
        except Unfinished as still:  # noqa: PERF203 - once a wait
            tell((round(100 * (still.state.fraction or 0)), 100), desc=still.state.message or None)
            time.sleep(0.05)  # where many compute, it is raised at once
