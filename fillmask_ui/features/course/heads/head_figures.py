"""Figures of the chapter on heads: a class, a relation of two sentences, tags, and F1."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fillmask_ui.features.course.heads import frozen_states
from fillmask_ui.features.course.heads.entity_spans import (
    SpanScores,
    entity_spans,
    repaired,
    score_spans,
)
from fillmask_ui.features.course.heads.labeled_texts import (
    RELATIONS,
    SENTIMENTS,
    TAGS,
    LabeledText,
    check_classes,
    check_sentence,
    labeled_texts,
    read_added,
    read_tagged,
)
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

FEWEST, MOST = 4, len(labeled_texts().learn)  # training sentences of the curve of F1
_SELECT = re.compile(r"tag_(\d{1,2})_(\d{1,2})")  # a sentence and a word, from 0
_row, _columns = partial(around, "box", "fm-controls"), partial(around, "box", "fm-columns fm-even")
_READS = control(
    "choice", "reads", "The head reads", {"first": "[CLS]", "mean": "mean of the tokens"}, "first"
)
_LEARN_FROM = {"all": f"our {len(labeled_texts().sentiment)} sentences and yours", "yours": "yours"}


@dataclass(frozen=True, eq=False)
class _ClassFit:
    head: LinearHead
    held_out: list[list[int]] | None  # examples [C][C], by true and predicted class


def _states(
    request: FigureInputs, texts: Sequence[LabeledText], _report: Report | None = None
) -> np.ndarray:
    """The vectors that the control `reads` names, float32 [N, H]."""
    states = frozen_states.text_states(request.model, texts)
    return states.mean if request["reads"] == "mean" else states.first


def _fit_classes(
    request: FigureInputs,
    example_sets: Sequence[tuple[LabeledText, ...]],
    groups: Sequence[int],
    classes: int,
    steps: int = STEPS,
) -> _ClassFit:
    """A head for sets of examples, each read once; a group is held out together."""
    reads, sets = request["reads"], [examples for examples in example_sets if examples]
    states = [
        request.slowly(("states", examples, reads), partial(_states, request, examples))
        for examples in sets
    ]

    def fit(_: Report) -> _ClassFit:
        vectors = np.concatenate(states)
        labels = np.array([example.label for examples in sets for example in examples])
        head, predicted = fit_head(vectors, labels, classes, steps), None
        if steps == STEPS:
            predicted = held_out_classes(vectors, labels, np.array(groups), classes)
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
    _row(_READS, control("choice", "examples", "Learn from", _LEARN_FROM, "all")),
    _row(
        control("slider", "steps", "Gradient steps", 0, STEPS, 5, STEPS),
        control("text", "sentence", "A new sentence", "The music was wonderful."),
    ),
    _row(
        around(
            "fold",
            "Your own training sentences",
            control("text", "added", "Sentences", "", 4, "one per line, beginning with + or −"),
        )
    ),
)
def _show_sentiment(request: FigureInputs) -> Any:
    ours = labeled_texts().sentiment if request["examples"] != "yours" else ()
    added, steps = read_added(request["added"]), request["steps"]
    check_classes((*ours, *added))
    new = LabeledText(check_sentence(request["sentence"]), 0)
    counts, groups = [0, 0], []  # so that a fifth has sentences of each class
    for example in (*ours, *added):
        groups.append(counts[example.label])
        counts[example.label] += 1
    final = _fit_classes(request, (ours, added), groups, len(SENTIMENTS))
    chosen = _fit_classes(request, (ours, added), groups, len(SENTIMENTS), steps)
    return {
        "classes": _classes(request, chosen.head, SENTIMENTS, new),
        "losses": final.head.losses,
        "steps": steps,
        "learned": len(groups),
        **_skill(final),
    }


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
    pairs, names = labeled_texts().pairs, ("first", "second")
    first, second = (check_sentence(request[name]) for name in names)
    groups = [number // len(RELATIONS) for number in range(len(pairs))]  # by first sentence
    fit = _fit_classes(request, (pairs,), groups, len(RELATIONS))
    classes = _classes(request, fit.head, RELATIONS, LabeledText(first, 0, second))
    return {"classes": classes, "loss": fit.head.losses[-1], **_skill(fit)}


# ---- Tags

_Edits = Mapping[tuple[int, int], str]  # a training sentence and a word, from 0 -> another tag


@dataclass(frozen=True, eq=False)
class _TagFit:
    head: LinearHead
    scores: SpanScores
    predicted: tuple[tuple[str, ...], ...]  # tags of the words of each test sentence


def _tagged(request: FigureInputs) -> tuple[frozen_states.WordTokens, ...]:
    """The MOST sentences to learn from, then those to test on."""
    sentences = labeled_texts().learn + labeled_texts().test
    return request.slowly(
        ("word states",), lambda _: frozen_states.word_tokens(request.model, sentences)
    )


def _edits(request: FigureInputs) -> _Edits:
    """Tags that the reader changed: the control `edits` holds older ones, selects the latest."""
    if request.pressed("restore"):
        return {}
    typed = {}
    for entry in request["edits"].split():
        name, _, tag = entry.partition("=")
        typed[f"tag_{name}"] = tag
    edits = {}
    for name, tag in (typed | dict(request.values)).items():
        match = _SELECT.fullmatch(name)
        sentence, word = map(int, match.groups()) if match else (MOST, 0)
        tags = labeled_texts().learn[sentence].tags if sentence < MOST else ()
        if tag in TAGS and word < len(tags) and tags[word] != tag:
            edits[sentence, word] = tag
    return edits


def _changes(edits: _Edits, number: int) -> dict[int, str]:
    return {word: tag for (sentence, word), tag in edits.items() if sentence == number}


def _fit_tags(
    tagged: Sequence[frozen_states.WordTokens],
    edits: _Edits,
    count: int,
    _report: Report | None = None,
) -> _TagFit:
    """A head for the first sentences with changed tags, and what it does in the test."""
    learned = []
    for number, tokens in enumerate(tagged[:count]):
        sentence = tokens.sentence.with_tags(_changes(edits, number))
        learned.append(replace(tokens, sentence=replace(sentence, tags=repaired(sentence.tags))))
    head, test = frozen_states.fit_tags(learned), tagged[MOST:]
    predicted = tuple(frozen_states.predict_tags(head, tokens).word_tags for tokens in test)
    scores = score_spans([tokens.sentence.tags for tokens in test], predicted)
    return _TagFit(head, scores, predicted)


@figure(
    "entity_tags",
    "A tag for every word",
    _columns(
        around(
            "box",
            "fm-stack",
            _row(
                control("slider", "number", "Training sentence", 1, MOST, 1, 1),
                control("button", "restore", "Restore all tags"),
            ),
            control("piece", "words"),
        ),
        around(
            "box",
            "fm-stack",
            control("text", "sentence", "A new sentence", "Mr. Smith flew from Vienna to Lisbon."),
            control("piece", "prediction"),
            control("piece", "effect"),
        ),
        control("hidden", "edits"),
    ),
)
def _show_tags(request: FigureInputs) -> Any:
    edits, tagged, number = _edits(request), _tagged(request), request["number"] - 1
    new = read_tagged(check_sentence(request["sentence"]))
    ours, yours = (
        request.slowly(
            ("tag head", *sorted(changes.items())), partial(_fit_tags, tagged, changes, MOST)
        )
        for changes in ({}, edits)
    )
    (tokens,) = frozen_states.word_tokens(request.model, [new])
    predicted = frozen_states.predict_tags(yours.head, tokens)
    tags = tagged[number].sentence.with_tags(_changes(edits, number)).tags
    values = {
        "number": number,
        "chosen": tagged[number],
        "tags": tags,
        "allowed": repaired(tags),
        "all_tags": TAGS,
        "edits": len(edits),
        "ours": ours,
        "yours": yours,
        "tokens": tokens,
        "predicted": predicted,
        "spans": entity_spans(predicted.word_tags),
    }
    written = (f"{sentence}_{word}={tag}" for (sentence, word), tag in edits.items())
    return values, {"edits": " ".join(written)}


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
    sentences = [tokens.sentence for tokens in tagged[MOST:]]
    spans = [
        (sentence.spelled, entity_spans(sentence.tags), entity_spans(tags))
        for sentence, tags in zip(sentences, fits[count].predicted, strict=True)
    ]
    scores = {number: fit.scores for number, fit in fits.items()}
    return {"scores": scores, "count": count, "spans": spans}
