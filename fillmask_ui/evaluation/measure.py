"""evaluate(): a generator of measured texts.

It yields, the caller decides: store the row, draw the bar, stop. What a text yields depends on
the texts before it only through the batch that it shares, and batches are formed alike whether or
not some texts are already done: a resumed run repeats the numbers to the last digit.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from fillmask_ui.batching import windows
from fillmask_ui.errors import OptionError
from fillmask_ui.evaluation.batches import score_window
from fillmask_ui.evaluation.config import EvaluationConfig
from fillmask_ui.evaluation.prepare import NOT_COMPARABLE, Masks, Prepared, SeededMasks, prepare
from fillmask_ui.evaluation.rows import EvaluatedText
from fillmask_ui.protocol import MaskedLM, Vocabulary
from fillmask_ui.records import Example, SkippedText

# A window is so many batches of work, or so many texts.
_WINDOW_BATCHES = 64
_WINDOW_TEXTS = 512


@dataclass(frozen=True)
class Heartbeat:
    """A sign of life between rows."""

    texts: float  # through so far, skipped and done ones too; those under way by share of the work


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
            difference of the logits, else its own row, where both hide the same text.
        masks: where hidden tokens come from; needed for the mask stream `collator`.
        done: ids that a stopped run already has; they are not measured again.
        heartbeat: also yield a `Heartbeat` after each batch; a text may take many.

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
    lanes = [_Lane([model], masks or SeededMasks(config, model.vocabulary))]
    if baseline is not None and same_tokenizer(model.vocabulary, baseline.vocabulary):
        lanes[0].models.append(baseline)
    elif baseline is not None:
        lanes.append(_Lane([baseline], SeededMasks(config, baseline.vocabulary)))
    texts = (
        text if isinstance(text, Example) else Example(index, text)
        for index, text in enumerate(examples)
    )
    for row in _measure(lanes, texts, config, frozenset(done)):
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


def _measure(
    lanes: Sequence[_Lane], texts: Iterable[Example], config: EvaluationConfig, done: frozenset[int]
) -> Iterator[EvaluatedText | SkippedText | Heartbeat]:
    """Window by window; of two lanes each text has a row that carries the other lane's."""

    def size_of(item: tuple[Prepared, ...] | SkippedText) -> int:
        if isinstance(item, SkippedText):
            return 0
        return sum(part.hidden.view_count * len(part.hidden.ids) for part in item)

    cut = windows(
        _prepare_all(lanes, texts, config),
        size_of,
        max_size=_WINDOW_BATCHES * config.batch_tokens,
        max_items=_WINDOW_TEXTS,
    )
    before = 0
    for number, window in enumerate(cut):
        ready = []
        for item in window:
            if not isinstance(item, SkippedText):
                ready.append(item)
            elif item.id not in done:
                yield item
        others: dict[int, EvaluatedText] = {}
        # The second lane first: its rows wait for those of the model.
        for turn, place in enumerate(reversed(range(len(lanes)))):
            own = [item[place] for item in ready]
            for row in score_window(lanes[place].models, own, config, number, done):
                if isinstance(row, float):
                    yield Heartbeat(before + (turn + row) / len(lanes) * len(window))
                elif place:
                    others[row.id] = row
                else:
                    yield replace(row, other=others.pop(row.id, None))
        before += len(window)


def _prepare_all(
    lanes: Sequence[_Lane], texts: Iterable[Example], config: EvaluationConfig
) -> Iterator[tuple[Prepared, ...] | SkippedText]:
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


# Case, accents, apostrophes, numbers, other scripts, emoji, blanks: where tokenizers with one
# vocabulary still differ.
_PROBES = (
    "The quick brown fox jumps over the lazy dog.",
    "Ça coûte 1,234.56 € — n'est-ce pas? Über naïve Ångström",
    "don't WON'T   e.g. foo_bar  x=3\ttab\nline",
    "日本語のテキスト 한국어 текст हिन्दी نص",
    "souvenirs unhappiness antidisestablishmentarianism 🎉👩‍🔬",
)


def same_tokenizer(first: Vocabulary, second: Vocabulary) -> bool:
    """Equal strings for all ids, equal special tokens, and equal tokens for a few hard texts."""
    if first is second:
        return True
    ids = ("size", "mask_id", "pad_id", "special_ids")
    return (
        all(getattr(first, name) == getattr(second, name) for name in ids)
        and all(first.encode(probe).ids == second.encode(probe).ids for probe in _PROBES)
        and all(first.token(index) == second.token(index) for index in range(first.size))
    )
