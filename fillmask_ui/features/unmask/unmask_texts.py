"""Iterative unmasking: many masks filled step by step.

Definition. Each step predicts all positions that are still hidden, chooses some of them
(`choose_positions`), writes a token at each (`choose_tokens`), and goes on; the last step fills all
that are left. Tokens of one step do not see each other. A step with fewer masks than steps left
fills none; the next one has the same text, so that the model is not asked again.

Rivals: filling all masks at once, as `fill` shows them, lets no token see another; the chain rule
from left to right sees the others but not the right side.

Source:
    Mask-predict, arXiv:1904.09324; the order by confidence, MaskGIT, arXiv:2202.04200.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.batching import plan_batches, windows
from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.features.unmask.decoding_history import FilledToken, HiddenPosition, Step, Unmasked
from fillmask_ui.features.unmask.sampling import (
    Distributions,
    Pieces,
    choose_positions,
    choose_tokens,
    confidences,
)
from fillmask_ui.features.unmask.unmasking_options import UnmaskingConfig
from fillmask_ui.filling.candidates import candidates_of
from fillmask_ui.filling.prompt import encode_masked, filled_text, mask_positions
from fillmask_ui.filling.words import raw_logits_at, view_nlls
from fillmask_ui.protocol import MaskedLM, Vocabulary
from fillmask_ui.records import Encoding

BATCH_TOKENS = 2_048  # padding counted
BATCH_POSITIONS = 128  # M of them bring M x V logits
WINDOW_TEXTS = 64  # decoded at a time
SHOWN = 5  # candidates that a step keeps of each hidden position


def masked_prompt(
    vocabulary: Vocabulary, new_tokens: int, *, prefix: str = "", suffix: str = ""
) -> str:
    """A text with so many masks between a prefix and a suffix."""
    if new_tokens < 1:
        raise OptionError(f"at least 1 token must be hidden; {new_tokens} were asked for")
    return " ".join(filter(str.strip, [prefix, *[vocabulary.mask_token] * new_tokens, suffix]))


def unmask(model: MaskedLM, text: str, config: UnmaskingConfig | None = None) -> Iterator[Step]:
    """Fill the masks of a text step by step, by default the surest first; errors as of `fill`."""
    decoding = _begun(model, text, config)
    while decoding.hidden:
        yield from _steps_together(model, [decoding])[0]


def finish(
    model: MaskedLM,
    text: str,
    config: UnmaskingConfig | None = None,
    on_step: Callable[[Step], None] | None = None,
) -> Unmasked:
    """`unmask` to its end; `on_step` is called with each step."""
    decoding = _begun(model, text, config)
    while decoding.hidden:
        (steps,) = _steps_together(model, [decoding])
        if on_step is not None:
            for step in steps:
                on_step(step)
    return _result(model, decoding)


def unmask_all(
    model: MaskedLM, texts: Iterable[str], config: UnmaskingConfig | None = None
) -> Iterator[Unmasked | FillmaskError]:
    """Results of texts in batches, in order, each as if alone, or its error."""
    pieces = Pieces(model, config or UnmaskingConfig())
    for window in windows(texts, lambda _: 1, max_size=WINDOW_TEXTS, max_items=WINDOW_TEXTS):
        decodings = [_tried(model, text, config, pieces) for text in window]
        running = [one for one in decodings if isinstance(one, Decoding)]
        while running := [one for one in running if one.hidden]:
            plan = plan_batches(
                [len(one.ids) for one in running],
                max_tokens=BATCH_TOKENS,
                targets=[len(one.hidden) for one in running],
                max_targets=BATCH_POSITIONS,
            )
            for batch in plan:
                _steps_together(model, [running[index] for index in batch])
        for one in decodings:
            yield one if isinstance(one, FillmaskError) else _result(model, one)


@dataclass(eq=False)
class Decoding:
    """One text from masks to words, a call of the model at a time.

    What it draws comes from the seed and the text, so that a batch changes nothing.
    """

    encoding: Encoding  # with at least one mask
    vocabulary: Vocabulary  # of the model
    config: UnmaskingConfig
    pieces: Pieces  # which tokens may be written where
    positions: Sequence[int] | None = None  # of the masks to fill, ascending; None for all
    keep_hidden: bool = True  # whether steps have `Step.hidden`

    def __post_init__(self) -> None:
        masks = mask_positions(self.encoding, self.vocabulary)
        self.initial = masks if self.positions is None else tuple(self.positions)
        self.ids = list(self.encoding.ids)
        self.steps: list[Step] = []
        self._filled: dict[int, FilledToken] = {}
        self._rng = np.random.default_rng([self.config.seed, *self.encoding.ids])

    @property
    def hidden(self) -> tuple[int, ...]:
        return tuple(position for position in self.initial if position not in self._filled)

    @property
    def text(self) -> str:
        ids = {position: token.token_id for position, token in self._filled.items()}
        return filled_text(self.encoding, self.vocabulary, ids)

    def advance(self, logits: np.ndarray, seconds: float) -> list[Step]:
        """Make steps by the logits at the hidden positions, float32 [M, V], until one fills some.

        `seconds` is what the model took, which the first of them is given.
        """
        hidden, values = self.hidden, scoring.exponentials(logits)
        allowed = self.pieces.allowed(self.encoding, self.ids, hidden)
        log_probs = values.log_probabilities
        writable = np.where(allowed, log_probs, -np.inf)
        found = Distributions(log_probs, values.entropy_nats, writable)
        states = self._states(found, hidden) if self.keep_hidden else ()
        steps = [self._step(found, hidden, states, seconds)]
        while not steps[-1].filled:
            steps.append(self._step(found, hidden, states, 0.0))
        return steps

    def _step(
        self,
        found: Distributions,
        hidden: Sequence[int],
        states: tuple[HiddenPosition, ...],
        seconds: float,
    ) -> Step:
        left = (self.config.max_steps or len(self.initial)) - len(self.steps)
        chosen = choose_positions(found, self.config, left, self._rng)
        tokens = choose_tokens(found, chosen, self.config, self._rng)
        filled = [
            self._token(hidden[index], token_id, float(found.log_probs[index, token_id]))
            for index, token_id in zip(chosen.tolist(), tokens.tolist(), strict=True)
        ]
        remasked = self._remasked() if left > 1 else ()
        for token in remasked:
            del self._filled[token.position]
            self.ids[token.position] = self.vocabulary.mask_id
        for token in filled:
            self._filled[token.position] = token
            self.ids[token.position] = token.token_id
        gained = [token.log_probability_nats for token in filled]
        own = math.fsum([*gained, *(-token.log_probability_nats for token in remasked)])
        before = self.steps[-1].total_log_probability_nats if self.steps else 0.0
        step = Step(
            number=len(self.steps) + 1,
            ids=tuple(self.ids),
            hidden=states,
            filled=tuple(filled),
            remasked=tuple(remasked),
            log_probability_nats=own,
            total_log_probability_nats=before + own,
            duration_seconds=seconds,
        )
        self.steps.append(step)
        return step

    def _states(self, found: Distributions, hidden: Sequence[int]) -> tuple[HiddenPosition, ...]:
        top = scoring.top_k(found.writable, SHOWN)
        sure = confidences(found, self.config.order).tolist()
        shown = zip(hidden, sure, top.token_ids, top.nll_nats, strict=True)
        return tuple(
            HiddenPosition(position, own, candidates_of(self.vocabulary, ids, nlls))
            for position, own, ids, nlls in shown
        )

    def _token(self, position: int, token_id: int, log_probability: float) -> FilledToken:
        token = self.vocabulary.token(token_id)
        return FilledToken(position, token_id, token, math.exp(log_probability))

    def _remasked(self) -> tuple[FilledToken, ...]:
        """The least probable tokens of earlier steps; of a tie the one further left."""
        earlier = self._filled.values()
        worst = sorted(earlier, key=lambda token: (token.probability, token.position))
        return tuple(sorted(worst[: self.config.remask], key=lambda token: token.position))


def logits_of(model: MaskedLM, decodings: Sequence[Decoding]) -> list[np.ndarray]:
    """Float32 [M, V] for each text at its M hidden positions, from one call."""
    ids = [tuple(one.ids) for one in decodings for _ in one.hidden]
    places = [place for one in decodings for place in one.hidden]
    ends = np.cumsum([len(one.hidden) for one in decodings])
    return np.split(raw_logits_at(model, ids, places), ends[:-1])


def pseudo_perplexity(model: MaskedLM, ids: Sequence[int]) -> float:
    """As the metric of that name: e^ of the mean NLL of each token that is not special."""
    vocabulary = model.vocabulary
    own = [place for place, token_id in enumerate(ids) if token_id not in vocabulary.special_ids]
    hidden = vocabulary.mask_id
    views = [((*ids[:place], hidden, *ids[place + 1 :]), place, ids[place]) for place in own]
    losses = view_nlls(model, views).tolist()
    mean = math.fsum(losses) / len(losses)
    return math.exp(mean) if mean < 700 else math.inf


def _begun(
    model: MaskedLM, text: str, config: UnmaskingConfig | None, pieces: Pieces | None = None
) -> Decoding:
    config = config or UnmaskingConfig()
    encoding = encode_masked(model, text)
    return Decoding(encoding, model.vocabulary, config, pieces or Pieces(model, config))


def _tried(*arguments: Any) -> Decoding | FillmaskError:
    try:
        return _begun(*arguments)
    except FillmaskError as error:
        return error  # the others finish


def _steps_together(model: MaskedLM, decodings: Sequence[Decoding]) -> list[list[Step]]:
    started = time.perf_counter()
    logits = logits_of(model, decodings)
    seconds = time.perf_counter() - started
    return [one.advance(part, seconds) for one, part in zip(decodings, logits, strict=True)]


def _result(model: MaskedLM, decoding: Decoding) -> Unmasked:
    return Unmasked(
        text=decoding.text,
        ids=tuple(decoding.ids),
        start=decoding.initial[0],
        hidden=decoding.initial,
        steps=tuple(decoding.steps),
        pseudo_perplexity=pseudo_perplexity(model, decoding.ids),
        signature=f"{model.signature}|{decoding.config.signature}",
    )
