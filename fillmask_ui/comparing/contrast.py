"""Two distributions at one mask, side by side: of two models, two sentences, a class and a model.

Definition. The words that the reference or the candidate lists, and those asked about, stand in one
list with both probabilities and ranks, normalised over the whole vocabulary. Differences are
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
from fillmask_ui.protocol import MaskedLM, ModelLike, as_model
from fillmask_ui.records import Candidate, Displayed, Filling, MaskFilling, counted, excerpt
from fillmask_ui.tokenizers import same_tokenizer

BY_WORD = (
    "the models have different tokenizers, so they are compared word by word, and their "
    "distributions have no KL or Jensen-Shannon divergence"
)

TokenIds = tuple[int, ...]
# A word as tokens of reference and of candidate; None if it cannot be spelled.
WordIds = tuple[TokenIds | None, TokenIds | None]


@dataclass(frozen=True)
class WordScore:
    """A word in one distribution; None if it cannot be spelled there."""

    token: str | None = None  # vocabulary string of a word of one token
    token_id: int | None = None  # of the same
    probability: float | None = None
    nll_nats: float | None = None
    rank: int | None = None  # among all V tokens; None for several tokens
    listed: bool = False  # whether it is in the top k

    @classmethod
    def of(cls, distribution: Distribution, ids: TokenIds | None) -> "WordScore":
        width = distribution.values.shifted.shape[-1]
        # The other model's vocabulary may be padded to a larger width.
        if ids is None or any(token_id >= width for token_id in ids):
            return cls()
        score = distribution.score(ids)
        token_id = ids[0] if len(ids) == 1 else None
        token = None if token_id is None else distribution.model.vocabulary.token(token_id)
        listed = isinstance(score, Candidate)
        return cls(token, token_id, score.probability, score.nll_nats, score.rank, listed)


@dataclass(frozen=True)
class ContrastedWord:
    """One word in two distributions; fields as of `WordScore`."""

    word: str  # without the tokenizer's prefix, or as asked
    reference_token: str | None
    reference_token_id: int | None
    candidate_token: str | None
    candidate_token_id: int | None
    reference_probability: float | None
    candidate_probability: float | None
    reference_nll_nats: float | None
    candidate_nll_nats: float | None
    reference_rank: int | None
    candidate_rank: int | None
    reference_listed: bool
    candidate_listed: bool
    asked: bool = False  # whether the user asked about it

    @classmethod
    def of(
        cls, word: str, reference: WordScore, candidate: WordScore, *, asked: bool = False
    ) -> "ContrastedWord":
        scores = {f"reference_{name}": score for name, score in vars(reference).items()}
        scores |= {f"candidate_{name}": score for name, score in vars(candidate).items()}
        return cls(word=word, asked=asked, **scores)

    @property
    def probabilities(self) -> tuple[float | None, float | None]:
        return self.reference_probability, self.candidate_probability

    @property
    def difference(self) -> float | None:
        if self.reference_probability is None or self.candidate_probability is None:
            return None
        return self.candidate_probability - self.reference_probability

    @property
    def log_ratio_nats(self) -> float | None:
        """ln(P(reference) / P(candidate)); NaN if both are 0."""
        if self.reference_nll_nats is None or self.candidate_nll_nats is None:
            return None
        return self.candidate_nll_nats - self.reference_nll_nats


@dataclass(frozen=True)
class Contrast(Displayed):
    """Two distributions at one mask."""

    reference_position: int  # of the mask among the reference's tokens
    candidate_position: int  # of the mask among the candidate's tokens
    reference_entropy_nats: float
    candidate_entropy_nats: float
    kl_nats: float | None  # KL(reference || candidate); None if the tokenizers differ
    js_nats: float | None  # Jensen-Shannon divergence; the same
    flipped: bool  # whether the first words differ
    candidates: tuple[ContrastedWord, ...]

    def __repr__(self) -> str:
        divergence = "" if self.kl_nats is None else f"KL {self.kl_nats:.4f} nats, "
        return f"Contrast({divergence}{counted(len(self.candidates), 'word')})"


def _larger_probability(word: ContrastedWord) -> float:
    return max(probability or 0.0 for probability in word.probabilities)


def _absolute_difference(word: ContrastedWord) -> float:
    return abs(word.difference or 0.0)


def contrast(
    reference: Distribution,
    candidate: Distribution,
    words: Mapping[WordIds, str],
    asked: Collection[WordIds] = (),
    *,
    alike: bool = True,
    size: Callable[[ContrastedWord], float] = _larger_probability,
) -> Contrast:
    """Two distributions at some words, the largest `size` first; `alike` if of one tokenizer."""
    rows = []
    for ids, word in words.items():
        scores = WordScore.of(reference, ids[0]), WordScore.of(candidate, ids[1])
        rows.append(ContrastedWord.of(word, *scores, asked=ids in asked))
    kl_nats = js_nats = None
    first, candidate_first = reference.mask.candidates[0], candidate.mask.candidates[0]
    flipped = first.word != candidate_first.word
    if alike:
        logits = reference.values.shifted, candidate.values.shifted
        kl_nats, js_nats = scoring.divergences(*logits)
        flipped = first.token_id != candidate_first.token_id
    return Contrast(
        reference_position=reference.mask.position,
        candidate_position=candidate.mask.position,
        reference_entropy_nats=reference.mask.entropy_nats,
        candidate_entropy_nats=candidate.mask.entropy_nats,
        kl_nats=kl_nats,
        js_nats=js_nats,
        flipped=flipped,
        candidates=tuple(sorted(rows, key=size, reverse=True)),
    )


def pair_masks(
    model: ModelLike,
    reference: str,
    candidate: str,
    *,
    masks: tuple[int, int] = (0, 0),
    top_k: int = 5,
    candidates: Sequence[str] = (),
    most_work: int | None = None,
) -> Contrast:
    """The same words at a mask of two sentences, the largest difference of probability first.

    They are the `top_k` (1 to 100) best tokens of each and `candidates` of any number of
    sub-tokens. Differences are the sentence `candidate` less the sentence `reference`. `masks`
    counts the masks of each from 0; `most_work`, for each sentence, and errors as of `fill`.

    >>> from fillmask_ui import load_model
    >>> sentence = "The {} said that [MASK] was tired.".format
    >>> pair = pair_masks(
    ...     load_model("embedded"), sentence("king"), sentence("queen"), candidates=["she"])
    >>> pair.candidates[0].difference < 0, [row.word for row in pair.candidates if row.asked]
    (True, ['she'])
    """
    check_choices(top_k, candidates)
    loaded = as_model(model)
    first, second = (
        distribution_at(loaded, text, mask, candidates, top_k=top_k, most_work=most_work)
        for text, mask in zip((reference, candidate), masks, strict=True)
    )
    asked = _asked(first, second)
    listed: dict[WordIds, str] = {
        ((best.token_id,), (best.token_id,)): best.word
        for best in (*first.mask.candidates, *second.mask.candidates)
    }
    words_by_ids = asked | listed | asked
    return contrast(first, second, words_by_ids, asked, size=_absolute_difference)


@dataclass(frozen=True)
class ComparedJoint:
    """All masks of a text filled together, under both models."""

    text: str
    token_ids: TokenIds | None  # of the reference, if it has these tokens
    reference_nll_nats: float | None  # -ln of the joint probability; None without these tokens
    candidate_nll_nats: float | None
    reference_listed: bool
    candidate_listed: bool


@dataclass(frozen=True)
class Comparison(Displayed):
    """Two models at the masks of one text."""

    reference: Filling  # as `fill` gives it
    candidate: Filling
    masks: tuple[Contrast, ...]  # from left to right
    joint: tuple[ComparedJoint, ...]  # joint fillings that either lists, the most probable first
    by_word: bool  # whether the tokenizers differ, so that words are compared, not tokens
    notes: tuple[str, ...] = ()  # what a reader should know

    def __repr__(self) -> str:
        names = ", ".join(model.signature.name for model in (self.reference, self.candidate))
        flipped = sum(mask.flipped for mask in self.masks)
        masks = f"{counted(len(self.masks), 'mask')}, {flipped} with another first word"
        return f"Comparison({excerpt(self.reference.encoding.text)}, {names}, {masks})"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values: both fillings, then what is compared."""
        return {
            "reference": self.reference.to_dict(),
            "candidate": self.candidate.to_dict(),
            "by_word": self.by_word,
            "notes": list(self.notes),
            "masks": [mask.to_dict() for mask in self.masks],
            "joint": [asdict(joint) for joint in self.joint],
        }


def compare(
    reference: ModelLike,
    candidate: ModelLike,
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
    reference, candidate = as_model(reference), as_model(candidate)
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
    mask_fillings: tuple[list[MaskFilling], list[MaskFilling]] = [], []
    work = 0  # tokens read for listed words that are several tokens of the other model
    reference_masks, candidate_masks = (_distributions(prompt, top_k) for prompt in prompts)
    for number, pair in enumerate(zip(reference_masks, candidate_masks, strict=True)):
        asked = _asked(*pair)
        words = _listed(pair, prompts, number, alike) | asked
        for model, distribution in enumerate(pair):
            listed = [TokenizedWord("", ids[model] or ()) for ids in words if ids not in asked]
            work += tokens_read(distribution.ids, listed)
            mask_fillings[model].append(distribution.mask)
        check_work(work, most_work)
        masks.append(contrast(*pair, words, asked, alike=alike))
    fillings = []
    for prompt, filled_masks in zip(prompts, mask_fillings, strict=True):
        with _named(prompt.model):
            best = best_joint(prompt, joint, beam_width)
        signature = prompt.model.signature
        fillings.append(Filling(prompt.encoding, signature, tuple(filled_masks), best))
    return Comparison(
        reference=fillings[0],
        candidate=fillings[1],
        masks=tuple(masks),
        joint=_compared_joint(prompts, fillings, alike),
        by_word=not alike,
        notes=() if alike else (BY_WORD,),
    )


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
    mask_token, candidate_mask_token = (model.vocabulary.mask_token for model in models)
    text = normalise_masks(text, candidate_mask_token).replace(candidate_mask_token, mask_token)
    text = normalise_masks(text, mask_token)
    prompts = []
    for model in models:
        with _named(model):
            model_text = text.replace(mask_token, model.vocabulary.mask_token)
            prompts.append(read_prompt(model, model_text, candidates, most_work))
    return prompts


def _distributions(prompt: Prompt, top_k: int | None) -> Iterator[Distribution]:
    with _named(prompt.model):
        yield from distributions(prompt.model, prompt.spots, top_k)


def _asked(reference: Distribution, candidate: Distribution) -> dict[WordIds, str]:
    pairs = zip(reference.mask.scored, candidate.mask.scored, strict=True)
    return {(word.ids, candidate_word.ids): word.word for word, candidate_word in pairs}


def _listed(
    pair: tuple[Distribution, Distribution], prompts: Sequence[Prompt], mask: int, alike: bool
) -> dict[WordIds, str]:
    words: dict[WordIds, str] = {}
    for model, distribution in enumerate(pair):
        for best in distribution.mask.candidates:
            translated = _translated(prompts, model, mask, best.token_id, alike)
            words.setdefault(_word_ids(model, (best.token_id,), translated), best.word)
    return words


def _word_ids(model: int, ids: TokenIds, translated: TokenIds | None) -> WordIds:
    """Tokens of `model`, 0 for the reference, and their translation for the other, in order."""
    return (ids, translated) if model == 0 else (translated, ids)


def _translated(
    prompts: Sequence[Prompt], model: int, mask: int, token_id: int, alike: bool
) -> TokenIds | None:
    """The other model's tokens for a token of one `model`; None if it is not a word by itself."""
    if alike:
        return (token_id,)
    vocabulary = prompts[model].model.vocabulary
    word = vocabulary.word(token_id)
    alone, translated = (
        tokens_of(prompt.model, prompt.encoding, prompt.positions[mask], word)
        for prompt in (prompts[model], prompts[1 - model])
    )
    if alone != (token_id,) or token_id in vocabulary.special_ids:
        return None
    return translated or None


def _compared_joint(
    prompts: Sequence[Prompt], fillings: Sequence[Filling], alike: bool
) -> tuple[ComparedJoint, ...]:
    """Joint fillings that either lists, under both if their words are single tokens of both."""
    texts: dict[WordIds, str] = {}
    listed_nlls: tuple[dict[TokenIds, float], dict[TokenIds, float]] = {}, {}
    for model, filling in enumerate(fillings):
        for joint in filling.joint:
            joint_ids = tuple(part.token_id for part in joint.parts)
            listed_nlls[model][joint_ids] = joint.nll_nats
            words = [
                _translated(prompts, model, mask, token_id, alike)
                for mask, token_id in enumerate(joint_ids)
            ]
            single = tuple(word[0] for word in words if word and len(word) == 1)
            translated = single if len(single) == len(words) else None
            texts.setdefault(_word_ids(model, joint_ids, translated), joint.text)
    compared = []
    for (ids, candidate_ids), text in texts.items():
        compared.append(
            ComparedJoint(
                text,
                ids,
                reference_nll_nats=_joint_nll_nats(prompts[0], ids, listed_nlls[0]),
                candidate_nll_nats=_joint_nll_nats(prompts[1], candidate_ids, listed_nlls[1]),
                reference_listed=ids in listed_nlls[0],
                candidate_listed=candidate_ids in listed_nlls[1],
            )
        )
    return tuple(sorted(compared, key=_best_nll_nats))


def _joint_nll_nats(
    prompt: Prompt, ids: TokenIds | None, listed: Mapping[TokenIds, float]
) -> float | None:
    if ids is None:
        return None
    if ids in listed:
        return listed[ids]
    with _named(prompt.model):
        return joint_nll_nats(prompt, ids)


def _best_nll_nats(joint: ComparedJoint) -> float:
    nlls = joint.reference_nll_nats, joint.candidate_nll_nats
    return min(nll for nll in nlls if nll is not None)
