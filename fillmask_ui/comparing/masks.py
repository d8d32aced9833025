"""Two models, A and B, at the masks of one text.

Definition. At each mask both models give P(token | text with all masks hidden), normalised over
their vocabulary, as `fill` does, to the last digit. Of the words that either lists, and of those
asked about, both probabilities and ranks are put side by side.

- Of one tokenizer (equal tokens for equal ids, equal ids for the text) a word is a token, and the
  distributions are compared as wholes, over the V tokens of both: KL(A || B) and Jensen-Shannon.
- Of two tokenizers masks are matched by their number from the left, and a word that one model lists
  is tokenized and scored under the other as `score_candidates` does, by the chain rule within the
  word. A token that is no word where it stands (an ending, `##ing`) has no such score. The
  distributions range over different things, so they have no divergence.

Source:
    KL(full precision || quantized) as the measure of what a quantization changes: Dutta et al.
    2024, Accuracy is Not All You Need, arXiv:2407.09141, which also counts flipped answers.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.comparing.records import (
    ComparedCandidate,
    ComparedJoint,
    Comparison,
    MaskComparison,
)
from fillmask_ui.comparing.tokenizers import same_tokenizer
from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.filling.joint import joint_nll_nats
from fillmask_ui.filling.predict import (
    MAX_TOP_K,
    Prompt,
    best_joint,
    check_choices,
    check_work,
    mask_fillings,
    read_prompt,
)
from fillmask_ui.filling.prompt import normalise_masks
from fillmask_ui.filling.words import TokenizedWord, split_into_tokens, tokens_read, word_scores
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Candidate, Encoding, Filling, JointFilling, MaskFilling, ScoredWord

BY_WORD = (
    "the models have different tokenizers, so they are compared word by word, and their "
    "distributions have no KL or Jensen-Shannon divergence"
)

Ids = tuple[int, ...]
# The same thing as tokens of A and as tokens of B; None where a model has none for it.
Pair = tuple[Ids | None, Ids | None]


def compare(
    model_a: MaskedLM,
    model_b: MaskedLM,
    text: str,
    *,
    top_k: int | None = 5,
    candidates: Sequence[str] = (),
    joint: int = 5,
    most_work: int | None = None,
) -> Comparison:
    """What two models put at each mask of a text, side by side.

    Args:
        model_a: from `load_model`.
        model_b: the same; any other, or the same once more.
        text: as for `fill`; each model sees its own mask token.
        top_k: tokens that each lists for each mask, 1 to 100; None for the whole vocabulary.
        candidates: words to score at each mask under both, of any number of sub-tokens.
        joint: joint fillings that each lists where there are 2 to 16 masks; 0 for none.
        most_work: tokens that both models together may be made to read for words of several
            sub-tokens; None for any number.

    Returns:
        Masks from left to right.

    Raises:
        FillmaskError: as of `fill`; the message names the model that cannot take the text.

    >>> from fillmask_ui import load_model
    >>> model = load_model("embedded")
    >>> mask = compare(model, model, "The opposite of hot is [MASK].").masks[0]
    >>> mask.kl_nats, mask.js_nats, mask.flipped
    (0.0, 0.0, False)
    """
    check_choices(top_k, candidates, joint)
    models = model_a, model_b
    prompts = _prompts(models, text, candidates, most_work)
    by_word = not (
        prompts[0].encoding.ids == prompts[1].encoding.ids
        and same_tokenizer(model_a.vocabulary, model_b.vocabulary)
    )
    if by_word and top_k is None:
        raise OptionError(
            f"{model_a.signature.name} and {model_b.signature.name} have different tokenizers, so "
            "each listed word is scored by itself and the whole vocabulary would take hours: give "
            f"a top-k from 1 to {MAX_TOP_K}"
        )
    masks: list[MaskComparison] = []
    found: tuple[list[MaskFilling], list[MaskFilling]] = [], []
    work = 0  # tokens read for listed words that are several tokens of the other model
    sides = (_sides(model, own, top_k) for model, own in zip(models, prompts, strict=True))
    for one, two in zip(*sides, strict=True):
        words = _words(one, two, by_word)
        work += one.work(own for own, _ in words) + two.work(other for _, other in words)
        check_work(work, most_work)
        masks.append(_compared(one, two, words, by_word))
        found[0].append(one.filling)
        found[1].append(two.filling)
    fillings = []
    for model, prompt, own in zip(models, prompts, found, strict=True):
        with _named(model):
            together = best_joint(model, prompt, joint)
        fillings.append(Filling(prompt.encoding, model.signature, tuple(own), together))
    first, second = fillings
    return Comparison(
        first,
        second,
        tuple(masks),
        _compared_joint(models, (first, second), by_word),
        by_word,
        (BY_WORD,) if by_word else (),
    )


@contextmanager
def _named(model: MaskedLM) -> Iterator[None]:
    """What goes wrong with a model says which."""
    try:
        yield
    except FillmaskError as error:
        name = model.signature.name
        message = str(error)
        raise type(error)(message if name in message else f"{name}: {message}") from error


def _prompts(
    models: tuple[MaskedLM, MaskedLM], text: str, candidates: Sequence[str], most_work: int | None
) -> list[Prompt]:
    """The text as each model sees it; a mask in the spelling of either is one for both."""
    own, other = (model.vocabulary.mask_token for model in models)
    text = normalise_masks(normalise_masks(text, other).replace(other, own), own)
    prompts = []
    for model, mask_token in zip(models, (own, other), strict=True):
        with _named(model):
            shown = text.replace(own, mask_token)
            prompts.append(read_prompt(model, shown, candidates, most_work))
    return prompts


@dataclass(frozen=True, eq=False)
class _Place:
    """One mask of a text, for one model."""

    model: MaskedLM
    encoding: Encoding
    position: int

    def ids_of(self, word: str) -> Ids | None:
        """Tokens of a word where the mask stands; None where it cannot be spelled there."""
        try:
            return split_into_tokens(self.model, self.encoding, self.position, [word])[0].ids
        except FillmaskError:
            return None

    def as_other(self, token_id: int, other: "_Place") -> Ids | None:
        """Tokens of the other model for a token that is a word where it stands; else None."""
        vocabulary = self.model.vocabulary
        word = vocabulary.word(token_id)
        if token_id in vocabulary.special_ids or self.ids_of(word) != (token_id,):
            return None
        return other.ids_of(word)


@dataclass(frozen=True, eq=False)
class _Side:
    """What one model says at one mask."""

    place: _Place
    filling: MaskFilling
    shifted: np.ndarray  # float64 [1, V], of its `Exponentials`
    log_probs: np.ndarray  # float64 [1, V]

    @cached_property
    def known(self) -> dict[Ids, Candidate | ScoredWord]:
        """What `fill` has scored already."""
        asked = {_ids(word): word for word in self.filling.scored}
        return asked | {(own.token_id,): own for own in self.filling.candidates}

    def work(self, words: Iterable[Ids | None]) -> int:
        """Tokens that the model has to read to score words."""
        new = [TokenizedWord("", ids) for ids in words if ids and ids not in self.known]
        return tokens_read(self.place.encoding, new)

    def says(self, ids: Ids | None) -> "_Said":
        """Its score of a word, given as tokens."""
        if ids is None:
            return _Said()
        place = self.place
        if (own := self.known.get(ids)) is None:
            words = [TokenizedWord("", ids)]
            (own,) = word_scores(place.model, place.encoding, place.position, words, self.log_probs)
        token_id = ids[0] if len(ids) == 1 else None
        token = None if token_id is None else place.model.vocabulary.token(token_id)
        listed = isinstance(own, Candidate)
        return _Said(token, token_id, own.probability, own.nll_nats, own.rank, listed)


@dataclass(frozen=True)
class _Said:
    """The half of a `ComparedCandidate` that is of one model."""

    token: str | None = None
    token_id: int | None = None
    probability: float | None = None
    nll_nats: float | None = None
    rank: int | None = None
    listed: bool = False


def _sides(model: MaskedLM, prompt: Prompt, top_k: int | None) -> Iterator[_Side]:
    """One per mask; no more distributions are held than those of one call of the model."""
    with _named(model):
        for part in prompt.parts():
            values = prompt.distributions(model, part)
            log_probs = values.log_probabilities  # [M, V]
            fillings = mask_fillings(model, prompt, part, values, log_probs, top_k)
            for row, filling in enumerate(fillings):
                own = slice(row, row + 1)
                place = _Place(model, prompt.encoding, filling.position)
                yield _Side(place, filling, values.shifted[own], log_probs[own])


def _ids(word: ScoredWord) -> Ids:
    return tuple(part.token_id for part in word.parts)


def _words(one: _Side, two: _Side, by_word: bool) -> dict[Pair, str]:
    """What either model lists and what was asked about, with its name."""
    words: dict[Pair, str] = {}
    for own in one.filling.candidates:
        other = one.place.as_other(own.token_id, two.place) if by_word else (own.token_id,)
        words[(own.token_id,), other] = own.word
    for own in two.filling.candidates:
        other = two.place.as_other(own.token_id, one.place) if by_word else (own.token_id,)
        words.setdefault((other, (own.token_id,)), own.word)
    for asked, same in zip(one.filling.scored, two.filling.scored, strict=True):
        words[_ids(asked), _ids(same)] = asked.word
    return words


def _compared(one: _Side, two: _Side, words: dict[Pair, str], by_word: bool) -> MaskComparison:
    first, second = one.filling, two.filling
    asked = {(_ids(a), _ids(b)) for a, b in zip(first.scored, second.scored, strict=True)}
    rows = []
    for pair, word in words.items():
        own, other = vars(one.says(pair[0])), vars(two.says(pair[1]))
        others = {f"other_{name}": value for name, value in other.items()}
        rows.append(ComparedCandidate(word=word, asked=pair in asked, **own, **others))
    rows.sort(key=lambda row: -max(row.probability or 0.0, row.other_probability or 0.0))
    kl_nats, js_nats = (None, None) if by_word else _divergences(one.shifted, two.shifted)
    best, other_best = first.candidates[0], second.candidates[0]
    return MaskComparison(
        position=first.position,
        other_position=second.position,
        entropy_nats=first.entropy_nats,
        other_entropy_nats=second.entropy_nats,
        kl_nats=kl_nats,
        js_nats=js_nats,
        flipped=best.word != other_best.word if by_word else best.token_id != other_best.token_id,
        candidates=tuple(rows),
    )


def _divergences(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """KL and Jensen-Shannon of two distributions, each [1, V] up to a constant, in nats."""
    # One model may pad its vocabulary: compare the tokens that both have.
    width = min(first.shape[1], second.shape[1])
    own, other = (scoring.exponentials(values[:, :width]) for values in (first, second))
    ratio = scoring.log_ratio(own.log_probabilities, other.log_probabilities)
    kl = scoring.expectation(own, ratio)
    return float(kl[0]), float(scoring.jensen_shannon_nats(own, other, ratio)[0])


def _compared_joint(
    models: tuple[MaskedLM, MaskedLM], fillings: tuple[Filling, Filling], by_word: bool
) -> tuple[ComparedJoint, ...]:
    """Joint fillings that either lists; those of words that are single tokens of both have two."""
    places = [
        [_Place(model, filling.encoding, mask.position) for mask in filling.masks]
        for model, filling in zip(models, fillings, strict=True)
    ]

    def as_other(filling: JointFilling, side: int) -> Ids | None:
        ids = tuple(part.token_id for part in filling.parts)
        if not by_word:
            return ids
        spots = zip(places[side], places[1 - side], ids, strict=True)
        words = [own.as_other(token_id, other) for own, other, token_id in spots]
        single = [word[0] for word in words if word and len(word) == 1]
        return tuple(single) if len(single) == len(words) else None

    texts: dict[Pair, str] = {}
    known: tuple[dict[Ids, float], dict[Ids, float]] = {}, {}
    for side, filling in enumerate(fillings):
        for joint in filling.joint:
            ids = tuple(part.token_id for part in joint.parts)
            known[side][ids] = joint.nll_nats
            other = as_other(joint, side)
            texts.setdefault((other, ids) if side else (ids, other), joint.text)

    def nll_nats(side: int, ids: Ids | None) -> float | None:
        if ids is None or ids in known[side]:
            return None if ids is None else known[side][ids]
        with _named(models[side]):
            return joint_nll_nats(models[side], fillings[side].encoding, ids)

    together = [
        ComparedJoint(
            text, own, nll_nats(0, own), nll_nats(1, other), own in known[0], other in known[1]
        )
        for (own, other), text in texts.items()
    ]
    best = [min(n for n in (j.nll_nats, j.other_nll_nats) if n is not None) for j in together]
    return tuple(together[place] for place in np.argsort(best, kind="stable"))
