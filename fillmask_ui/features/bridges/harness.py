"""The model `fillmask` of lm-evaluation-harness: likelihoods of a masked language model.

Definition: the pseudo-log-likelihood of a continuation given its context. Both are one text. Each
token of the continuation is hidden alone, one after another (`within_word`: with the later
sub-tokens of its word), while the model sees all others, behind it too; ln P(token | all others) is
summed over the continuation. Without a context it is that of `pseudo_log_likelihoods`.

Rivals: a causal model sees the left side alone, and its sum is the logarithm of a probability of
texts, which this one is not: compare masked models, or continuations of one context, by it.

Source:
    Salazar et al. 2020, arXiv:1910.14659; within-word: Kauf and Ivanova 2023, arXiv:2305.10588.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, cast

import numpy as np
from lm_eval.api.model import LM
from tqdm.auto import tqdm

from fillmask_ui.errors import FillmaskError, OptionError, TextError, unknown
from fillmask_ui.evaluation import EvaluatedText, EvaluationConfig, evaluate
from fillmask_ui.evaluation.metrics import PseudoPerplexity
from fillmask_ui.masking import HiddenTokens
from fillmask_ui.models import ModelChoice, load_model
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Encoding, Example


@dataclass(frozen=True)
class _ScoredText:
    """A text whose tokens that end after the character `start` are scored."""

    text: str
    start: int = 0


@dataclass(frozen=True)
class _ScoredMasks:
    """Masks of pseudo-perplexity, for the scored tokens of each part alone."""

    metric: PseudoPerplexity
    vocabulary: Vocabulary
    parts: Sequence[_ScoredText]  # by id of the text

    def hide(self, encoding: Encoding, example_id: int) -> HiddenTokens:
        hidden = self.metric.hide(encoding, self.vocabulary, np.random.default_rng(0))
        start = self.parts[example_id].start
        scored = np.array([encoding.spans[col].end > start for col in hidden.cols], bool)  # [M]
        until = cast("np.ndarray", hidden.hidden_until)[scored]
        return replace(
            hidden, cols=hidden.cols[scored], kinds=hidden.kinds[scored], hidden_until=until
        )


class FillmaskLM(LM):
    """A masked language model as the harness calls one.

    `pretrained` and the options are those of `load_model`. The batch size that the harness gives
    changes nothing: batches are cut by their cost.
    """

    def __init__(
        self, pretrained: Any = "embedded", within_word: bool = False, **options: Any
    ) -> None:
        super().__init__()
        allowed = {"within_word", "pretrained", *vars(ModelChoice())} - {"reference"}
        model_options = {
            name: value for name, value in options.items() if not name.endswith("batch_size")
        }
        if unknown_names := model_options.keys() - allowed:
            raise OptionError(unknown("model argument", min(unknown_names), allowed))
        try:
            self.model = load_model(pretrained, **model_options)
        except FillmaskError:
            # The harness asks for `cuda:0` by default, also where there is none.
            if not str(model_options.pop("device", "")).startswith("cuda"):
                raise
            self.model = load_model(pretrained, **model_options)
        self.metric = PseudoPerplexity(within_word=within_word)

    def get_model_info(self) -> dict[str, Any]:
        """What the harness keeps with its results."""
        model = self.model.signature
        return {"model_sha": model.sha256, "signature": EvaluationConfig(self.metric).signature}

    def loglikelihood(
        self, requests: Sequence[Any], disable_tqdm: bool = False
    ) -> list[tuple[float, bool]]:
        """Nats of each continuation, and whether each token of it is the model's best guess.

        A context that is too long loses its beginning. A continuation without a token that can be
        hidden has -inf. Blanks before one without a context are left out.
        """
        answers = [(-np.inf, False)] * len(requests)
        for row in self._rows([self._fit(*request.args) for request in requests], disable_tqdm):
            best = bool((row.scores.ranks == 1).all())
            answers[row.id] = -float(row.scores.nll_nats.sum()), best
        for request, answer in zip(requests, answers, strict=True):
            self.cache_hook.add_partial("loglikelihood", request.args, answer)
        return answers

    def loglikelihood_rolling(
        self, requests: Sequence[Any], disable_tqdm: bool = False
    ) -> list[float]:
        """Nats of each text; of a long one in windows, each of which is seen alone."""
        windows: list[_ScoredText] = []
        sources: list[int] = []  # index of the request of each window
        for index, request in enumerate(requests):
            for window in self._cut(*request.args):
                windows.append(window)
                sources.append(index)
        answers = [0.0] * len(requests)
        for row in self._rows(windows, disable_tqdm):
            answers[sources[row.id]] -= float(row.scores.nll_nats.sum())
        for request, answer in zip(requests, answers, strict=True):
            self.cache_hook.add_partial("loglikelihood_rolling", request.args, answer)
        return answers

    def generate_until(self, *_: Any, **__: Any) -> NoReturn:
        raise OptionError(
            "a masked language model does not write texts on: choose tasks with output_type "
            "multiple_choice, loglikelihood or loglikelihood_rolling"
        )

    def _rows(self, parts: Sequence[_ScoredText], quiet: bool) -> Iterator[EvaluatedText]:
        """Measured texts in any order; the id of a row is the index of its text."""
        texts = [Example(index, part.text) for index, part in enumerate(parts)]
        masks = _ScoredMasks(self.metric, self.model.vocabulary, parts)
        rows = evaluate(self.model, texts, EvaluationConfig(self.metric), masks=masks)
        lacking = 0
        for row in tqdm(rows, total=len(parts), disable=quiet):
            if isinstance(row, EvaluatedText):
                lacking += row.left_out > 0
                yield row
        if lacking:
            message = "%d of %d texts have tokens that the vocabulary lacks, which are not scored"
            logging.getLogger(__name__).warning(message, lacking, len(parts))

    def _fit(self, context: str, continuation: str) -> _ScoredText:
        """Both as one text, without the beginning of the context if it is too long."""
        if not context.strip():
            context, continuation = "", continuation.lstrip()
        while True:
            encoding = self.model.vocabulary.encode(context + continuation)
            if (over := len(encoding) - self.model.max_tokens) <= 0:
                return _ScoredText(context + continuation, len(context))
            cut = encoding.spans[encoding.special.index(False) + over].start
            if cut >= len(context):
                most, name = self.model.max_tokens, self.model.signature.name
                raise TextError(f"{continuation[:60]!r}... is longer than {most} tokens of {name}")
            context = context[max(cut, 1) :]

    def _cut(self, text: str) -> Iterator[_ScoredText]:
        """A text in windows that are short enough."""
        while text.strip():
            encoding, most = self.model.vocabulary.encode(text), self.model.max_tokens
            last = most - encoding.special[::-1].index(False)
            stop = len(text) if len(encoding) <= most else encoding.spans[last].start
            yield _ScoredText(text[:stop])
            text = text[stop:]
