"""Guess first: a class's guesses for a hidden word beside the model's.

The page calls `guesses` to parse what was typed, then `guess` to compare it with the model.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from fillmask_ui.comparing import ContrastedWord
from fillmask_ui.comparing.contrast import WordScore
from fillmask_ui.errors import OptionError
from fillmask_ui.filling import MAX_TOP_K, fill, score_candidates, unscorable
from fillmask_ui.filling.guesses import Guesses, key, parse_guesses
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Candidate, ScoredWord, finite
from fillmask_ui.show.bars import Axis, BarRow, Cell
from fillmask_ui.show.numbers import general, loss_number, loss_text, percent
from fillmask_ui.show.render import render
from fillmask_ui.ui.explore.explore_state import Asked, Json, Question
from fillmask_ui.ui.session import Session, check_text

MAX_CHARACTERS = 100  # of the true word


def guesses(_: Session, question: Question) -> Json:
    """The typed `guesses` as a list of words with amounts, and as chips."""
    found = _typed(question)
    total, counted = sum(own.amount for own in found.guesses), ""
    if total and found.percent:
        counted = f"{general(max(0.0, 100.0 - total))}% of the class made no guess."
    elif total:
        counted = "1 guess" if total == 1 else f"{general(total)} guesses"
    html = render("explore/guess_chips.html", **vars(found))
    told = {"count": counted, "people": found.people, "no_guess": found.no_guess}
    return {"error": "", **asdict(found), **told, "html": html}


def guess(session: Session, question: Question) -> Json:
    """The comparison as HTML."""
    asked, mask = Asked.read(session, question), question.selected
    truth = (asked.draft.word(mask) or question.truth.strip())[:MAX_CHARACTERS]
    found = compare(session, asked.model, asked.text, _typed(question), truth, mask=mask)
    return {"error": "", "html": comparison_html(found, question.unit, curve=True)}


def _typed(question: Question) -> Guesses:
    check_text(question.guesses)
    return parse_guesses(question.guesses)


# Words of the model listed although nobody guessed them.
MODEL_WORDS = 5


@dataclass(frozen=True)
class Losses:
    """The losses of both for the true word, in nats."""

    word: str
    people: float  # infinite if nobody guessed it
    one_more: float  # of the class with one more guess for it
    model: float | None  # None if it cannot spell the word


@dataclass(frozen=True)
class Comparison:
    """The class beside the model."""

    # The true word, then guesses by share, then the model's best, then a blank word for the rest.
    # The first of each two numbers is the class's.
    words: tuple[ContrastedWord, ...]
    parts: Mapping[str, int]  # sub-tokens of words that were scored
    losses: Losses | None  # None if the true word is unknown
    left_out: tuple[str, ...]  # words that the model cannot spell
    said: Guesses  # of the class


def compare(
    session: Session,
    model: MaskedLM,
    text: str,
    said: Guesses,
    truth: str,
    *,
    mask: int = 0,
    model_words: int = MODEL_WORDS,
) -> Comparison:
    """The class beside the model at one mask of a text, the first if `mask` is out of range.

    `truth` is the hidden word, blank if unknown; `model_words` are listed although nobody guessed
    them. A `FillmaskError` if there are no guesses, or the model cannot answer.
    """
    if not said.guesses:
        raise OptionError("nobody has guessed yet: type a word, or several as in: mat 12, floor 5")
    best = session.ask(model, fill, text, top_k=MAX_TOP_K, candidates=(), joint=0)
    mask = mask if 0 <= mask < len(best.masks) else 0
    candidates = best.masks[mask].candidates
    words = _words(said, truth, candidates)
    left_out = unscorable(model, text, list(words.values()))
    spelled = [word for word in words.values() if word not in left_out]
    scored: dict[str, ScoredWord] = {}
    if spelled:
        all_scored = session.ask(model, score_candidates, text, words=tuple(spelled))
        scored = {own.word: own for own in all_scored[mask]}
    rows = []
    for same, word in words.items():
        own = scored.get(word)
        model_says = (
            WordScore(probability=own.probability, nll_nats=own.nll_nats) if own else WordScore()
        )
        share, is_true = said.share(word), bool(truth) and same == key(truth)
        class_says = WordScore(probability=share, nll_nats=said.nll_nats(word), listed=bool(share))
        rows.append(ContrastedWord.of(word, class_says, model_says, asked=is_true))
    # Two spellings of one token count once.
    known = {
        one.parts[0].token_id: one.probability for one in scored.values() if len(one.parts) == 1
    }
    others = [c for c in candidates if c.token_id not in known][:model_words]
    for c in others:
        model_says = WordScore(c.token, c.token_id, c.probability, c.nll_nats, c.rank, listed=True)
        rows.append(
            ContrastedWord.of(c.word.strip() or c.token, WordScore(probability=0.0), model_says)
        )
    rest = 1.0 - math.fsum([*known.values(), *(c.probability for c in others)])
    left_over = WordScore(probability=said.no_guess), WordScore(probability=max(0.0, rest))
    rows.append(ContrastedWord.of("", *left_over))
    parts = {word: len(own.parts) for word, own in scored.items()}
    losses = None
    if truth:
        own_nats = scored[truth].nll_nats if truth in scored else None
        losses = Losses(truth, said.nll_nats(truth), said.nll_with_one_more(truth), own_nats)
    return Comparison(tuple(rows), parts, losses, tuple(left_out), said)


def _words(said: Guesses, truth: str, candidates: Sequence[Candidate]) -> dict[str, str]:
    """The true word, then the guesses by share, under their keys.

    Spelled as in the model's candidates where they match, as the model may be case-sensitive.
    """
    written = {key(c.word): c.word.strip() for c in reversed(candidates)}
    words = {key(truth): truth} if truth else {}
    for own in sorted(said.guesses, key=lambda guess: -guess.amount):
        words.setdefault(key(own.word), written.get(key(own.word), own.word))
    return words


def verdict(losses: Losses, unit: str) -> str:
    """Whose loss was lower, in one sentence."""
    if losses.model is None:
        return f"The model cannot spell “{losses.word}”, so only the class has a loss."
    people, model = loss_text(losses.people, unit), loss_text(losses.model, unit)
    if people == model:
        return f"Equally surprised: {people} each."
    who = "class" if losses.people < losses.model else "model"
    low, high = sorted([losses.people, losses.model])
    return f"Less surprised: the {who} ({loss_text(low, unit)} against {loss_number(high, unit)})."


def comparison_html(found: Comparison, unit: str, *, curve: bool = False) -> str:
    """The verdict, paired bars, both losses; with `curve` the model's loss as a point on it."""
    axis, losses = Axis.shares(), found.losses
    points: list[Json] = []
    if curve and losses and losses.model is not None:
        share = math.exp(-losses.model)
        texts = percent(share), loss_text(losses.model, unit)
        points = [{"mask": 0, "word": losses.word, "hidden": True, "probability": share}]
        points[0] |= {"nll_nats": losses.model, "texts": texts}
    return render(
        "explore/guess_result.html",
        rows=[_row(own, found.parts, axis) for own in found.words],
        axis=axis,
        losses=losses,
        said=found.said,
        left_out=found.left_out,
        unit=unit,
        infinite=math.inf,
        verdict=verdict(losses, unit) if losses else "",
        several=any(count > 1 for count in found.parts.values()),
        point=json.dumps(finite(points)) if points else None,
    )


def _row(own: ContrastedWord, parts: Mapping[str, int], axis: Axis) -> BarRow:
    marks = axis.pair(own.probabilities, ("candidate", "reference"))
    if not own.word:
        return BarRow(
            "no guess, all other words" if own.reference_probability else "all other words", marks
        )
    count = parts.get(own.word, 1)
    cells = (Cell(str(count), quiet=count == 1),) if max(parts.values(), default=1) > 1 else ()
    return BarRow(own.word, marks, cells, truth=own.asked)
