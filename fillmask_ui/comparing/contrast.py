"""Two distributions at one mask, side by side: of two models, two sentences, a class and a model.

Definition. The words that either side, reference or candidate, lists, and those asked about, stand
in one list with both probabilities and ranks, normalised over the whole vocabulary. Differences are
candidate less reference.

- With one tokenizer a word is a token, and the distributions are compared over the V tokens of
  both: KL(reference || candidate) and Jensen-Shannon.
- With two tokenizers masks are matched by their number from the left, and a word that one model
  lists is scored under the other as `score_candidates` does. A token that is not a word by
  itself (an ending, `##ing`) has no such score, and there is no divergence.

Source:
    KL(full precision || quantized) as the measure of what a quantization changes: Dutta et al.
    2024, Accuracy is Not All You Need, arXiv:2407.09141, which also counts flipped answers.
    Minimal pairs of templates for bias: Kurita et al. 2019, arXiv:1906.07337.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from fillmask_ui import scoring
from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.filling.candidates import (
    BEAM_WIDTH,
    MAX_TOP_K,
    Distribution,
    Prompt,
    best_joint,
    check_choices,
    check_work,
    distribution_at,
    distributions,
    joint_nll_nats,
    read_prompt,
)
from fillmask_ui.filling.prompt import normalise_masks
from fillmask_ui.filling.words import TokenizedWord, tokens_of, tokens_read
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Candidate, Displayed, Filling, MaskFilling, by_role
from fillmask_ui.tokenizers import same_tokenizer

BY_WORD = (
    "the models have different tokenizers, so they are compared word by word, and their "
    "distributions have no KL or Jensen-Shannon divergence"
)

Ids = tuple[int, ...]
# A word as tokens of reference and of candidate; None if it cannot be spelled.
Pair = tuple[Ids | None, Ids | None]


@dataclass(frozen=True)
class Said:
    """What one side says of a word; None if it cannot spell it there."""

    token: str | None = None  # vocabulary string of a word of one token
    token_id: int | None = None  # of the same
    probability: float | None = None
    nll_nats: float | None = None
    rank: int | None = None  # among all V tokens; None for several tokens
    listed: bool = False  # whether it is in the top k

    @classmethod
    def of(cls, own: Distribution, ids: Ids | None) -> "Said":
        width = own.values.shifted.shape[-1]
        if ids is None or any(token_id >= width for token_id in ids):  # the other may be padded
            return cls()
        found = own.score(ids)
        token_id = ids[0] if len(ids) == 1 else None
        token = None if token_id is None else own.model.vocabulary.token(token_id)
        listed = isinstance(found, Candidate)
        return cls(token, token_id, found.probability, found.nll_nats, found.rank, listed)


@dataclass(frozen=True)
class ContrastedWord:
    """One word on both sides, as `Said` has it; `other_` is the candidate's."""

    word: str  # without the tokenizer's prefix, or as asked
    token: str | None
    token_id: int | None
    other_token: str | None
    other_token_id: int | None
    probability: float | None
    other_probability: float | None
    nll_nats: float | None
    other_nll_nats: float | None
    rank: int | None
    other_rank: int | None
    listed: bool
    other_listed: bool
    asked: bool = False  # whether the user asked about it

    @classmethod
    def of(cls, word: str, one: Said, two: Said, *, asked: bool = False) -> "ContrastedWord":
        others = {f"other_{name}": value for name, value in vars(two).items()}
        return cls(word=word, asked=asked, **vars(one), **others)

    @property
    def probabilities(self) -> tuple[float | None, float | None]:
        return self.probability, self.other_probability

    @property
    def difference(self) -> float | None:
        if self.probability is None or self.other_probability is None:
            return None
        return self.other_probability - self.probability

    @property
    def log_ratio_nats(self) -> float | None:
        """ln(P(reference) / P(candidate)); NaN if both are 0."""
        if self.nll_nats is None or self.other_nll_nats is None:
            return None
        return self.other_nll_nats - self.nll_nats


@dataclass(frozen=True)
class Contrast(Displayed):
    """Two distributions at one mask; `other_` is the candidate's."""

    position: int  # of the mask among the reference's tokens
    other_position: int  # of the mask among the candidate's tokens
    entropy_nats: float
    other_entropy_nats: float
    kl_nats: float | None  # KL(reference || candidate); None if the tokenizers differ
    js_nats: float | None  # Jensen-Shannon divergence; the same
    flipped: bool  # whether the first words differ
    candidates: tuple[ContrastedWord, ...]


def _larger(own: ContrastedWord) -> float:
    return max(p or 0.0 for p in own.probabilities)


def contrast(
    one: Distribution,
    two: Distribution,
    words: Mapping[Pair, str],
    asked: Collection[Pair] = (),
    *,
    alike: bool = True,
    size: Callable[[ContrastedWord], float] = _larger,
) -> Contrast:
    """Two distributions at some words, the largest `size` first; `alike` if of one tokenizer."""
    rows = [
        ContrastedWord.of(name, Said.of(one, pair[0]), Said.of(two, pair[1]), asked=pair in asked)
        for pair, name in words.items()
    ]
    rows.sort(key=size, reverse=True)
    kl_nats, js_nats = (
        scoring.divergences(one.values.shifted, two.values.shifted) if alike else (None, None)
    )
    best, other_best = one.mask.candidates[0], two.mask.candidates[0]
    return Contrast(
        position=one.mask.position,
        other_position=two.mask.position,
        entropy_nats=one.mask.entropy_nats,
        other_entropy_nats=two.mask.entropy_nats,
        kl_nats=kl_nats,
        js_nats=js_nats,
        flipped=best.token_id != other_best.token_id if alike else best.word != other_best.word,
        candidates=tuple(rows),
    )


def pair_masks(
    model: MaskedLM,
    first: str,
    second: str,
    *,
    masks: tuple[int, int] = (0, 0),
    top_k: int = 5,
    words: Sequence[str] = (),
    most_work: int | None = None,
) -> Contrast:
    """The same words at a mask of two sentences, the largest difference of probability first.

    They are the `top_k` (1 to 100) best tokens of each and `words` of any number of sub-tokens.
    `masks` counts the masks of each from 0; `most_work`, for each sentence, and errors as of
    `fill`.

    >>> from fillmask_ui import load_model
    >>> said = "The {} said that [MASK] was tired.".format
    >>> pair = pair_masks(load_model("embedded"), said("king"), said("queen"), words=["she"])
    >>> pair.candidates[0].difference < 0, [own.word for own in pair.candidates if own.asked]
    (True, ['she'])
    """
    check_choices(top_k, words)
    one, two = (
        distribution_at(model, text, mask, words, top_k=top_k, most_work=most_work)
        for text, mask in zip((first, second), masks, strict=True)
    )
    best: dict[Pair, str] = {
        ((own.token_id,), (own.token_id,)): own.word
        for own in (*one.mask.candidates, *two.mask.candidates)
    }
    asked = _asked(one, two)
    return contrast(
        one, two, asked | best | asked, asked, size=lambda own: abs(own.difference or 0.0)
    )


@dataclass(frozen=True)
class ComparedJoint:
    """All masks of a text filled together, under both models."""

    text: str
    token_ids: tuple[int, ...] | None  # of the reference, if it has these tokens
    nll_nats: float | None  # -ln of the joint probability; None without these tokens
    other_nll_nats: float | None
    listed: bool  # by the reference
    other_listed: bool  # by the candidate


@dataclass(frozen=True)
class Comparison(Displayed):
    """Two models at the masks of one text."""

    first: Filling  # what the reference says, as `fill` gives it
    second: Filling  # what the candidate says
    masks: tuple[Contrast, ...]  # from left to right
    joint: tuple[ComparedJoint, ...]  # joint fillings that either lists, the most probable first
    by_word: bool  # whether the tokenizers differ, so that words are compared, not tokens
    notes: tuple[str, ...] = ()  # what a reader should know

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values: both fillings, then what is compared."""
        return {
            "reference": self.first.to_dict(),
            "candidate": self.second.to_dict(),
            "by_word": self.by_word,
            "notes": list(self.notes),
            "masks": [mask.to_dict() for mask in self.masks],
            "joint": [by_role(asdict(joint)) for joint in self.joint],
        }


def compare(
    reference: MaskedLM,
    candidate: MaskedLM,
    text: str,
    *,
    top_k: int | None = 5,
    candidates: Sequence[str] = (),
    joint: int = 5,
    beam_width: int = BEAM_WIDTH,
    most_work: int | None = None,
) -> Comparison:
    """What two models put at each mask of a text, side by side.

    Arguments and errors as of `fill`; errors name the model. Each model sees its own mask token.
    `most_work` bounds both together, including listed words that are several tokens of the other.

    >>> from fillmask_ui import load_model
    >>> model = load_model("embedded")
    >>> mask = compare(model, model, "The opposite of hot is [MASK].").masks[0]
    >>> mask.kl_nats, mask.js_nats, mask.flipped
    (0.0, 0.0, False)
    """
    check_choices(top_k, candidates, joint, beam_width)
    prompts = _prompts((reference, candidate), text, candidates, most_work)
    alike = prompts[0].encoding.ids == prompts[1].encoding.ids and same_tokenizer(
        reference.vocabulary, candidate.vocabulary
    )
    if not alike and top_k is None:
        raise OptionError(
            f"{reference.signature.name} and {candidate.signature.name} have different tokenizers, "
            "so each listed word is scored by itself and the whole vocabulary would take hours: "
            f"give a top-k from 1 to {MAX_TOP_K}"
        )
    masks: list[Contrast] = []
    found: list[tuple[MaskFilling, MaskFilling]] = []
    work = 0  # tokens read for listed words that are several tokens of the other model
    pairs = zip(*(_distributions(prompt, top_k) for prompt in prompts), strict=True)
    for number, (one, two) in enumerate(pairs):
        asked = _asked(one, two)
        words = _listed((one, two), prompts, number, alike) | asked
        for side, own in enumerate((one, two)):
            new = [TokenizedWord("", pair[side] or ()) for pair in words if pair not in asked]
            work += tokens_read(own.ids, new)
        check_work(work, most_work)
        found.append((one.mask, two.mask))
        masks.append(contrast(one, two, words, asked, alike=alike))
    fillings = []
    for prompt, own_masks in zip(prompts, zip(*found, strict=True), strict=True):
        with _named(prompt.model):
            best = best_joint(prompt, joint, beam_width)
        fillings.append(Filling(prompt.encoding, prompt.model.signature, own_masks, best))
    together = _compared_joint(prompts, fillings, alike)
    notes = () if alike else (BY_WORD,)
    return Comparison(fillings[0], fillings[1], tuple(masks), together, not alike, notes)


@contextmanager
def _named(model: MaskedLM) -> Iterator[None]:
    try:
        yield
    except FillmaskError as error:
        name, message = model.signature.name, str(error)
        raise type(error)(message if name in message else f"{name}: {message}") from error


def _prompts(
    models: tuple[MaskedLM, MaskedLM], text: str, candidates: Sequence[str], most_work: int | None
) -> list[Prompt]:
    """The text as each model reads it; a mask as either spells it is one for both."""
    own, other = (model.vocabulary.mask_token for model in models)
    text = normalise_masks(normalise_masks(text, other).replace(other, own), own)
    prompts = []
    for model in models:
        with _named(model):
            shown = text.replace(own, model.vocabulary.mask_token)
            prompts.append(read_prompt(model, shown, candidates, most_work))
    return prompts


def _distributions(prompt: Prompt, top_k: int | None) -> Iterator[Distribution]:
    with _named(prompt.model):
        yield from distributions(prompt.model, prompt.spots, top_k)


def _asked(one: Distribution, two: Distribution) -> dict[Pair, str]:
    scored = zip(one.mask.scored, two.mask.scored, strict=True)
    return {(own.ids, other.ids): own.word for own, other in scored}


def _listed(
    both: tuple[Distribution, Distribution], prompts: Sequence[Prompt], mask: int, alike: bool
) -> dict[Pair, str]:
    words: dict[Pair, str] = {}
    for side, distribution in enumerate(both):
        for own in distribution.mask.candidates:
            ids: Ids = (own.token_id,)
            other = _under(prompts, side, mask, own.token_id, alike)
            words.setdefault((other, ids) if side else (ids, other), own.word)
    return words


def _under(
    prompts: Sequence[Prompt], side: int, mask: int, token_id: int, alike: bool
) -> Ids | None:
    """The other model's tokens for a token of one `side`; None if it is not a word by itself."""
    if alike:
        return (token_id,)
    vocabulary = prompts[side].model.vocabulary
    own, other = (
        tokens_of(prompt.model, prompt.encoding, prompt.positions[mask], vocabulary.word(token_id))
        for prompt in (prompts[side], prompts[1 - side])
    )
    alone = own == (token_id,) and token_id not in vocabulary.special_ids
    return other or None if alone else None


def _compared_joint(
    prompts: Sequence[Prompt], fillings: Sequence[Filling], alike: bool
) -> tuple[ComparedJoint, ...]:
    """Joint fillings that either lists, under both if their words are single tokens of both."""
    texts: dict[Pair, str] = {}
    known: tuple[dict[Ids | None, float], dict[Ids | None, float]] = {}, {}
    for side, filling in enumerate(fillings):
        for joint in filling.joint:
            ids = tuple(part.token_id for part in joint.parts)
            known[side][ids] = joint.nll_nats
            words = [_under(prompts, side, mask, own, alike) for mask, own in enumerate(ids)]
            single = tuple(word[0] for word in words if word and len(word) == 1)
            other = single if len(single) == len(words) else None
            texts.setdefault((other, ids) if side else (ids, other), joint.text)

    def nll_nats(side: int, ids: Ids | None) -> float | None:
        if ids is None or ids in known[side]:
            return known[side].get(ids)
        with _named(prompts[side].model):
            return joint_nll_nats(prompts[side], ids)

    def best(joint: ComparedJoint) -> float:
        return min(nll for nll in (joint.nll_nats, joint.other_nll_nats) if nll is not None)

    together = [
        ComparedJoint(
            text, own, nll_nats(0, own), nll_nats(1, other), own in known[0], other in known[1]
        )
        for (own, other), text in texts.items()
    ]
    return tuple(sorted(together, key=best))
