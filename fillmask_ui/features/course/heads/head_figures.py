"""Figures of the chapter on heads: a class, a relation of two sentences, tags, and F1."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fillmask_ui.features.course.heads import entity_spans, frozen_states, labeled_texts
from fillmask_ui.features.course.heads.labeled_texts import LabeledText, check_sentence
from fillmask_ui.features.course.heads.linear_head import (
    STEPS,
    LinearHead,
    fit_head,
    held_out_classes,
)
from fillmask_ui.features.course.lesson_figure import figure
from fillmask_ui.intervals import share_interval
from fillmask_ui.ui.figure import FigureInputs, around, control
from fillmask_ui.ui.job import Report

_TEXTS = labeled_texts.labeled_texts()
FEWEST, MOST = 4, len(_TEXTS.learn)  # training sentences of the curve of F1
_SELECT = re.compile(r"tag_(\d{1,2})_(\d{1,2})")  # a sentence and a word, from 0
_row, _columns = partial(around, "box", "fm-controls"), partial(around, "box", "fm-columns fm-even")
_stack = partial(around, "box", "fm-stack")
_VECTORS = {"first": "[CLS]", "mean": "mean of the tokens"}
_READS = control("choice", "reads", "The head reads", _VECTORS, "first")
_LEARN_FROM = {"all": f"our {len(_TEXTS.sentiment)} sentences and yours", "yours": "yours"}


@dataclass(frozen=True, eq=False)
class _ClassFit:
    head: LinearHead
    held_out: list[list[int]] | None  # examples [C][C], by true and predicted class


def _states(
    request: FigureInputs, texts: Sequence[LabeledText], _report: Report | None = None
) -> np.ndarray:
    return frozen_states.text_states(request.model, texts, mean=request["reads"] == "mean")


def _fit_classes(
    request: FigureInputs,
    example_sets: Sequence[tuple[LabeledText, ...]],
    classes: int,
    *,
    together: int = 1,
    steps: int = STEPS,
) -> _ClassFit:
    """A head for sets of examples, each read once; so many neighbours are held out together."""
    reads, sets = request["reads"], [examples for examples in example_sets if examples]
    states = [
        request.slowly(("states", examples, reads), partial(_states, request, examples))
        for examples in sets
    ]

    def fit(_: Report) -> _ClassFit:
        vectors, predicted = np.concatenate(states), None
        labels = np.array([example.label for examples in sets for example in examples])
        if steps == STEPS:
            groups = np.arange(len(labels)) // together
            predicted = held_out_classes(vectors, labels, groups, classes)
        head = fit_head(vectors, labels, classes, steps)
        if predicted is None:
            return _ClassFit(head, None)
        table = np.zeros((classes, classes), np.int64)
        np.add.at(table, (labels, predicted), 1)
        return _ClassFit(head, table.tolist())

    return request.slowly(("class head", *sets, reads, steps), fit)


def _classes(
    request: FigureInputs, head: LinearHead, names: Sequence[str], new: LabeledText
) -> dict[str, float]:
    """The probabilities of the classes of a new text."""
    return dict(zip(names, head.probabilities(_states(request, [new]))[0].tolist(), strict=True))


def _skill(fit: _ClassFit) -> dict[str, Any]:
    """How many examples were right while they were held out."""
    if fit.held_out is None:
        return {"held_out": None}
    right, examples = int(np.trace(fit.held_out)), int(np.sum(fit.held_out))
    interval = share_interval(right, examples)
    return {"held_out": fit.held_out, "right": right, "examples": examples, "interval": interval}


@figure(
    "sentiment",
    "A class for a sentence",
    _row(
        _READS,
        control("choice", "examples", "Learn from", _LEARN_FROM, "all"),
        control("slider", "steps", "Gradient steps", 0, STEPS, 5, STEPS),
    ),
    _row(
        control("text", "sentence", "A new sentence", "The music was wonderful."),
        around(
            "fold",
            "Your own training sentences",
            control("text", "added", "Sentences", "", 4, "one per line, beginning with + or −"),
        ),
    ),
)
def _show_sentiment(request: FigureInputs) -> Any:
    ours = _TEXTS.sentiment if request["examples"] != "yours" else ()
    added, steps = labeled_texts.read_added(request["added"]), request["steps"]
    labeled_texts.check_classes((*ours, *added))
    new, names = LabeledText(check_sentence(request["sentence"]), 0), labeled_texts.SENTIMENTS
    final = _fit_classes(request, (ours, added), len(names))
    chosen = _fit_classes(request, (ours, added), len(names), steps=steps)
    classes = _classes(request, chosen.head, names, new)
    learned = {"losses": final.head.losses, "steps": steps, "learned": len(ours) + len(added)}
    return {"classes": classes, **learned, **_skill(final)}


@figure(
    "entailment",
    "A relation of two sentences",
    _row(_READS),
    _row(
        control("text", "first", "First sentence", "A woman is playing the piano."),
        control("text", "second", "Second sentence", "A woman is making music."),
    ),
)
def _show_entailment(request: FigureInputs) -> Any:
    first, second = (check_sentence(request[name]) for name in ("first", "second"))
    names = labeled_texts.RELATIONS
    # Pairs with the same first sentence are neighbours.
    fit = _fit_classes(request, (_TEXTS.pairs,), len(names), together=len(names))
    classes = _classes(request, fit.head, names, LabeledText(first, 0, second))
    return {"classes": classes, "loss": fit.head.losses[-1], **_skill(fit)}


# ---- Tags

_Edits = Mapping[int, Mapping[int, str]]  # a training sentence -> a word -> another tag


@dataclass(frozen=True, eq=False)
class _TagFit:
    head: LinearHead
    scores: entity_spans.SpanScores
    predicted: tuple[tuple[str, ...], ...]  # tags of the words of each test sentence


def _tagged(request: FigureInputs) -> tuple[frozen_states.WordTokens, ...]:
    """The MOST sentences to learn from, then those to test on."""
    sentences = _TEXTS.learn + _TEXTS.test
    return request.slowly(
        ("word states",), lambda _: frozen_states.word_tokens(request.model, sentences)
    )


def _edits(request: FigureInputs) -> _Edits:
    """Tags that the reader changed: the control `edits` holds older ones, selects the latest."""
    if request.pressed("restore"):
        return {}
    entries = (entry.partition("=") for entry in request["edits"].split())
    typed = {f"tag_{name}": tag for name, _, tag in entries} | dict(request.values)
    edits: dict[int, dict[int, str]] = {}
    for name, tag in typed.items():
        match = _SELECT.fullmatch(name)
        sentence, word = map(int, match.groups()) if match else (MOST, 0)
        tags = _TEXTS.learn[sentence].tags if sentence < MOST else ()
        if tag in labeled_texts.TAGS and word < len(tags) and tags[word] != tag:
            edits.setdefault(sentence, {})[word] = tag
    return edits


def _written(edits: _Edits) -> str:
    return " ".join(
        f"{sentence}_{word}={tag}" for sentence in edits for word, tag in edits[sentence].items()
    )


def _fit_tags(
    tagged: Sequence[frozen_states.WordTokens],
    edits: _Edits,
    count: int,
    _report: Report | None = None,
) -> _TagFit:
    """A head for the first sentences with changed tags, and what it does in the test."""
    learned = []
    for number, tokens in enumerate(tagged[:count]):
        tags = entity_spans.repaired(tokens.sentence.with_tags(edits.get(number, {})).tags)
        learned.append(replace(tokens, sentence=replace(tokens.sentence, tags=tags)))
    head, test = frozen_states.fit_tags(learned), tagged[MOST:]
    predicted = tuple(frozen_states.predict_tags(head, tokens).word_tags for tokens in test)
    scores = entity_spans.score_spans([tokens.sentence.tags for tokens in test], predicted)
    return _TagFit(head, scores, predicted)


@figure(
    "entity_tags",
    "A tag for every word",
    _columns(
        _stack(
            _row(
                control("slider", "number", "Training sentence", 1, MOST, 1, 1),
                control("button", "restore", "Restore all tags"),
            ),
            control("piece", "words"),
        ),
        _stack(
            control("text", "sentence", "A new sentence", "Mr. Smith flew from Vienna to Lisbon."),
            control("piece", "prediction"),
            control("piece", "effect"),
        ),
        # Not hidden: a link keeps what fields hold.
        around("fold", "Changed tags", control("text", "edits", "As text", hint="for the link")),
    ),
)
def _show_tags(request: FigureInputs) -> Any:
    edits, number = _edits(request), request["number"] - 1
    new = labeled_texts.read_tagged(check_sentence(request["sentence"]))
    tagged = _tagged(request)
    ours, yours = (
        request.slowly(("tag head", _written(changes)), partial(_fit_tags, tagged, changes, MOST))
        for changes in ({}, edits)
    )
    (tokens,) = frozen_states.word_tokens(request.model, [new])
    predicted = frozen_states.predict_tags(yours.head, tokens)
    tags = tagged[number].sentence.with_tags(edits.get(number, {})).tags
    values = {
        "number": number,
        "chosen": tagged[number],
        "tags": tags,
        "allowed": entity_spans.repaired(tags),
        "all_tags": labeled_texts.TAGS,
        "edits": sum(map(len, edits.values())),
        "ours": ours,
        "yours": yours,
        "tokens": tokens,
        "predicted": predicted,
        "spans": entity_spans.entity_spans(predicted.word_tags),
    }
    return values, {"edits": _written(edits)}


@figure(
    "span_scores",
    "Precision, recall and F1 over spans",
    control("slider", "count", "Training sentences", FEWEST, MOST, 4, MOST),
)
def _show_scores(request: FigureInputs) -> Any:
    tagged, counts = _tagged(request), range(FEWEST, MOST + 1, 4)

    def measure(report: Callable[[int, int], None]) -> dict[int, _TagFit]:
        fits: dict[int, _TagFit] = {}
        for count in counts:
            report(len(fits), len(counts))
            fits[count] = _fit_tags(tagged, {}, count)
        return fits

    fits = request.counted(("heads by sentences",), "heads", measure)
    count = min(counts, key=lambda number: abs(number - request["count"]))
    find = entity_spans.entity_spans
    spans = [
        (sentence.spelled, find(sentence.tags), find(tags))
        for sentence, tags in zip(_TEXTS.test, fits[count].predicted, strict=True)
    ]
    scores = {number: fit.scores for number, fit in fits.items()}
    return {"scores": scores, "count": count, "spans": spans}
