"""Ask about a token of a stored run again, with the input that the model read then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fillmask_ui import scoring
from fillmask_ui.comparing import Contrast
from fillmask_ui.comparing.contrast import WordIds, contrast
from fillmask_ui.errors import FillmaskError, ModelError
from fillmask_ui.evaluation.metrics.metric import Reading, replay
from fillmask_ui.filling import fill_at
from fillmask_ui.filling.candidates import Distribution
from fillmask_ui.filling.words import raw_logits_at
from fillmask_ui.masking import KINDS
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import MaskFilling
from fillmask_ui.runs.tokens import MeasuredToken, TokenPlace
from fillmask_ui.tokenizers import same_tokenizer

if TYPE_CHECKING:
    from fillmask_ui.models.model_choice import ModelChoice
    from fillmask_ui.ui.session import Session


# Batches round float32 in the seventh digit, and bfloat16 in the third.
_ROUNDING_NATS = 0.05


@dataclass(frozen=True, eq=False)
class Replayed:
    """A model's answer about a token, with the input and model of its run."""

    token: MeasuredToken
    model: MaskedLM
    reading: Reading  # what it read
    mask: MaskFilling  # what it says; figures that the run has stored are the run's
    changed: str  # a sentence where the model says something else by now; else blank


def replayed(
    session: Session,
    token: MeasuredToken,
    *,
    top_k: int,
    load: Callable[[ModelChoice], MaskedLM] | None = None,
) -> Replayed:
    """Ask the model of a run, loaded by `load` or `Session.model`, about one of its tokens again.

    A `FillmaskError` if the run does not name its model, or that is gone or replaced.
    """
    try:
        model = (load or session.model)(token.choice)
    except FillmaskError as error:
        measured = f"run {token.info.name} measured {token.signature['name']}"
        raise ModelError(f"{measured}, which cannot be had now: {error}") from error
    metric = token.info.config.metric
    reading = replay(token.row, metric, model.vocabulary, token.entry, token.scores)
    ids = tuple(reading.ids.tolist())
    mask = session.ask(model, fill_at, ids, reading.position, reading.true_id, top_k=top_k)
    loss, stored_loss = mask.scored[0].nll_nats, float(token.scores.nll_nats[token.entry])
    changed = ""
    if loss != stored_loss and not abs(loss - stored_loss) < _ROUNDING_NATS:
        changed = (
            f"The run has a loss of {stored_loss:.4f} nats; the model now gives {loss:.4f}. "
            "The model or its runtime has changed since. The figures are today's."
        )
    return Replayed(token, model, reading, mask, changed)


def link_of(place: TokenPlace) -> dict[str, str]:
    """The parameters of a link to a token of a run."""
    link = {
        "run": place.run,
        "run_b": place.other,
        "example": str(place.example),
        "token": str(place.position),
        "side": "B" if place.side else "",
    }
    return {name: value for name, value in link.items() if value}


@dataclass(frozen=True)
class ReadToken:
    """A token as the model read it."""

    position: int  # in the tokens of the text
    read_word: str  # what the model read
    token: str  # the same as the vocabulary writes it
    # `special`, `plain`; of those scored in this reading `mask`, `random` or `unchanged`; `apart`
    # was hidden in a reading of its own, `along` is a mask here that was scored in another,
    # `written` was filled by a step before
    state: str
    joined: bool  # whether it continues the word to its left
    number: int = 0  # of the hidden tokens, from 1; 0 for one that was not hidden
    true: str = ""  # the hidden word
    nll_nats: float = 0.0  # of the hidden word, in the run
    rank: int = 0  # of the hidden word, in the run
    guess: str = ""  # the model's best token, in the run
    guess_probability: float = 0.0
    step: int = 0  # that wrote a token here, where the text was filled step by step; else 0
    written: str = ""  # the token that it wrote


def read_tokens(replayed: Replayed, around: int | None = None) -> list[ReadToken]:
    """The text as the model read it then, or so many tokens `around` the chosen one."""
    reading, row, scores = replayed.reading, replayed.token.row, replayed.token.scores
    vocabulary = replayed.model.vocabulary
    first = 0 if around is None else max(0, reading.position - around)
    last = len(reading.ids) if around is None else reading.position + around + 1
    entries = {int(col): entry for entry, col in enumerate(row.cols)}
    scored_entries = {int(entry) for entry in reading.scored}

    def word(token_id: int) -> str:
        return vocabulary.word(token_id).strip() or vocabulary.token(token_id)

    tokens = []
    for position, read in enumerate(reading.ids[first:last].tolist(), first):
        true_id, entry = int(row.ids[position]), entries.get(position)
        state = "special" if true_id in vocabulary.special_ids else "plain"
        joined = vocabulary.is_continuation(true_id)
        token = ReadToken(position, word(read), vocabulary.token(read), state, joined)
        if entry is not None:
            earlier = "written" if reading.filled else "apart"
            state = "along" if read == vocabulary.mask_id else earlier
            token = replace(
                token,
                state=KINDS[row.kinds[entry]] if entry in scored_entries else state,
                number=entry + 1,
                true=word(true_id),
                nll_nats=float(scores.nll_nats[entry]),
                rank=int(scores.ranks[entry]),
                guess=scores.top_tokens[entry],
                guess_probability=float(scores.top_probabilities[entry]),
            )
            if reading.filled:
                written = word(int(reading.filled.written_ids[entry]))
                token = replace(token, step=int(reading.filled.steps[entry]), written=written)
        tokens.append(token)
    return tokens


def reading_values(replayed: Replayed, around: int | None = None) -> dict[str, Any]:
    """Values for `ui/reading.html`: the tokens read, the chosen one, what was hidden."""
    tokens, row = read_tokens(replayed, around), replayed.token.row
    kinds = [KINDS[row.kinds[entry]] for entry in replayed.reading.scored]
    return {
        "tokens": tokens,
        "chosen": next(t for t in tokens if t.position == replayed.reading.position),
        "counts": {kind: kinds.count(kind) for kind in KINDS},
        "hidden": len(row.cols),
        "truncated": row.truncated,
    }


BY_NAME = (
    "the two models have different tokenizers, so the words that both list are paired by name, and "
    "their distributions have no KL or Jensen-Shannon divergence"
)


def compared_readings(session: Session, first: Replayed, second: Replayed) -> Contrast:
    """Both models at one token of a run, marked as asked about."""
    reference, candidate = _distribution(session, first), _distribution(session, second)
    vocabulary = first.model.vocabulary
    alike = same_tokenizer(vocabulary, second.model.vocabulary)
    words: dict[WordIds, str] = {}
    if alike:
        for token_id in (*_ids(reference), *_ids(candidate)):
            words[((token_id,), (token_id,))] = vocabulary.word(token_id)
    else:
        reference_names, candidate_names = _names(reference), _names(candidate)
        for word in (*reference_names, *candidate_names):
            words[(reference_names.get(word), candidate_names.get(word))] = word
    true = (first.reading.true_id,), (second.reading.true_id,)
    true_pairs = [pair for pair in words if pair[0] == true[0] or pair[1] == true[1]]
    comparison = contrast(reference, candidate, words, true_pairs, alike=alike)
    if reference.ids != candidate.ids:
        # Each model has filled the text step by step, and read an input of its own.
        return replace(comparison, kl_nats=None, js_nats=None)
    return comparison


def _distribution(session: Session, replayed: Replayed) -> Distribution:
    """What a model predicts now."""
    ids = tuple(replayed.reading.ids.tolist())
    position = replayed.reading.position
    logits = session.ask(replayed.model, raw_logits_at, (ids,), (position,))  # float32 [1, V]
    return Distribution(replayed.model, ids, replayed.mask, scoring.exponentials(logits))


def _ids(distribution: Distribution) -> list[int]:
    listed = [candidate.token_id for candidate in distribution.mask.candidates]
    return [*listed, distribution.mask.scored[0].parts[0].token_id]


def _names(distribution: Distribution) -> dict[str, tuple[int]]:
    word = distribution.model.vocabulary.word
    return {word(token_id): (token_id,) for token_id in reversed(_ids(distribution))}
