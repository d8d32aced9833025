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
from fillmask_ui.evaluation.batch_scoring import LOGIT_BYTES, Batch, Scorer, Scores, View, joined
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
from fillmask_ui.protocol import MaskedLM, Vocabulary
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


class Masks(Protocol):
    """Where hidden tokens come from."""

    def hide(self, encoding: Encoding, example_id: int) -> HiddenTokens:
        """Hidden tokens of one text, M = 0 or more."""


def evaluate(
    model: MaskedLM,
    examples: Iterable[Example | str | Sequence[str] | Mapping[str, Any]],
    config: EvaluationConfig | None = None,
    *,
    column: str | Sequence[str] | None = None,
    baseline: MaskedLM | None = None,
    masks: Masks | None = None,
    done: Collection[int] = (),
    heartbeat: bool = False,
) -> Generator[EvaluatedText | SkippedText | Heartbeat]:
    """Measure a model, and a second one on identical masks, text by text.

    Args:
        model: from `load_model`.
        examples: texts with ids that are unique and the same in every run; plain strings, or
            pairs (better, worse) of them, perhaps with a group, are numbered from 0. A data set of
            `datasets`, a data frame, or mappings. Read a window at a time.
        config: what is measured; the cross-entropy by default.
        column: that of the texts in a data set; by default `text`, or the only one. Of pairs those
            of the better and worse sentence, perhaps the group; by default of a known layout.
        baseline: a second model. With the same tokenizer each row carries its scores and the
            difference of the logits, else its own row, where both hide the same text.
        masks: where hidden tokens come from; needed for the mask stream `collator`.
        done: ids that a stopped run already has, which are not measured again.
        heartbeat: also yield a `Heartbeat` after each batch; a text may take many.

    Yields:
        One per text, as soon as it is measured: ids come in any order within a window.

    Raises:
        OptionError: if the config asks for what the models cannot give; at the first step.
        DataError: for what holds no texts, or several columns of which none is named.
        ModelOutputError: if a model returns NaN.
    """
    config = check_models(model, baseline, config or EvaluationConfig())
    texts = texts_of(examples, column, config.metric.columns)
    if masks is None and config.mask_stream == "collator":
        raise OptionError(
            "the mask stream 'collator' runs in transformers: give "
            "masks=CollatorMasks(model.vocabulary, config) from fillmask_ui.runs.collator_masks"
        )
    lanes, known = _lanes(model, baseline, config, masks), frozenset(done)
    workers = min(
        getattr(own, "concurrent_calls", 1) for lane in lanes for own in lane.scorer.models
    )
    scored: dict[int, dict[tuple[int, int], Scores]] = defaultdict(dict)  # by id; lane and view
    tokens = 0
    steps = _steps(_windows(lanes, texts, config), lanes, known)
    with closing(in_order(_Step.perform, steps, workers)) as performed:
        for step, scores in performed:
            if isinstance(step.what, SkippedText):
                yield step.what
                continue
            for view, own in zip(step.what.views, scores, strict=True):
                if view.done:
                    continue
                tokens += 0 if view.lane else len(view.entries)
                parts = scored[view.text.row.id]
                parts[view.lane, view.number] = own
                if len(parts) == sum(text.hidden.view_count for text in view.item):
                    yield _evaluated(view.item, scored.pop(view.text.row.id), config.metric)
            if heartbeat:
                yield Heartbeat(step.texts, tokens)


def _evaluated(
    item: Sequence[Prepared], scored: Mapping[tuple[int, int], Scores], metric: Metric
) -> EvaluatedText:
    """The row of an example, of its scores by lane and view."""
    rows = []
    for lane, text in enumerate(item):
        views = [scored[lane, number] for number in range(text.hidden.view_count)]
        named = zip(("scores", "baseline", "difference"), joined(views), strict=False)
        rows.append(EvaluatedText(**vars(text.row), **dict(named)))
    if metric.columns is not None:
        pairs = zip(rows[::2], rows[1::2], strict=True)
        rows = [replace(better, worse=worse) for better, worse in pairs]
    return replace(rows[0], other=rows[1] if len(rows) > 1 else None, metric=metric.name)


def _parts_of(metric: Metric) -> tuple[str, ...]:
    """Attributes of an `Example` that are measured, in turn."""
    return ("text",) if metric.columns is None else ("text", "worse")


def _numbered(
    examples: Iterable[Example | str | Sequence[str]], metric: Metric
) -> Iterator[Example]:
    parts = len(_parts_of(metric))
    for index, own in enumerate(examples):
        cells = own if isinstance(own, list | tuple) and parts > 1 else [own]
        example = own if isinstance(own, Example) else Example(index, *cells[:3])
        if len(example.texts) != parts or not all(isinstance(text, str) for text in example.texts):
            wanted = "a text" if parts == 1 else 'a pair ("better", "worse"), perhaps with a group'
            shown = repr(own.texts if isinstance(own, Example) else own)[:100]
            raise DataError(f"text {index} is {shown}, not {wanted}: leave it out")
        if not 0 <= example.id < 2**63:  # as rows hold them, and as the generator of masks wants
            raise DataError(f"the id of a text must lie from 0 to 2^63; it was {example.id}")
        yield example


def check_models(
    model: MaskedLM, baseline: MaskedLM | None, config: EvaluationConfig
) -> EvaluationConfig:
    """The config resolved for the models that it is to measure.

    An `OptionError` for longer texts than they take, or a comparison by token of two tokenizers.
    """
    if baseline is None:
        return config.resolved(model.max_tokens)
    config = config.resolved(model.max_tokens, baseline.max_tokens)
    if not config.metric.compares_tokenizers and not same_tokenizer(
        model.vocabulary, baseline.vocabulary
    ):
        raise OptionError(
            f"{model.signature.name} and {baseline.signature.name} have different tokenizers, so "
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
        own = replace(example, text=getattr(example, self.part), worse=None)
        return prepare(own, self.scorer.models[0].vocabulary, config, self.masks)


def _lanes(
    model: MaskedLM, baseline: MaskedLM | None, config: EvaluationConfig, masks: Masks | None
) -> list[_Lane]:
    """For each part one for both models if they have the same tokenizer, else one each."""
    metric, budget = config.metric, Budget(LOGIT_BYTES)
    batch_tokens = config.batch_tokens or DEFAULT_BATCH_TOKENS

    def lanes(*models: MaskedLM, masks: Masks | None = None) -> list[_Lane]:
        scorer = metric.scorer(models, batch_tokens, budget, config.seed)
        return [_Lane(scorer, part, masks) for part in _parts_of(metric)]

    if baseline is None:
        return lanes(model, masks=masks)
    if same_tokenizer(model.vocabulary, baseline.vocabulary):
        return lanes(model, baseline, masks=masks)
    return lanes(model, masks=masks) + lanes(baseline)  # the masks fit the first tokenizer alone


@dataclass(frozen=True, eq=False)
class _Step:
    what: Batch | SkippedText
    scorer: Scorer
    texts: float = 0.0  # as of `Heartbeat`, after it

    def perform(self) -> tuple["_Step", list[Scores]]:
        return self, [] if isinstance(self.what, SkippedText) else self.scorer.score(self.what)


_Item = tuple[Prepared, ...] | SkippedText


def _windows(
    lanes: Sequence[_Lane], texts: Iterable[Any], config: EvaluationConfig
) -> Iterator[list[_Item]]:
    """An item is read when its window is being made."""
    items = (_item(lanes, example, config) for example in _numbered(texts, config.metric))

    def tokens_read(item: _Item) -> int:
        if isinstance(item, SkippedText):
            return 0
        return sum(part.hidden.view_count * len(part.hidden.ids) for part in item)

    return windows(items, tokens_read, max_size=_WINDOW_TOKENS, max_items=_WINDOW_TEXTS)


def _steps(
    cut: Iterable[list[_Item]], lanes: Sequence[_Lane], done: frozenset[int]
) -> Iterator[_Step]:
    """Of each window: texts left out, then the batches, those of the last lane first."""
    before = 0
    for number, window in enumerate(cut):
        ready = [item for item in window if not isinstance(item, SkippedText)]
        for item in window:
            if isinstance(item, SkippedText) and item.id not in done:
                yield _Step(item, lanes[0].scorer)
        for turn, place in enumerate(reversed(range(len(lanes)))):
            views = [
                View(item, place, view, item[0].row.id in done)
                for item in ready
                for view in range(item[place].hidden.view_count)
            ]
            scorer = lanes[place].scorer
            for batch in scorer.batches(views, number):
                share = (turn + batch.through) / len(lanes)
                yield _Step(batch, scorer, before + share * len(window))
        before += len(window)


def _item(lanes: Sequence[_Lane], example: Example, config: EvaluationConfig) -> _Item:
    """The example in each lane, or why it is left out."""
    ready, metric = [], config.metric
    for lane in lanes:
        made = lane.prepare(example, config)
        if isinstance(made, SkippedText):
            return made
        ready.append(made)
    rows, parts = [prepared.row for prepared in ready], len(_parts_of(metric))
    reason = _unfit_pair(rows) if parts > 1 else ""
    if not reason and not all(map(metric.covers_same, rows[:parts], rows[parts:])):
        reason = NOT_COMPARABLE
    return SkippedText(example.id, reason) if reason else tuple(ready)


def _unfit_pair(rows: Sequence[MaskedText]) -> str:
    """Why a pair cannot be measured, of its sentences under each tokenizer; blank if it can."""
    if rows[0].text == rows[1].text:
        return "both sentences are the same"
    return "longer than the model takes" if any(row.truncated for row in rows) else ""


def prepared(
    vocabulary: Vocabulary, texts: Iterable[Example | str], config: EvaluationConfig
) -> Iterator[Prepared]:
    """Texts with the hidden tokens that `evaluate` chooses, without those that it skips."""
    made = (prepare(own, vocabulary, config) for own in _numbered(texts, config.metric))
    return (own for own in made if isinstance(own, Prepared))


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
        encoding = _encode_beginning(vocabulary, example.text, max_tokens)
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
        left_out=encoding.special.count(False) - int(can_hide.sum()),
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
    kept = max_tokens - closing
    end = max((span.end for span in encoding.spans[:kept]), default=0)
    values = {
        name: own[:kept] + own[len(encoding) - closing :] for name, own in vars(encoding).items()
    }
    spans = tuple(Span(min(span.start, end), min(span.end, end)) for span in values["spans"])
    return Encoding(**{**values, "text": encoding.text[:end], "spans": spans})


def _spelled(encoding: Encoding, can_hide: np.ndarray) -> int:
    """Characters of a text without those of written tokens that are not scored."""
    text = encoding.text
    kept = np.ones(len(text), bool)
    for span, special, scored in zip(encoding.spans, encoding.special, can_hide, strict=True):
        if not special and not scored:
            kept[span.start : span.end] = False
    return int(kept[len(text) - len(text.lstrip()) : len(text.rstrip())].sum())


def _parts(encoding: Encoding, cols: np.ndarray) -> np.ndarray:
    """uint8 [M], index into `PARTS`."""
    parts = np.full(len(cols), WHOLE, np.uint8)
    words = (None, *encoding.word_ids, None)
    for index, col in enumerate(cols):
        before, own, after = words[col : col + 3]
        if own is not None and own in (before, after):
            parts[index] = LATER if own == before else FIRST
    return parts
