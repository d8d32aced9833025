"""Candidates for the masks of one text, words of several tokens, joint fillings.

Definition. At a mask in position i the model gives P(token | text with all masks hidden),
normalised over the whole vocabulary. Three questions build on it:

- `fill`: the K best tokens of each mask, each mask on its own, as the fill-mask pipeline of
  transformers gives them.
- `score_candidates`: P(word) of a word of n sub-tokens. The mask widens to n masks and the
  chain rule runs from left to right within the word, the later sub-tokens hidden
  (within-word left-to-right, arXiv:2305.10588). Rivals: cutting a word to its first sub-token
  (the pipeline's `targets`), which scores another word; hiding one sub-token at a time with
  the others visible (arXiv:1910.14659), which makes long words too easy.
- joint fillings: P(w_1, ..., w_m) of all masks together by the chain rule from left to right,
  later masks still hidden, found by a beam search. A masked model defines no single joint
  distribution: another order gives another value, so every factor is returned.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.filling.joint import joint_fillings
from fillmask_ui.filling.prompt import encode_masked, mask_positions
from fillmask_ui.filling.words import (
    ROWS_PER_CALL,
    TokenizedWord,
    exponentials_at,
    log_probabilities_at,
    split_into_tokens,
    tokens_read,
    word_scores,
)
from fillmask_ui.protocol import MaskedLM, Vocabulary
from fillmask_ui.records import (
    Candidate,
    Encoding,
    Filling,
    JointFilling,
    MaskFilling,
    ScoredPart,
    ScoredWord,
)

MAX_TOP_K = 100
# Beyond this many masks a joint filling would cost minutes on a CPU.
MAX_JOINT_MASKS = 16
MAX_JOINT = 100  # fillings
MAX_BEAM_WIDTH = 10_000  # each of its hypotheses has as many next ones
# Hypotheses kept while joint fillings are searched for.
BEAM_WIDTH = 16


def fill(
    model: MaskedLM,
    text: str,
    *,
    top_k: int | None = 5,
    candidates: Sequence[str] = (),
    joint: int = 5,
    beam_width: int = BEAM_WIDTH,
    most_work: int | None = None,
) -> Filling:
    """What the model puts at each mask of a text.

    Args:
        model: from `load_model`.
        text: with one mask or more: `[MASK]`, `<mask>`, the model's own or `___`.
        top_k: tokens listed for each mask, 1 to 100, best first; None for the whole vocabulary.
        candidates: words to score at each mask, of any number of sub-tokens.
        joint: joint fillings listed where there are 2 to 16 masks, up to 100; 0 for none.
        beam_width: hypotheses kept while searching for them; at least `joint` are kept.
        most_work: tokens that the model may be made to read for candidates of several
            sub-tokens, over all masks; None for any number.

    Returns:
        Masks from left to right; joint fillings best first.

    Raises:
        TextError: if the text is blank, has no mask or is too long.
        OptionError: if a number is out of range, a candidate has no tokens or the candidates take
            more than `most_work`.
        ModelOutputError: if the model returns NaN.
    """
    check_choices(top_k, candidates, joint, beam_width)
    prompt = read_prompt(model, text, candidates, most_work)
    masks: list[MaskFilling] = []
    for part in prompt.parts():
        values = prompt.distributions(model, part)
        masks += mask_fillings(model, prompt, part, values, values.log_probabilities, top_k)
    fillings = best_joint(model, prompt, joint, beam_width)
    return Filling(prompt.encoding, model.signature, tuple(masks), fillings)


def check_choices(
    top_k: int | None, candidates: Sequence[str], joint: int, beam_width: int = 1
) -> None:
    """Refuse numbers out of range and words that are no list: an `OptionError`."""
    if top_k is not None and (top_k is True or top_k not in range(1, MAX_TOP_K + 1)):
        raise OptionError(
            f"top-k was {top_k!r}: give a number from 1 to {MAX_TOP_K}, or 'all' for the "
            "whole vocabulary"
        )
    if joint not in range(MAX_JOINT + 1) or beam_width not in range(1, MAX_BEAM_WIDTH + 1):
        raise OptionError(
            f"joint must lie from 0 to {MAX_JOINT}, the beam width from 1 to {MAX_BEAM_WIDTH:,}; "
            f"they were {joint!r} and {beam_width!r}"
        )
    if wrong := [word for word in candidates if not isinstance(word, str)]:
        raise OptionError(
            f"a candidate was {repr(wrong[0])[:100]}: give words, as in ['cat', 'dog']"
        )
    if isinstance(candidates, str):
        raise OptionError(
            f"the candidates were one text, {candidates[:40]!r}: give a list of words, as in "
            '["cat", "dog"]'
        )


@dataclass(frozen=True, eq=False)
class Prompt:
    """A text with masks that a model can take, and the words to score at them."""

    encoding: Encoding
    positions: tuple[int, ...]  # of the masks, from left to right
    words: tuple[tuple[TokenizedWord, ...], ...]  # one tuple per mask

    def parts(self) -> Iterator[slice]:
        """The masks, as many at a time as go through the model in one call."""
        for start in range(0, len(self.positions), ROWS_PER_CALL):
            yield slice(start, start + ROWS_PER_CALL)

    def distributions(self, model: MaskedLM, part: slice) -> scoring.Exponentials:
        """What the model says at some of the masks."""
        positions = self.positions[part]
        return exponentials_at(model, [self.encoding.ids] * len(positions), positions)


def read_prompt(
    model: MaskedLM, text: str, candidates: Sequence[str] = (), most_work: int | None = None
) -> Prompt:
    """A text and its candidates, checked before the model runs: a typing error costs no pass.

    Raises:
        FillmaskError: as of `fill`.
    """
    encoding = encode_masked(model, text)
    positions = mask_positions(encoding, model.vocabulary)
    words = tuple(split_into_tokens(model, encoding, p, candidates) for p in positions)
    check_work(sum(tokens_read(encoding, own) for own in words), most_work)
    return Prompt(encoding, positions, words)


def mask_fillings(
    model: MaskedLM,
    prompt: Prompt,
    part: slice,
    values: scoring.Exponentials,
    log_probs: np.ndarray,
    top_k: int | None,
) -> list[MaskFilling]:
    """What `fill` says at the M masks of a part, given its `distributions` and their logarithms."""
    top = scoring.top_k(log_probs, top_k)  # of [M, V]
    entropies = values.entropy_nats.tolist()
    masks = []
    for row, (position, words) in enumerate(
        zip(prompt.positions[part], prompt.words[part], strict=True)
    ):
        best = candidates_of(model.vocabulary, top.token_ids[row], top.nll_nats[row])
        own = log_probs[row : row + 1]
        scored = word_scores(model, prompt.encoding, position, words, own)
        masks.append(MaskFilling(position, entropies[row], best, scored))
    return masks


def best_joint(
    model: MaskedLM, prompt: Prompt, joint: int, beam_width: int = BEAM_WIDTH
) -> tuple[JointFilling, ...]:
    """The joint fillings that `fill` lists; none where there is one mask or too many."""
    if not joint or not 1 < len(prompt.positions) <= MAX_JOINT_MASKS:
        return ()
    width = max(beam_width, joint)
    return joint_fillings(model, prompt.encoding, count=joint, beam_width=width)


def check_work(wanted: int, most: int | None) -> None:
    """Refuse candidates for which the model would read more tokens than allowed."""
    if most is not None and wanted > most:
        raise OptionError(
            f"these candidates at these masks make the model read {wanted:,} tokens, and here "
            f"{most:,} are allowed: give fewer candidates, fewer masks or a shorter text"
        )


def score_candidates(
    model: MaskedLM, text: str, words: Sequence[str], *, most_work: int | None = None
) -> tuple[tuple[ScoredWord, ...], ...]:
    """Probability of given words at each mask, whatever the number of their sub-tokens.

    Args:
        model: from `load_model`.
        text: with one mask or more.
        words: at least one; a raw vocabulary string with its mark (`##ing`) counts as itself.
        most_work: as for `fill`.

    Returns:
        One tuple per mask, from left to right, of one entry per word, in the order given.

    Raises:
        FillmaskError: as `fill`, and if no word is given.
    """
    if not words:
        raise OptionError("no candidate words were given: separate them by commas, as in: cat, dog")
    filling = fill(model, text, top_k=1, candidates=words, joint=0, most_work=most_work)
    return tuple(mask.scored for mask in filling.masks)


def unscorable(model: MaskedLM, text: str, words: Sequence[str]) -> dict[str, str]:
    """Which of some words cannot be scored at the masks of a text, and why, in words.

    Raises:
        TextError: if the text itself cannot be predicted.
    """
    encoding = encode_masked(model, text)
    positions = mask_positions(encoding, model.vocabulary)

    def problem(word: str) -> str:
        try:
            for position in positions:
                split_into_tokens(model, encoding, position, [word])
        except FillmaskError as error:
            return str(error)
        return ""

    problems = {word: problem(word) for word in words}
    return {word: why for word, why in problems.items() if why}


def score_candidate_at(
    model: MaskedLM, text: str, word: str, mask: int, *, most_work: int | None = None
) -> ScoredWord:
    """`score_candidates` for one word at one mask, its number counted from the left, from 0."""
    encoding = encode_masked(model, text)
    position = mask_positions(encoding, model.vocabulary)[mask]
    pieces = split_into_tokens(model, encoding, position, [word])
    check_work(tokens_read(encoding, pieces), most_work)
    log_probs = log_probabilities_at(model, [encoding.ids], [position])  # [1, V]
    return word_scores(model, encoding, position, pieces, log_probs)[0]


def fill_at(
    model: MaskedLM, ids: Sequence[int], position: int, target: int, *, top_k: int
) -> MaskFilling:
    """What the model puts at one position of a text that is given as T token ids.

    Args:
        model: from `load_model`.
        ids: with special tokens, as the model is to read them; not only masks can be asked about.
        position: in [0, T).
        target: id of a token, which is scored as the one word that was asked about.
        top_k: tokens listed, best first.
    """
    values = exponentials_at(model, [ids], [position])
    log_probs = values.log_probabilities  # [1, V]
    top = scoring.top_k(log_probs, top_k)
    best = candidates_of(model.vocabulary, top.token_ids[0], top.nll_nats[0])
    nll = float(scoring.target_nll_nats(log_probs, np.array([target]))[0])
    rank = int(scoring.ranks(log_probs, np.array([target]))[0])
    part = ScoredPart(target, model.vocabulary.token(target), nll)
    word = ScoredWord(model.vocabulary.word(target), nll, float(np.exp(-nll)), rank, (part,))
    return MaskFilling(position, float(values.entropy_nats[0]), best, (word,))


def candidates_of(
    vocabulary: Vocabulary, token_ids: np.ndarray, nlls: np.ndarray
) -> tuple[Candidate, ...]:
    """Records of some tokens at one mask: int64 [K] and float64 [K], ranked as they stand."""
    tokens = [(vocabulary.token(index), vocabulary.word(index)) for index in token_ids.tolist()]
    columns = zip(token_ids.tolist(), tokens, np.exp(-nlls).tolist(), nlls.tolist(), strict=True)
    return tuple(
        Candidate(rank, token_id, token, word, probability, nll)
        for rank, (token_id, (token, word), probability, nll) in enumerate(columns, start=1)
    )
