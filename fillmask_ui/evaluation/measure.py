"""evaluate(): a generator of measured texts.

It yields, the caller decides: store the row, draw the bar, stop. What a text yields depends on
the texts before it only through the batch that it shares, and batches are formed alike whether or
not some texts are already done: a resumed run repeats the numbers to the last digit.

Axes: B rows of a batch, T tokens, M hidden positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from fillmask_ui.batching import windows
from fillmask_ui.errors import OptionError
from fillmask_ui.evaluation.batches import ScoredText, score_window
from fillmask_ui.evaluation.config import EvaluationConfig
from fillmask_ui.evaluation.prepare import (
    NOT_COMPARABLE,
    Masks,
    Prepared,
    SeededMasks,
    prepare,
)
from fillmask_ui.evaluation.rows import EvaluatedText
from fillmask_ui.evaluation.tokenizers import same_tokenizer
from fillmask_ui.protocol import MaskedLM, Vocabulary
from fillmask_ui.records import Example, SkippedText

# A window is so many batches of work, or so many texts.
_WINDOW_BATCHES = 64
_WINDOW_TEXTS = 512


@dataclass(frozen=True)
class Heartbeat:
    """A sign of life between rows.

    Attributes:
        texts: how many texts are through so far, skipped and done ones counted; those under way
            count by their share of the work.
    """

    texts: float


def evaluate(
    model: MaskedLM,
    examples: Iterable[Example | str],
    config: EvaluationConfig | None = None,
    *,
    baseline: MaskedLM | None = None,
    masks: Masks | None = None,
    done: Collection[int] = (),
    heartbeat: bool = False,
) -> Iterator[EvaluatedText | SkippedText | Heartbeat]:
    """Measure a model, and a second one on identical masks, text by text.

    Args:
        model: what is measured.
        examples: texts with ids that are unique and the same in every run; plain strings are
            numbered from 0. Read a window at a time.
        config: what is measured.
        baseline: a second model. With the same tokenizer each row carries its scores and the
            difference of the logits; with another tokenizer its own row, where both hide the
            same characters.
        masks: where hidden tokens come from; needed for the mask stream `collator`.
        done: ids that a stopped run already has; they are not measured again.
        heartbeat: also yield a `Heartbeat` after each batch. A text of 500 tokens is 500 rows of
            batches for pseudo-perplexity: too long to wait before drawing a bar or stopping.

    Yields:
        `EvaluatedText` or `SkippedText`, one a text, each as soon as it is measured: ids come in
        any order within a window. With `heartbeat`, `Heartbeat` between them.

    Raises:
        OptionError: if the config asks for what the models cannot give; at the first step.
        ModelOutputError: if a model returns NaN.
    """
    if isinstance(examples, str | Example):
        raise OptionError("the examples were one text: give a list of texts, as in [text]")
    models = [model] if baseline is None else [model, baseline]
    config = check_models(model, baseline, config or EvaluationConfig())
    if masks is None and config.mask_stream == "collator":
        raise OptionError(
            "the mask stream 'collator' runs in transformers: give "
            "masks=CollatorMasks(model.vocabulary, config) from fillmask_ui.runs.collator_masks"
        )
    masks = masks or SeededMasks(config, model.vocabulary)
    texts = (
        text if isinstance(text, Example) else Example(index, text)
        for index, text in enumerate(examples)
    )
    if baseline is None or same_tokenizer(model.vocabulary, baseline.vocabulary):
        rows = _evaluate_together(models, texts, config, masks, frozenset(done))
    else:
        rows = _evaluate_side_by_side(models, texts, config, masks, frozenset(done))
    for row in rows:
        if heartbeat or not isinstance(row, Heartbeat):
            yield row


def check_models(
    model: MaskedLM, baseline: MaskedLM | None, config: EvaluationConfig
) -> EvaluationConfig:
    """The config resolved for the models that it is to measure.

    Raises:
        OptionError: if it asks for longer texts than they take, or compares by token two models
            with different tokenizers.
    """
    models = [model] if baseline is None else [model, baseline]
    config = config.resolved(*(entry.max_tokens for entry in models))
    if (
        baseline is None
        or config.scheme.compares_tokenizers
        or same_tokenizer(model.vocabulary, baseline.vocabulary)
    ):
        return config
    names = " and ".join(entry.signature.name for entry in models)
    raise OptionError(
        f"{names} have different tokenizers, so their losses per token mean different things; "
        "compare them per character: pseudo-perplexity (--metric pseudo-perplexity) or whole words "
        "(--whole-word)"
    )


def _evaluate_together(models, texts, config, masks, done):
    vocabulary = models[0].vocabulary
    prepared = (prepare(text, vocabulary, config, masks) for text in texts)
    before = 0
    for number, window in enumerate(_windows(prepared, config)):
        yield from (item for item in _skipped(window) if item.id not in done)
        ready = [item for item in window if isinstance(item, Prepared)]
        for scored in score_window(models, ready, config, number, done):
            if isinstance(scored, float):
                yield Heartbeat(before + scored * len(window))
            else:
                yield _row(ready[scored.index], scored, vocabulary)
        before += len(window)


def _evaluate_side_by_side(models, texts, config, masks, done):
    """Two tokenizers: a row of each, where both hide the same characters."""
    own = [masks, SeededMasks(config, models[1].vocabulary)]

    def pairs():
        for text in texts:
            both = [
                prepare(text, model.vocabulary, config, source)
                for model, source in zip(models, own, strict=True)
            ]
            skipped = _skipped(both)
            if skipped:
                yield skipped[0]
            elif config.scheme.covers_same(*both):
                yield tuple(both)
            else:
                yield SkippedText(text.id, NOT_COMPARABLE)

    before = 0
    for number, window in enumerate(_windows(pairs(), config)):
        yield from (item for item in _skipped(window) if item.id not in done)
        ready = [item for item in window if not isinstance(item, SkippedText)]
        rows: dict[int, EvaluatedText] = {}
        # The baseline's half of the window first: its rows wait for those of the model.
        for half in (1, 0):
            model = models[half]
            texts_of = [pair[half] for pair in ready]
            for scored in score_window([model], texts_of, config, number, done):
                if isinstance(scored, float):
                    yield Heartbeat(before + (1 - half + scored) / 2 * len(window))
                    continue
                index = scored.index
                row = _row(texts_of[index], scored, model.vocabulary)
                if half:
                    rows[index] = row
                else:
                    yield replace(row, other=rows.pop(index))
        before += len(window)


def _skipped(window) -> list[SkippedText]:
    return [item for item in window if isinstance(item, SkippedText)]


def _windows(items, config: EvaluationConfig):
    def size_of(item) -> int:
        if isinstance(item, SkippedText):
            return 0
        parts = item if isinstance(item, tuple) else (item,)
        return sum(part.hidden.view_count * len(part.hidden.ids) for part in parts)

    return windows(
        items,
        size_of,
        max_size=_WINDOW_BATCHES * config.batch_tokens,
        max_items=_WINDOW_TEXTS,
    )


def _row(
    text: Prepared,
    scored: ScoredText,
    vocabulary: Vocabulary,
) -> EvaluatedText:
    scores = [
        replace(entry, top_tokens=tuple(vocabulary.token(int(index)) for index in entry.top_ids))
        for entry in scored.models
    ]
    return EvaluatedText(
        id=text.id,
        text=text.text,
        characters=text.characters,
        truncated=text.truncated,
        left_out=text.left_out,
        ids=text.hidden.ids,
        cols=text.hidden.cols,
        tokens=tuple(vocabulary.token(int(index)) for index in text.hidden.true_ids),
        kinds=text.hidden.kinds,
        shown_ids=text.shown_ids,
        parts=text.parts,
        spans=text.spans,
        scores=scores[0],
        baseline=scores[1] if len(scores) > 1 else None,
        difference=scored.difference,
    )
