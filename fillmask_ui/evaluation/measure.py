"""evaluate(): a generator of measured texts.

The caller decides: store the row, draw the bar, stop. What a text yields depends on other texts
only through the float32 rounding of the batch that it shares. Batches are the same whatever the
number of threads, and whether or not some texts are already done.
"""

import itertools
from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np

from fillmask_ui.batching import Budget, in_order, windows
from fillmask_ui.errors import DataError, OptionError, TextError
from fillmask_ui.evaluation.batch_scoring import (
    LOGIT_BYTES,
    Batch,
    Scorer,
    Scores,
    TextView,
    join_scores,
)
from fillmask_ui.evaluation.evaluation_config import EvaluationConfig
from fillmask_ui.evaluation.given_texts import texts_of
from fillmask_ui.evaluation.metrics import Metric
from fillmask_ui.evaluation.rows import (
    FIRST,
    LATER,
    WHOLE,
    EvaluatedText,
    MaskedText,
    Prepared,
    covered,
)
from fillmask_ui.masking import HiddenTokens, generator, hideable
from fillmask_ui.protocol import MaskedLM, ModelLike, Vocabulary, as_model
from fillmask_ui.records import Encoding, Example, SkippedText, Span
from fillmask_ui.tokenizers import same_tokenizer

# Texts and tokens of a window, which is cut into batches of texts of about equal length.
_WINDOW_TEXTS, _WINDOW_TOKENS = 512, 2**16

DEFAULT_BATCH_TOKENS = 512
NOT_COMPARABLE = "tokenizers do not cover the same characters"
# Far more characters than any tokenizer puts into one token of running text.
_CHARACTERS_A_TOKEN = 64


@dataclass(frozen=True)
class Heartbeat:
    """A sign of life between rows."""

    texts: float  # through so far, with skipped and done ones, and the share of those under way
    tokens: int  # scored so far, also of rows that come later
    # In the calls of the model, or of the reference and the candidate, so far; 0 if not timed.
    call_seconds: tuple[float, ...] = ()


class Masks(Protocol):
    """Where hidden tokens come from."""

    def hide(self, encoding: Encoding, example_id: int) -> HiddenTokens:
        """Hidden tokens of one text, M = 0 or more."""


def evaluate(
    model: ModelLike,
    examples: Iterable[Example | str | Sequence[str] | Mapping[str, Any]],
    config: EvaluationConfig | None = None,
    *,
    column: str | Sequence[str] | None = None,
    group_column: str | None = None,
    candidate: ModelLike | None = None,
    masks: Masks | None = None,
    done: Collection[int] = (),
    heartbeat: bool = False,
) -> Generator[EvaluatedText | SkippedText | Heartbeat]:
    """Measure a model, or a candidate beside it on identical masks, text by text.

    Args:
        model: the only model, or the reference beside a `candidate`: from `load_model`, or a
            reference such as `embedded`, which is loaded once.
        examples: texts with ids that are unique and the same in every run; plain strings, or
            pairs (better, worse) of them, perhaps with a group and a text before both that is not
            scored, are numbered from 0. A data set of
            `datasets`, a data frame, or mappings. Read a window at a time.
        config: what is measured; the cross-entropy by default.
        column: that of the texts in a data set; by default `text`, or the only one. Of pairs those
            of the better and worse sentence, perhaps the group; by default of a known layout.
        group_column: that of a value which groups the texts: `Summary` has figures of each group.
        candidate: a second model. Each row then has its scores. With the same tokenizer the row
            also carries those of the reference and the difference of the logits, else the
            reference's own row, where both hide the same text.
        masks: where hidden tokens of the candidate, or the only model, come from; needed for the
            mask stream `collator`.
        done: ids that a stopped run already has, which are not measured again.
        heartbeat: also yield a `Heartbeat` after each batch; a text may take many.

    Yields:
        One per text, as soon as it is measured: ids come in any order within a window.

    Raises:
        OptionError: if the config asks for what the models cannot give; at the first step.
        DataError: for what holds no texts, or several columns of which none is named.
        ModelOutputError: if a model returns NaN.
    """
    measured, reference = as_model(model), None
    if candidate is not None:
        measured, reference = as_model(candidate), measured
    config = check_models(measured, reference, config or EvaluationConfig())
    texts = texts_of(examples, column, config.metric.columns, group_column)
    if masks is None and config.mask_stream == "collator":
        raise OptionError(
            "the mask stream 'collator' runs in transformers: give "
            "masks=CollatorMasks(model.vocabulary, config) from fillmask_ui.runs.collator_masks"
        )
    lanes = _lanes(measured, reference, config, masks)
    models = [model for lane in lanes for model in lane.scorer.models]
    workers = min(getattr(model, "concurrent_calls", 1) for model in models)
    scored: dict[int, dict[tuple[int, int], Scores]] = defaultdict(dict)  # by id; lane and view
    tokens = 0
    steps = _steps(_windows(lanes, texts, config), lanes, frozenset(done))
    with closing(in_order(_Step.perform, steps, workers)) as performed:
        for step, scores in performed:
            if isinstance(step.work, SkippedText):
                yield step.work
                continue
            for view, view_scores in zip(step.work.views, scores, strict=True):
                if view.done:
                    continue
                if view.lane == 0:
                    tokens += len(view.entries)
                example_scores = scored[view.text.row.id]
                example_scores[view.lane, view.number] = view_scores
                if len(example_scores) == sum(text.hidden.view_count for text in view.example):
                    del scored[view.text.row.id]
                    yield _evaluated(view.example, example_scores, config.metric)
            if heartbeat:
                yield Heartbeat(step.texts, tokens, _call_seconds(lanes, reference, measured))


def _call_seconds(lanes: Sequence["_Lane"], *models: MaskedLM | None) -> tuple[float, ...]:
    """In the calls of each model that is not None."""
    scorers = {id(lane.scorer): lane.scorer for lane in lanes}.values()
    return tuple(
        sum(
            seconds
            for scorer in scorers
            for scored, seconds in zip(scorer.models, scorer.call_seconds, strict=True)
            if scored is model
        )
        for model in models
        if model is not None
    )


def _evaluated(
    example: Sequence[Prepared], scored: Mapping[tuple[int, int], Scores], metric: Metric
) -> EvaluatedText:
    """The row of an example, of its scores by lane and view."""
    rows = []
    for lane, text in enumerate(example):
        views = [scored[lane, number] for number in range(text.hidden.view_count)]
        # Of one model the scores alone.
        named = zip(("scores", "reference", "difference"), join_scores(views), strict=False)
        rows.append(EvaluatedText(**vars(text.row), **dict(named)))
    if metric.columns is not None:
        pairs = zip(rows[::2], rows[1::2], strict=True)
        rows = [replace(better, worse=worse) for better, worse in pairs]
    reference_text = rows[1] if len(rows) > 1 else None
    return replace(rows[0], reference_text=reference_text, metric=metric)


def _parts_of(metric: Metric) -> tuple[str, ...]:
    """Attributes of an `Example` that are measured, in turn."""
    return ("text",) if metric.columns is None else ("text", "worse")


def _numbered(
    examples: Iterable[Example | str | Sequence[str]], metric: Metric
) -> Iterator[Example]:
    parts = len(_parts_of(metric))
    for index, text in enumerate(examples):
        if isinstance(text, Example):
            example = text
        elif isinstance(text, list | tuple) and parts > 1:
            example = Example(index, *text[:4])
        else:
            example = Example(index, text)  # type: ignore[arg-type]  # checked below
        if len(example.texts) != parts or not all(isinstance(part, str) for part in example.texts):
            expected = (
                "a text" if parts == 1 else 'a pair ("better", "worse"), perhaps with a group'
            )
            found = repr(example.texts if isinstance(text, Example) else text)[:100]
            raise DataError(f"text {index} is {found}, not {expected}: leave it out")
        if not 0 <= example.id < 2**63:  # as rows and the generator of masks can hold it
            raise DataError(f"the id of a text must lie from 0 to 2^63; it was {example.id}")
        yield example


def check_models(
    model: MaskedLM, reference: MaskedLM | None, config: EvaluationConfig
) -> EvaluationConfig:
    """The config resolved for the models that it is to measure.

    An `OptionError` for longer texts than they take, or a comparison by token of two tokenizers.
    """
    if reference is None:
        return config.resolved(model.max_tokens)
    config = config.resolved(model.max_tokens, reference.max_tokens)
    if not config.metric.compares_tokenizers and not same_tokenizer(
        model.vocabulary, reference.vocabulary
    ):
        raise OptionError(
            f"{model.signature.name} and {reference.signature.name} have different tokenizers, so "
            "their losses per token mean different things; compare them per character: "
            "pseudo-perplexity (--metric pseudo-perplexity) or whole words (--whole-word)"
        )
    return config


@dataclass(frozen=True)
class _Lane:
    """Models with one tokenizer, one part of each example, and the hidden tokens of it."""

    scorer: Scorer
    part: str  # attribute of `Example`
    masks: Masks | None  # by the seed if none are given

    def prepare(self, example: Example, config: EvaluationConfig) -> Prepared | SkippedText:
        text = replace(example, text=getattr(example, self.part), worse=None)
        return prepare(text, self.scorer.models[0].vocabulary, config, self.masks)


def _lanes(
    model: MaskedLM, reference: MaskedLM | None, config: EvaluationConfig, masks: Masks | None
) -> list[_Lane]:
    """For each part one for both models if they have the same tokenizer, else one each."""
    if reference is None:
        groups: list[tuple[MaskedLM, ...]] = [(model,)]
    elif same_tokenizer(model.vocabulary, reference.vocabulary):
        groups = [(model, reference)]
    else:
        groups = [(model,), (reference,)]
    metric, budget = config.metric, Budget(LOGIT_BYTES)
    lanes = []
    for models in groups:
        batch_tokens = config.batch_tokens or DEFAULT_BATCH_TOKENS
        scorer = metric.scorer(models, batch_tokens, budget, config.seed)
        # The masks fit the first tokenizer alone.
        group_masks = masks if models[0] is model else None
        lanes += [_Lane(scorer, part, group_masks) for part in _parts_of(metric)]
    return lanes


@dataclass(frozen=True, eq=False)
class _Step:
    work: Batch | SkippedText
    scorer: Scorer
    texts: float = 0.0  # as of `Heartbeat`, after it

    def perform(self) -> tuple["_Step", list[Scores]]:
        return self, [] if isinstance(self.work, SkippedText) else self.scorer.score(self.work)


_PreparedExample = tuple[Prepared, ...]  # in each lane


def _windows(
    lanes: Sequence[_Lane], texts: Iterable[Any], config: EvaluationConfig
) -> Iterator[list[_PreparedExample | SkippedText]]:
    """An example is read when its window is being made."""
    examples = (_prepared(lanes, example, config) for example in _numbered(texts, config.metric))
    return windows(examples, _tokens_read, max_size=_WINDOW_TOKENS, max_items=_WINDOW_TEXTS)


def _tokens_read(example: _PreparedExample | SkippedText) -> int:
    if isinstance(example, SkippedText):
        return 0
    return sum(text.hidden.view_count * len(text.hidden.ids) for text in example)


def _steps(
    windows_of_examples: Iterable[list[_PreparedExample | SkippedText]],
    lanes: Sequence[_Lane],
    done: frozenset[int],
) -> Iterator[_Step]:
    """Of each window: texts left out, then the batches, those of the last lane first."""
    before = 0
    for number, window in enumerate(windows_of_examples):
        examples = [example for example in window if not isinstance(example, SkippedText)]
        for example in window:
            if isinstance(example, SkippedText) and example.id not in done:
                yield _Step(example, lanes[0].scorer)
        for lanes_through, lane in enumerate(reversed(range(len(lanes)))):
            views = [
                TextView(example, lane, view, example[0].row.id in done)
                for example in examples
                for view in range(example[lane].hidden.view_count)
            ]
            scorer = lanes[lane].scorer
            for batch in scorer.batches(views, number):
                share = (lanes_through + batch.through) / len(lanes)
                yield _Step(batch, scorer, before + share * len(window))
        before += len(window)


def _prepared(
    lanes: Sequence[_Lane], example: Example, config: EvaluationConfig
) -> _PreparedExample | SkippedText:
    """The example in each lane, or why it is left out."""
    texts = []
    for lane in lanes:
        text = lane.prepare(example, config)
        if isinstance(text, SkippedText):
            return text
        texts.append(text)
    rows, parts = [text.row for text in texts], len(_parts_of(config.metric))
    reason = _unfit_pair(rows) if parts > 1 else ""
    for row, reference_row in zip(rows[:parts], rows[parts:], strict=False):  # none of one lane
        if not reason and not config.metric.covers_same(row, reference_row):
            reason = NOT_COMPARABLE
    return SkippedText(example.id, reason) if reason else tuple(texts)


def _unfit_pair(rows: Sequence[MaskedText]) -> str:
    """Why a pair cannot be measured, of its sentences under each tokenizer; blank if it can."""
    if rows[0].text == rows[1].text:
        return "both sentences are the same"
    return "longer than the model takes" if any(row.truncated for row in rows) else ""


def prepared(
    vocabulary: Vocabulary, texts: Iterable[Example | str], config: EvaluationConfig
) -> Iterator[Prepared]:
    """Texts with the hidden tokens that `evaluate` chooses, without those that it skips."""
    for example in _numbered(texts, config.metric):
        text = prepare(example, vocabulary, config)
        if isinstance(text, Prepared):
            yield text


def prepare(
    example: Example,
    vocabulary: Vocabulary,
    config: EvaluationConfig,
    masks: Masks | None = None,
) -> Prepared | SkippedText:
    """Hide tokens of one text, or say why it cannot be measured.

    Without `masks` they depend on (seed, the example's id, its tokens) alone.
    """
    if not example.text.strip():
        return SkippedText(example.id, "empty or blank")
    max_tokens = cast("int", config.max_tokens)  # `check_models` has resolved it
    try:
        given = example.given.strip()
        text = f"{given} {example.text}" if given else example.text
        encoding = _encode_beginning(vocabulary, text, max_tokens)
    except TextError:
        return SkippedText(example.id, "cannot be tokenized")
    truncated = len(encoding) > max_tokens
    if truncated:
        encoding = _cut(encoding, max_tokens)
    can_hide = hideable(encoding.ids, vocabulary.special_ids)
    # Also for a text where nothing can be hidden: a stream of masks advances.
    if masks is None:
        rng = generator(config.seed, example.id)
        hidden = config.metric.hide(encoding, vocabulary, rng)
    else:
        hidden = masks.hide(encoding, example.id)
    left_out = encoding.special.count(False) - int(can_hide.sum())
    if given:
        behind = np.array([span.end > len(given) for span in encoding.spans])
        can_hide, hidden = can_hide & behind, _among(hidden, behind)
    if not can_hide.any():
        return SkippedText(example.id, "only special or unknown tokens")
    if not len(hidden.cols):
        return SkippedText(example.id, "no token was chosen")
    spans = [(encoding.spans[col].start, encoding.spans[col].end) for col in hidden.cols]
    whole = hidden.hidden_until is not None  # each token is hidden once, in a view of its own
    row = MaskedText(
        id=example.id,
        text=encoding.text,
        characters=_spelled(encoding, can_hide) if whole else len(covered(encoding.text, spans)),
        truncated=truncated,
        left_out=left_out,
        can_hide=int(can_hide.sum()),
        ids=hidden.ids,
        cols=hidden.cols,
        tokens=tuple(vocabulary.token(int(index)) for index in hidden.true_ids),
        kinds=hidden.kinds,
        shown_ids=hidden.input_ids[hidden.cols],
        parts=_parts(encoding, hidden.cols),
        spans=np.array(spans, np.int64),
        group=example.group,
    )
    return Prepared(row, hidden, encoding)


def _among(hidden: HiddenTokens, scored: np.ndarray) -> HiddenTokens:
    """Those of the hidden tokens whose position is `scored`, bool [T]."""
    kept, until = scored[hidden.cols], hidden.hidden_until
    return replace(
        hidden,
        cols=hidden.cols[kept],
        kinds=hidden.kinds[kept],
        hidden_until=None if until is None else until[kept],
    )


def _encode_beginning(vocabulary: Vocabulary, text: str, max_tokens: int) -> Encoding:
    limit = _CHARACTERS_A_TOKEN * (max_tokens + 1)
    while True:
        encoding = vocabulary.encode(text[:limit])
        if len(encoding) > max_tokens or len(text) <= limit:
            return encoding
        limit *= 4


def _cut(encoding: Encoding, max_tokens: int) -> Encoding:
    """As many tokens as fit, with the special tokens at the end."""
    closing = sum(1 for _ in itertools.takewhile(bool, reversed(encoding.special)))
    before, after = slice(max_tokens - closing), slice(len(encoding) - closing, None)
    end = max((span.end for span in encoding.spans[before]), default=0)
    columns = {
        name: column[before] + column[after]
        for name, column in vars(encoding).items()
        if name != "text"
    }
    columns["spans"] = tuple(
        Span(min(span.start, end), min(span.end, end)) for span in columns["spans"]
    )
    return Encoding(encoding.text[:end], **columns)


def _spelled(encoding: Encoding, can_hide: np.ndarray) -> int:
    """Characters of a text without those of written tokens that are not scored."""
    text = encoding.text
    counts = np.ones(len(text), bool)
    for span, special, scored in zip(encoding.spans, encoding.special, can_hide, strict=True):
        if not special and not scored:
            counts[span.start : span.end] = False
    return int(counts[len(text) - len(text.lstrip()) : len(text.rstrip())].sum())


def _parts(encoding: Encoding, cols: np.ndarray) -> np.ndarray:
    """uint8 [M], index into `PARTS`."""
    parts = np.full(len(cols), WHOLE, np.uint8)
    words = (None, *encoding.word_ids, None)
    for index, col in enumerate(cols):
        before, word, after = words[col : col + 3]
        if word is not None and word in (before, after):
            parts[index] = LATER if word == before else FIRST
    return parts
