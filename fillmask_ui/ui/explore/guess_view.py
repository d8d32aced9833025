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
from fillmask_ui.show.numbers import general, loss_number, loss_text
from fillmask_ui.show.render import render
from fillmask_ui.ui.explore.explore_state import Json, LoadedQuestion, Question
from fillmask_ui.ui.session import Session, check_text

MAX_CHARACTERS = 100  # of the true word


def guesses(_: Session, question: Question) -> Json:
    """The typed `guesses` as a list of words with amounts, and as chips."""
    typed = _typed(question)
    total, counted = sum(guess.amount for guess in typed.guesses), ""
    if total and typed.percent:
        counted = f"{general(max(0.0, 100.0 - total))}% of the class made no guess."
    elif total:
        counted = "1 guess" if total == 1 else f"{general(total)} guesses"
    html = render("explore/guess_chips.html", **vars(typed))
    counts = {"count": counted, "people": typed.people, "no_guess": typed.no_guess}
    return {"error": "", **asdict(typed), **counts, "html": html}


def guess(session: Session, question: Question) -> Json:
    """The comparison as HTML."""
    loaded, mask = LoadedQuestion.read(session, question), question.selected
    truth = (loaded.draft.word(mask) or question.truth.strip())[:MAX_CHARACTERS]
    comparison = compare(session, loaded.model, loaded.text, _typed(question), truth, mask=mask)
    return {"error": "", "html": comparison_html(comparison, question.unit, curve=True)}


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
class GuessComparison:
    """The class beside the model."""

    # The true word, then guesses by share, then the model's best, then a blank word for the rest.
    # The first of each two numbers is the class's.
    words: tuple[ContrastedWord, ...]
    parts: Mapping[str, int]  # sub-tokens of words that were scored
    losses: Losses | None  # None if the true word is unknown
    left_out: tuple[str, ...]  # words that the model cannot spell
    class_guesses: Guesses


def compare(
    session: Session,
    model: MaskedLM,
    text: str,
    class_guesses: Guesses,
    truth: str,
    *,
    mask: int = 0,
    model_words: int = MODEL_WORDS,
) -> GuessComparison:
    """The class beside the model at one mask of a text, the first if `mask` is out of range.

    `truth` is the hidden word, blank if unknown; `model_words` are listed although nobody guessed
    them. A `FillmaskError` if there are no guesses, or the model cannot answer.
    """
    if not class_guesses.guesses:
        raise OptionError("nobody has guessed yet: type a word, or several as in: mat 12, floor 5")
    filling = session.ask(model, fill, text, top_k=MAX_TOP_K, candidates=(), joint=0)
    mask = mask if 0 <= mask < len(filling.masks) else 0
    candidates = filling.masks[mask].candidates
    words = _words(class_guesses, truth, candidates)
    left_out = unscorable(model, text, list(words.values()))
    spelled = tuple(word for word in words.values() if word not in left_out)
    scored: dict[str, ScoredWord] = {}
    if spelled:
        scored_masks = session.ask(model, score_candidates, text, candidates=spelled)
        scored = {score.word: score for score in scored_masks[mask]}
    rows = []
    for word_key, word in words.items():
        of_model = WordScore()
        if word in scored:
            score = scored[word]
            of_model = WordScore(probability=score.probability, nll_nats=score.nll_nats)
        share = class_guesses.share(word)
        of_class = WordScore(
            probability=share, nll_nats=class_guesses.nll_nats(word), listed=bool(share)
        )
        is_true = bool(truth) and word_key == key(truth)
        rows.append(ContrastedWord.of(word, of_class, of_model, asked=is_true))
    # Two spellings of one token count once.
    single_tokens = {
        score.parts[0].token_id: score.probability
        for score in scored.values()
        if len(score.parts) == 1
    }
    unguessed = [best for best in candidates if best.token_id not in single_tokens][:model_words]
    for best in unguessed:
        of_model = WordScore(
            best.token, best.token_id, best.probability, best.nll_nats, best.rank, listed=True
        )
        word = best.word.strip() or best.token
        rows.append(ContrastedWord.of(word, WordScore(probability=0.0), of_model))
    listed = [*single_tokens.values(), *(best.probability for best in unguessed)]
    no_guess = WordScore(probability=class_guesses.no_guess)
    all_other_words = WordScore(probability=max(0.0, 1.0 - math.fsum(listed)))
    rows.append(ContrastedWord.of("", no_guess, all_other_words))
    parts = {word: len(score.parts) for word, score in scored.items()}
    losses = None
    if truth:
        losses = Losses(
            truth,
            class_guesses.nll_nats(truth),
            class_guesses.nll_with_one_more(truth),
            scored[truth].nll_nats if truth in scored else None,
        )
    return GuessComparison(tuple(rows), parts, losses, tuple(left_out), class_guesses)


def _words(class_guesses: Guesses, truth: str, candidates: Sequence[Candidate]) -> dict[str, str]:
    """The true word, then the guesses by share, under their keys.

    Spelled as in the model's candidates where they match, as the model may be case-sensitive.
    """
    written = {key(c.word): c.word.strip() for c in reversed(candidates)}
    words = {key(truth): truth} if truth else {}
    for guessed in sorted(class_guesses.guesses, key=lambda guess: -guess.amount):
        word_key = key(guessed.word)
        words.setdefault(word_key, written.get(word_key, guessed.word))
    return words


def verdict(losses: Losses, unit: str) -> str:
    """Whose loss was lower, in one sentence."""
    if losses.model is None:
        return f"The model cannot spell “{losses.word}”, so only the class has a loss."
    people, model = loss_text(losses.people, unit), loss_text(losses.model, unit)
    if people == model:
        return f"A tie: both have a loss of {people}."
    who = "class" if losses.people < losses.model else "model"
    low, high = sorted([losses.people, losses.model])
    return f"The {who} wins: loss {loss_number(low, unit)} against {loss_text(high, unit)}."


def comparison_html(comparison: GuessComparison, unit: str, *, curve: bool = False) -> str:
    """The verdict, paired bars, both losses; with `curve` both as points on it."""
    axis, losses = Axis.shares(), comparison.losses
    points: list[Json] = []
    if curve and losses:
        for name, role, nll_nats in (
            ("model", "reference", losses.model),
            ("class", "candidate", losses.people),
        ):
            if nll_nats is not None and math.isfinite(nll_nats):
                point = {"word": name, "role": role, "nll_nats": nll_nats}
                points.append(point | {"probability": math.exp(-nll_nats)})
    return render(
        "explore/guess_result.html",
        rows=[_row(word, comparison.parts, axis) for word in comparison.words],
        axis=axis,
        losses=losses,
        class_guesses=comparison.class_guesses,
        left_out=comparison.left_out,
        unit=unit,
        infinite=math.inf,
        verdict=verdict(losses, unit) if losses else "",
        several=any(count > 1 for count in comparison.parts.values()),
        point=json.dumps(finite(points)) if points else None,
    )


def _row(word: ContrastedWord, parts: Mapping[str, int], axis: Axis) -> BarRow:
    marks = axis.pair(word.probabilities, ("candidate", "reference"))
    if not word.word:
        name = "no guess, all other words" if word.reference_probability else "all other words"
        return BarRow(name, marks)
    count = parts.get(word.word, 1)
    cells = (Cell(str(count), quiet=count == 1),) if max(parts.values(), default=1) > 1 else ()
    return BarRow(word.word, marks, cells, truth=word.asked)
