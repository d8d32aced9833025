"""evaluate(): a generator of measured texts.

It yields, the caller decides: store the row, draw the bar, stop. What a text yields depends on
other texts only through the rounding of the batch that it shares, and batches are formed alike
whether or not some texts are already done, whatever the number of threads: a resumed run repeats
the numbers to the last digit, in the same order. No batch has texts of two blocks, which are
`BLOCK_TEXTS` texts of the stream each: blocks measured one by one, anywhere, give the same digits.
"""

import itertools
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from fillmask_ui.batching import Budget, in_order, windows
from fillmask_ui.comparing.tokenizers import same_tokenizer
from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.evaluation.batches import LOGIT_BYTES, Batch, BatchScorer, Scorer
from fillmask_ui.evaluation.config import EvaluationConfig
from fillmask_ui.evaluation.prepare import NOT_COMPARABLE, Masks, Prepared, SeededMasks, prepare
from fillmask_ui.evaluation.rows import EvaluatedText
from fillmask_ui.evaluation.schemes.unmasking import Unmasking
from fillmask_ui.evaluation.unmasked import UnmaskingScorer
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Example, SkippedText

BLOCK_TEXTS = 512
# A window is a block, or a part of one that is so much work.
_WINDOW_TOKENS = 2**16

DEFAULT_BATCH_TOKENS = 512


@dataclass(frozen=True)
class Heartbeat:
    """A sign of life between rows."""

    texts: float  # through so far, skipped and done ones too; those under way by share of the work
    batch_tokens: int  # of the padded batches, where it was left open
    tokens: int  # scored so far, those of rows that come later included


def evaluate(
    model: MaskedLM,
    examples: Iterable[Example | str],
    config: EvaluationConfig | None = None,
    *,
    baseline: MaskedLM | None = None,
    masks: Masks | None = None,
    done: Collection[int] = (),
    heartbeat: bool = False,
    begun: Callable[[tuple[int, ...]], None] | None = None,
) -> Generator[EvaluatedText | SkippedText | Heartbeat]:
    """Measure a model, and a second one on identical masks, text by text.

    Args:
        model: what is measured.
        examples: texts with ids that are unique and the same in every run; plain strings are
            numbered from 0. Read a window at a time.
        config: what is measured.
        baseline: a second model. With the same tokenizer each row carries its scores and the
            difference of the logits, else its own row, where both hide the same text.
        masks: where hidden tokens come from; needed for the mask stream `collator`.
        done: ids that a stopped run already has; they are not measured again.
        heartbeat: also yield a `Heartbeat` after each batch; a text may take many.
        begun: called before each batch with the ids of its texts, in the thread that measures it.

    Yields:
        One per text, as soon as it is measured: ids come in any order within a window.

    Raises:
        OptionError: if the config asks for what the models cannot give; at the first step.
        ModelOutputError: if a model returns NaN.
    """
    if isinstance(examples, str | Example):
        raise OptionError("the examples were one text: give a list of texts, as in [text]")
    config = check_models(model, baseline, config or EvaluationConfig())
    if masks is None and config.mask_stream == "collator":
        raise OptionError(
            "the mask stream 'collator' runs in transformers: give "
            "masks=CollatorMasks(model.vocabulary, config) from fillmask_ui.runs.collator_masks"
        )
    lanes = _lanes(model, baseline, config, masks)
    with closing(_measure(lanes, _numbered(examples), config, frozenset(done), begun)) as rows:
        for row in rows:
            if heartbeat or not isinstance(row, Heartbeat):
                yield row


def windows_of(
    model: MaskedLM,
    examples: Iterable[Example | str],
    config: EvaluationConfig,
    baseline: MaskedLM | None = None,
) -> Iterator[tuple[int, ...]]:
    """How `evaluate` cuts a stream into windows: the ids of the texts of each, skipped ones too."""
    config = check_models(model, baseline, config)
    lanes = _lanes(model, baseline, config, None)
    for window in _windows(_prepare_all(lanes, _numbered(examples), config)):
        yield tuple(item.id if isinstance(item, SkippedText) else item[0].row.id for item in window)


def _numbered(examples: Iterable[Example | str]) -> Iterator[Example]:
    for index, text in enumerate(examples):
        example = text if isinstance(text, Example) else Example(index, text)
        if not isinstance(example.text, str):
            raise DataError(f"text {index} is {repr(example.text)[:100]}, not a text: leave it out")
        if not 0 <= example.id < 2**63:  # as rows hold them, and as the generator of masks wants
            raise DataError(f"the id of a text must lie from 0 to 2^63; it was {example.id}")
        yield example


def check_models(
    model: MaskedLM, baseline: MaskedLM | None, config: EvaluationConfig
) -> EvaluationConfig:
    """The config resolved for the models that it is to measure.

    Raises:
        OptionError: if it asks for longer texts than they take, or compares by token two models
            with different tokenizers.
    """
    if baseline is None:
        return config.resolved(model.max_tokens)
    config = config.resolved(model.max_tokens, baseline.max_tokens)
    alike = same_tokenizer(model.vocabulary, baseline.vocabulary)
    if not alike and not config.scheme.compares_tokenizers:
        raise OptionError(
            f"{model.signature.name} and {baseline.signature.name} have different tokenizers, so "
            "their losses per token mean different things; compare them per character: "
            "pseudo-perplexity (--metric pseudo-perplexity) or whole words (--whole-word)"
        )
    return config


@dataclass(frozen=True)
class _Lane:
    """Models with one tokenizer, and where the hidden tokens of their texts come from."""

    models: list[MaskedLM]
    masks: Masks


def _lanes(
    model: MaskedLM, baseline: MaskedLM | None, config: EvaluationConfig, masks: Masks | None
) -> list[_Lane]:
    """One for both models where they have the same tokenizer, else one each."""
    lanes = [_Lane([model], masks or SeededMasks(config, model.vocabulary))]
    if baseline is not None and same_tokenizer(model.vocabulary, baseline.vocabulary):
        lanes[0].models.append(baseline)
    elif baseline is not None:
        lanes.append(_Lane([baseline], SeededMasks(config, baseline.vocabulary)))
    return lanes


@dataclass(frozen=True, eq=False)
class _Step:
    """A batch on its way, or a text that is left out."""

    what: Batch | SkippedText
    scorer: Scorer
    waits: bool = False  # whether its rows wait for those of the model
    texts: float = 0.0  # as of `Heartbeat`, after it

    def perform(self, begun: Callable[[tuple[int, ...]], None] | None) -> tuple["_Step", Any]:
        if isinstance(self.what, SkippedText):
            return self, None
        if begun is not None:
            begun(tuple(sorted({view.text.row.id for view in self.what.views})))
        return self, self.scorer.score(self.what)


def _measure(
    lanes: Sequence[_Lane],
    texts: Iterable[Example],
    config: EvaluationConfig,
    done: frozenset[int],
    begun: Callable[[tuple[int, ...]], None] | None,
) -> Generator[EvaluatedText | SkippedText | Heartbeat]:
    """Row by row; of two lanes each text has a row that carries the other lane's."""
    models = [model for lane in lanes for model in lane.models]
    batch_tokens = config.batch_tokens or DEFAULT_BATCH_TOKENS
    workers = min(getattr(model, "concurrent_calls", 1) for model in models)
    budget = Budget(LOGIT_BYTES)
    scorers = [_scorer(config, lane.models, batch_tokens, budget) for lane in lanes]
    steps = _steps(_windows(_prepare_all(lanes, texts, config)), scorers, done)
    others: dict[int, EvaluatedText] = {}
    tokens = 0
    perform = partial(_Step.perform, begun=begun)
    with closing(in_order(perform, steps, workers)) as performed:
        for step, scores in performed:
            if isinstance(step.what, SkippedText):
                yield step.what
                continue
            for row in step.scorer.finished(step.what, scores, done):
                if step.waits:
                    others[row.id] = row
                else:
                    yield replace(row, other=others.pop(row.id, None), metric=config.metric)
            tokens += 0 if step.waits else step.what.tokens(done)
            yield Heartbeat(step.texts, batch_tokens, tokens)


def _scorer(config: EvaluationConfig, models: Sequence[MaskedLM], *limits: Any) -> Scorer:
    """What measures by the metric of a config; `limits` as of `Scorer`."""
    if isinstance(config.scheme, Unmasking):
        return UnmaskingScorer(models, *limits, scheme=config.scheme, seed=config.seed)
    return BatchScorer(models, *limits)


_Item = tuple[Prepared, ...] | SkippedText


def _size(item: _Item) -> int:
    """Tokens that the models read."""
    if isinstance(item, SkippedText):
        return 0
    return sum(part.hidden.view_count * len(part.hidden.ids) for part in item)


def _windows(items: Iterator[_Item]) -> Iterator[list[_Item]]:
    """Block by block; an item is read when its window is being made."""
    for first in items:
        block = itertools.chain([first], itertools.islice(items, BLOCK_TEXTS - 1))
        yield from windows(block, _size, max_size=_WINDOW_TOKENS, max_items=BLOCK_TEXTS)


def _steps(
    cut: Iterable[list[_Item]], scorers: Sequence[Scorer], done: frozenset[int]
) -> Iterator[_Step]:
    """Window by window: what is left out, then the batches, those of the second lane first."""
    before = 0
    for number, window in enumerate(cut):
        ready = []
        for item in window:
            if not isinstance(item, SkippedText):
                ready.append(item)
            elif item.id not in done:
                yield _Step(item, scorers[0])
        for turn, place in enumerate(reversed(range(len(scorers)))):
            for batch in scorers[place].batches([item[place] for item in ready], number, done):
                share = (turn + batch.through) / len(scorers)
                yield _Step(batch, scorers[place], place > 0, before + share * len(window))
        before += len(window)


def _prepare_all(
    lanes: Sequence[_Lane], texts: Iterable[Example], config: EvaluationConfig
) -> Iterator[_Item]:
    """Each text once per lane, or why it is left out of all of them."""
    for text in texts:
        made = [prepare(text, lane.models[0].vocabulary, config, lane.masks) for lane in lanes]
        ready = [item for item in made if isinstance(item, Prepared)]
        if len(ready) < len(made):
            yield next(item for item in made if isinstance(item, SkippedText))
        elif len(ready) == 1 or config.scheme.covers_same(*(item.row for item in ready)):
            yield tuple(ready)
        else:
            yield SkippedText(text.id, NOT_COMPARABLE)
