"""Candidates for the masks of one text, scores of given words, joint fillings.

Definition. At a mask the model gives P(token | text with all masks hidden), normalised over the
whole vocabulary. Three questions build on it:

- `fill`: the K best tokens of each mask, each mask on its own, as the fill-mask pipeline of
  transformers gives them.
- `score_candidates`: P(word) of a word of n sub-tokens. The mask widens to n masks and the
  chain rule runs from left to right within the word, the later sub-tokens hidden
  (arXiv:2305.10588). Rivals: cutting a word to its first sub-token (the pipeline's `targets`)
  scores another word; hiding one sub-token at a time with the others visible (arXiv:1910.14659)
  makes long words too easy.
- joint fillings: P(w_1, ..., w_m) of all masks by the chain rule from left to right, later masks
  still hidden, found by a beam search. A masked model defines no single joint distribution:
  another order gives another value, so every factor is returned.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, overload

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.batching import in_order, plan_batches
from fillmask_ui.errors import FillmaskError, OptionError, TextError
from fillmask_ui.filling.prompt import encode_masked, filled_text, mask_position, mask_positions
from fillmask_ui.filling.words import (
    ROWS_PER_CALL,
    TokenizedWord,
    raw_logits_at,
    split_into_tokens,
    tokens_read,
    view_nlls,
    word_scores,
)
from fillmask_ui.protocol import MaskedLM, ModelLike, Vocabulary, as_model
from fillmask_ui.records import (
    Candidate,
    Encoding,
    Filling,
    JointFilling,
    JointPart,
    MaskFilling,
    ScoredWord,
)

MAX_TOP_K = 100
MAX_JOINT_MASKS = 16  # beyond, a joint filling would take minutes on a CPU
MAX_JOINT = 100  # fillings
MAX_BEAM_WIDTH = 10_000
BEAM_WIDTH = 16  # hypotheses kept while joint fillings are searched for
BATCH_TOKENS = 512  # of texts filled together, padding counted


@overload
def fill(  # type: ignore[overload-overlap]
    model: ModelLike,
    text: str,
    *,
    top_k: int | None = 5,
    candidates: Sequence[str] = (),
    joint: int = 5,
    beam_width: int = BEAM_WIDTH,
    most_work: int | None = None,
) -> Filling: ...
@overload
def fill(
    model: ModelLike,
    text: Iterable[str],
    *,
    top_k: int | None = 5,
    candidates: Sequence[str] = (),
    joint: int = 5,
    beam_width: int = BEAM_WIDTH,
    most_work: int | None = None,
) -> list[Filling]: ...
def fill(
    model: ModelLike,
    text: str | Iterable[str],
    *,
    top_k: int | None = 5,
    candidates: Sequence[str] = (),
    joint: int = 5,
    beam_width: int = BEAM_WIDTH,
    most_work: int | None = None,
) -> Filling | list[Filling]:
    """What the model predicts at each mask of a text, from left to right.

    For several texts it is a list in their order. Texts of similar length share a batch; each
    result equals that of the text by itself, within the rounding of the model's own sums.

    Args:
        model: from `load_model`, or a reference such as `embedded`, which is loaded once.
        text: with one mask or more: `[MASK]`, `<mask>`, the model's own or `___`; or several.
        top_k: tokens listed for each mask, 1 to 100, best first; None for the whole vocabulary.
        candidates: words to score at each mask, of any number of sub-tokens.
        joint: joint fillings listed of 2 to 16 masks, up to 100; 0 for none.
        beam_width: hypotheses kept while searching for them, at least `joint`.
        most_work: bound on the tokens that the model reads for candidates of several sub-tokens,
            in each text.

    Raises:
        TextError: if a text is blank, has no mask or is too long; of several it is named.
        OptionError: for a number out of range, a candidate without tokens or too much work.
        ModelError: for what is no model; a ModelOutputError if it returns NaN.
    """
    check_choices(top_k, candidates, joint, beam_width)
    loaded = as_model(model)
    if isinstance(text, str | bytes | bytearray):  # bytes are refused as one text
        prompts = [read_prompt(loaded, text, candidates, most_work)]
    elif isinstance(text, Iterable):
        prompts = [
            _numbered_prompt(loaded, number, item, candidates, most_work)
            for number, item in enumerate(text)
        ]
    else:
        raise TextError(f"a text or a list of them was wanted; the type was {type(text).__name__}")

    def fill_batch(batch: Sequence[int]) -> dict[int, Filling]:
        spots = [spot for index in batch for spot in prompts[index].spots]
        remaining = distributions(loaded, spots, top_k)
        fillings = {}
        for index in batch:
            prompt = prompts[index]
            masks = tuple(next(remaining).mask for _ in prompt.positions)
            best = best_joint(prompt, joint, beam_width)
            fillings[index] = Filling(prompt.encoding, loaded.signature, masks, best)
        return fillings

    plan = plan_batches(
        [len(prompt.encoding) for prompt in prompts],
        max_tokens=BATCH_TOKENS,
        targets=[len(prompt.positions) for prompt in prompts],
        max_targets=ROWS_PER_CALL,
    )
    workers = getattr(loaded, "concurrent_calls", 1) if len(plan) > 1 else 1
    fillings: dict[int, Filling] = {}
    for batch_fillings in in_order(fill_batch, plan, workers):
        fillings |= batch_fillings
    return fillings[0] if isinstance(text, str) else [fillings[i] for i in range(len(prompts))]


def check_choices(
    top_k: int | None, candidates: Sequence[str], joint: int = 0, beam_width: int = 1
) -> None:
    """Refuse numbers out of range, and a string in place of words."""
    if top_k is not None and top_k not in range(1, MAX_TOP_K + 1):
        raise OptionError(
            f"top-k was {top_k!r}: give a number from 1 to {MAX_TOP_K}, or 'all' (in Python None) "
            "for the whole vocabulary"
        )
    if joint not in range(MAX_JOINT + 1) or beam_width not in range(1, MAX_BEAM_WIDTH + 1):
        raise OptionError(
            f"joint must lie from 0 to {MAX_JOINT}, the beam width from 1 to {MAX_BEAM_WIDTH:,}; "
            f"they were {joint!r} and {beam_width!r}"
        )
    if isinstance(candidates, str):
        raise OptionError(
            f"the candidates were one text, {candidates[:40]!r}: give a list of words, as in "
            '["cat", "dog"]'
        )


@dataclass(frozen=True, eq=False)
class Distribution:
    """What a model says at one position of a text."""

    model: MaskedLM
    ids: tuple[int, ...]  # T, the text as the model reads it
    mask: MaskFilling  # the best tokens, and the words asked about
    values: scoring.Exponentials  # of [1, V]

    def score(self, word: tuple[int, ...]) -> Candidate | ScoredWord:
        """A word, given as tokens: listed, asked about, or scored by the model now."""
        if word in self._scores:
            return self._scores[word]
        words, log_probs = [TokenizedWord("", word)], self.values.log_probabilities
        return word_scores(self.model, self.ids, self.mask.position, words, log_probs)[0]

    @cached_property
    def _scores(self) -> dict[tuple[int, ...], Candidate | ScoredWord]:
        listed = {(candidate.token_id,): candidate for candidate in self.mask.candidates}
        return {scored.ids: scored for scored in self.mask.scored} | listed


# A text as the model reads it, a position there, and the words to score at it.
Spot: TypeAlias = tuple[tuple[int, ...], int, Sequence[TokenizedWord]]


def distributions(
    model: MaskedLM, spots: Sequence[Spot], top_k: int | None
) -> Iterator[Distribution]:
    """One for each position of some texts, a call of the model at a time."""
    for start in range(0, len(spots), ROWS_PER_CALL):
        part = spots[start : start + ROWS_PER_CALL]
        texts, positions, _ = zip(*part, strict=True)
        values = scoring.exponentials(raw_logits_at(model, texts, positions))
        log_probs = values.log_probabilities  # [M, V]
        top, entropies = scoring.top_k(log_probs, top_k), values.entropy_nats.tolist()
        for row, (ids, position, words) in enumerate(part):
            only = slice(row, row + 1)
            best = candidates_of(model.vocabulary, top.token_ids[row], top.nll_nats[row])
            scored = word_scores(model, ids, position, words, log_probs[only])
            mask = MaskFilling(position, entropies[row], best, scored)
            arrays = {name: array[only] for name, array in vars(values).items()}
            yield Distribution(model, ids, mask, scoring.Exponentials(**arrays))


def distribution_at(
    model: MaskedLM,
    text: str,
    mask: int,
    words: Sequence[str] = (),
    *,
    top_k: int = 1,
    most_work: int | None = None,
) -> Distribution:
    """What `fill` says at one mask, counted from 0; errors as of `fill`."""
    encoding = encode_masked(model, text)
    position = mask_position(encoding, model.vocabulary, mask)
    tokenized = split_into_tokens(model, encoding, position, words)
    check_work(tokens_read(encoding, tokenized), most_work)
    return next(distributions(model, [(encoding.ids, position, tokenized)], top_k))


def fill_at(
    model: MaskedLM, ids: tuple[int, ...], position: int, target: int, *, top_k: int
) -> MaskFilling:
    """What the model puts at any position of T token ids; `target` is scored as the word asked."""
    word = TokenizedWord(model.vocabulary.word(target), (target,))
    return next(distributions(model, [(ids, position, [word])], top_k)).mask


def candidates_of(
    vocabulary: Vocabulary, token_ids: np.ndarray, nlls: np.ndarray
) -> tuple[Candidate, ...]:
    """Records of tokens at one mask, int64 [K] and float64 [K], ranked in their order."""
    columns = zip(token_ids.tolist(), np.exp(-nlls).tolist(), nlls.tolist(), strict=True)
    return tuple(
        Candidate(rank, token_id, vocabulary.token(token_id), vocabulary.word(token_id), *numbers)
        for rank, (token_id, *numbers) in enumerate(columns, start=1)
    )


def candidate_at(vocabulary: Vocabulary, log_probs: np.ndarray, token_id: int) -> Candidate:
    """A token by log-probabilities [1, V]."""
    (rank,), nll = scoring.ranks(log_probs, np.array([token_id])), -log_probs[0, token_id] + 0.0
    names = vocabulary.token(token_id), vocabulary.word(token_id)
    return Candidate(int(rank), token_id, *names, float(np.exp(-nll)), float(nll))


@dataclass(frozen=True, eq=False)
class Prompt:
    """A text with masks that a model can take, and the words to score at them."""

    model: MaskedLM
    encoding: Encoding
    positions: tuple[int, ...]  # of the masks, from left to right
    words: tuple[tuple[TokenizedWord, ...], ...]  # one tuple per mask

    @property
    def spots(self) -> list[Spot]:
        masks = zip(self.positions, self.words, strict=True)
        return [(self.encoding.ids, position, words) for position, words in masks]


def read_prompt(
    model: MaskedLM, text: str, candidates: Sequence[str] = (), most_work: int | None = None
) -> Prompt:
    """A text and its candidates, checked before the model runs."""
    encoding = encode_masked(model, text)
    positions = mask_positions(encoding, model.vocabulary)
    words = tuple(split_into_tokens(model, encoding, p, candidates) for p in positions)
    check_work(sum(tokens_read(encoding, mask_words) for mask_words in words), most_work)
    return Prompt(model, encoding, positions, words)


def _numbered_prompt(model: MaskedLM, number: int, text: Any, *choices: Any) -> Prompt:
    """`read_prompt` for one of several texts, which counts from 0."""
    if not isinstance(text, str):
        raise TextError(f"text {number} is {repr(text)[:80]}, not a text: leave it out")
    try:
        return read_prompt(model, text, *choices)
    except FillmaskError as error:
        raise type(error)(f"text {number}: {error}") from error


def check_work(tokens: int, most: int | None) -> None:
    """Refuse candidates that make the model read more tokens than allowed."""
    if most is not None and tokens > most:
        raise OptionError(
            f"these candidates at these masks make the model read {tokens:,} tokens, and here "
            f"{most:,} are allowed: give fewer candidates, fewer masks or a shorter text"
        )


def score_candidates(
    model: ModelLike, text: str, candidates: Sequence[str], *, most_work: int | None = None
) -> tuple[tuple[ScoredWord, ...], ...]:
    """Probability of words at each mask, of any number of sub-tokens; errors as of `fill`.

    A raw vocabulary string with its prefix (`##ing`) counts as itself.

    Returns:
        One tuple per mask, with one entry per candidate, in the order given.
    """
    if not candidates:
        raise OptionError("no candidate words were given: separate them by commas, as in: cat, dog")
    filling = fill(model, text, top_k=1, candidates=candidates, joint=0, most_work=most_work)
    return tuple(mask.scored for mask in filling.masks)


def score_candidate_at(
    model: MaskedLM, text: str, candidate: str, mask: int, *, most_work: int | None = None
) -> ScoredWord:
    """`score_candidates` for one candidate at one mask, counted from 0."""
    return distribution_at(model, text, mask, [candidate], most_work=most_work).mask.scored[0]


def unscorable(model: MaskedLM, text: str, candidates: Sequence[str]) -> dict[str, str]:
    """Words that cannot be scored at the masks of a text, and why."""
    encoding = encode_masked(model, text)
    problems = {word: _problem(model, encoding, word) for word in candidates}
    return {word: problem for word, problem in problems.items() if problem}


def _problem(model: MaskedLM, encoding: Encoding, word: str) -> str:
    """Why a word cannot be scored at some mask; blank if it can."""
    try:
        for position in mask_positions(encoding, model.vocabulary):
            split_into_tokens(model, encoding, position, [word])
    except FillmaskError as error:
        return str(error)
    return ""


def best_joint(prompt: Prompt, count: int, beam_width: int) -> tuple[JointFilling, ...]:
    """At most `count` best fillings of all masks together; none for one mask or too many.

    Each step fills the next mask of every hypothesis, the later ones hidden, and keeps the best;
    with a beam as wide as the vocabulary the search is exhaustive.
    """
    if not count or not 1 < len(prompt.positions) <= MAX_JOINT_MASKS:
        return ()
    width = max(beam_width, count)
    beam = [JointFilling("", 0.0, ())]
    for position in prompt.positions:
        spots: list[Spot] = []
        for partial in beam:
            ids = list(prompt.encoding.ids)
            for part in partial.parts:
                ids[part.position] = part.token_id
            spots.append((tuple(ids), position, ()))
        longer = []
        for partial, following in zip(beam, distributions(prompt.model, spots, width), strict=True):
            for best in following.mask.candidates:
                part = JointPart(position, best.token_id, best.token, best.word, best.nll_nats)
                nll = partial.nll_nats + best.nll_nats
                longer.append(JointFilling("", nll, (*partial.parts, part)))
        beam = sorted(longer, key=lambda filling: filling.nll_nats)[:width]
    fillings = []
    for filling in beam[:count]:
        token_ids = {part.position: part.token_id for part in filling.parts}
        text = filled_text(prompt.encoding, prompt.model.vocabulary, token_ids)
        fillings.append(replace(filling, text=text))
    return tuple(fillings)


def joint_nll_nats(prompt: Prompt, token_ids: Sequence[int]) -> float:
    """-ln of the joint probability of one token for each mask, by the same chain rule."""
    ids, views = list(prompt.encoding.ids), []
    for position, token_id in zip(prompt.positions, token_ids, strict=True):
        views.append((tuple(ids), position, token_id))
        ids[position] = token_id
    return sum(view_nlls(prompt.model, views).tolist())
