"""Guess first: a class's guesses for a hidden word beside the model's.

The page calls `guesses` to parse what was typed, then `guess` to compare it with the model.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fillmask_ui.comparing import ContrastedWord
from fillmask_ui.comparing.contrast import Said
from fillmask_ui.errors import OptionError
from fillmask_ui.filling import MAX_TOP_K, fill, score_candidates, unscorable
from fillmask_ui.filling.guesses import Guesses, key, parse_guesses
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Candidate, ScoredWord
from fillmask_ui.show.numbers import loss_number, loss_text, percent
from fillmask_ui.show.render import render
from fillmask_ui.ui.explore.charts import Axis, Cell, Row
from fillmask_ui.ui.explore.explore_state import Question
from fillmask_ui.ui.explore.prediction_view import LossPoint, current_draft, points_json
from fillmask_ui.ui.session import Session, check_text

MAX_CHARACTERS = 100  # of the true word


def guesses(_: Session, values: Mapping[str, Any]) -> dict[str, Any]:
    """The typed `guesses` as a list of words with amounts, or an error."""
    found = _typed(Question.read(values))
    return {"error": "", **asdict(found), "people": found.people, "no_guess": found.no_guess}


def guess(session: Session, values: Mapping[str, Any]) -> dict[str, Any]:
    """The comparison as HTML, or an error.

    `values` are those of a question, the typed `guesses` and, if the draft lacks the hidden word,
    `truth`, which may be blank.
    """
    question = Question.read(values)
    check_text(question.text)
    model, mask = session.model(question.model), question.selected
    draft = current_draft(question, model)
    truth = (draft.word(mask) or question.truth.strip())[:MAX_CHARACTERS]
    found = compare(session, model, draft.text, _typed(question), truth, mask=mask)
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
    said: Guesses  # of the class

    @property
    def imagined(self) -> str:
        """The guess that `one_more` adds."""
        return "1 %" if self.said.percent else "one more imaginary guess"

    def formula(self, unit: str) -> str:
        """The formula of `one_more` for a word that nobody guessed."""
        guesses = f"{self.said.people:,.10g}"
        share = f"1 / {guesses}" if self.said.percent else f"(0 + 1) / ({guesses} + 1)"
        return f"{'−log₂' if unit == 'bits' else '−ln'}({share})"


@dataclass(frozen=True)
class Comparison:
    """The class beside the model."""

    # The true word, then guesses by share, then the model's best, then a blank word for the rest.
    # The first of each two numbers is the class's.
    words: tuple[ContrastedWord, ...]
    parts: Mapping[str, int]  # sub-tokens of words that were scored
    losses: Losses | None  # None if the true word is unknown
    left_out: tuple[str, ...]  # words that the model cannot spell


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
    """The class beside the model at one mask.

    Args:
        session: of the page, for its limits.
        model: to compare with.
        text: with at least one mask.
        said: the class's guesses.
        truth: the hidden word; blank if unknown.
        mask: number from 0; the first mask if out of range.
        model_words: words of the model listed although nobody guessed them.

    Raises:
        FillmaskError: if there are no guesses, or the model cannot answer.
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
        scored = {
            w.word: w
            for w in session.ask(model, score_candidates, text, words=tuple(spelled))[mask]
        }
    rows = []
    for same, word in words.items():
        own = scored.get(word)
        model_says = Said(probability=own.probability, nll_nats=own.nll_nats) if own else Said()
        share, is_true = said.share(word), bool(truth) and same == key(truth)
        class_says = Said(probability=share, nll_nats=said.nll_nats(word), listed=bool(share))
        rows.append(ContrastedWord.of(word, class_says, model_says, asked=is_true))
    # Two spellings of one token count once.
    known = {
        one.parts[0].token_id: one.probability for one in scored.values() if len(one.parts) == 1
    }
    others = [c for c in candidates if c.token_id not in known][:model_words]
    for c in others:
        model_says = Said(c.token, c.token_id, c.probability, c.nll_nats, c.rank, listed=True)
        rows.append(ContrastedWord.of(c.word.strip() or c.token, Said(probability=0.0), model_says))
    rest = 1.0 - math.fsum([*known.values(), *(c.probability for c in others)])
    left_over = Said(probability=said.no_guess), Said(probability=max(0.0, rest))
    rows.append(ContrastedWord.of("", *left_over))
    parts = {word: len(own.parts) for word, own in scored.items()}
    losses = _losses(said, truth, scored)
    return Comparison(tuple(rows), parts, losses, tuple(left_out))


def _words(said: Guesses, truth: str, candidates: Sequence[Candidate]) -> dict[str, str]:
    """The true word, then the guesses by share, under their keys.

    Spelled as in the model's candidates where they match, as the model may be case-sensitive.
    """
    written = {key(c.word): c.word.strip() for c in reversed(candidates)}
    by_share = sorted(said.guesses, key=lambda guess: -guess.amount)
    words = {key(truth): truth} if truth else {}
    return words | {
        key(one.word): written.get(key(one.word), one.word)
        for one in by_share
        if not truth or key(one.word) != key(truth)
    }


def _losses(said: Guesses, truth: str, scored: Mapping[str, ScoredWord]) -> Losses | None:
    if not truth:
        return None
    model = scored[truth].nll_nats if truth in scored else None
    return Losses(truth, said.nll_nats(truth), said.nll_with_one_more(truth), model, said)


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
    axis = Axis.shares()
    losses = found.losses
    point: str | None = None
    if curve and losses and losses.model is not None:
        texts = percent(math.exp(-losses.model)), loss_text(losses.model, unit)
        own = LossPoint(0, losses.word, True, math.exp(-losses.model), losses.model, texts)
        point = json.dumps(points_json([own]))
    return render(
        "page/guess_result.html",
        rows=[_row(own, found.parts, axis) for own in found.words],
        axis=axis,
        losses=losses,
        left_out=found.left_out,
        unit=unit,
        infinite=math.inf,
        verdict=verdict(losses, unit) if losses else "",
        several=any(count > 1 for count in found.parts.values()),
        point=point,
    )


def _row(own: ContrastedWord, parts: Mapping[str, int], axis: Axis) -> Row:
    """The class above the model."""
    sides = zip(("candidate", "reference"), own.probabilities, strict=True)
    marks = [axis.mark(100 * p, side, percent(p)) for side, p in sides if p is not None]
    if not own.word:
        name = "no guess, all other words" if own.probability else "all other words"
        return Row(name, tuple(marks))
    count = parts.get(own.word, 1)
    cells = (Cell(str(count), quiet=count == 1),) if max(parts.values(), default=1) > 1 else ()
    return Row(own.word, tuple(marks), cells, truth=own.asked)
