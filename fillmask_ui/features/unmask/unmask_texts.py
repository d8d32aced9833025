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

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.batching import plan_batches, windows
from fillmask_ui.errors import FillmaskError, OptionError
from fillmask_ui.features.unmask.decoding_history import (
    DecodingStep,
    FilledToken,
    HiddenPosition,
    Unmasked,
)
from fillmask_ui.features.unmask.sampling import (
    Distributions,
    WritableTokens,
    choose_positions,
    choose_tokens,
    confidences,
)
from fillmask_ui.features.unmask.unmasking_options import UnmaskingConfig
from fillmask_ui.filling.candidates import candidates_of
from fillmask_ui.filling.prompt import encode_masked, filled_text, mask_positions
from fillmask_ui.filling.words import raw_logits_at, view_nlls
from fillmask_ui.protocol import MaskedLM, ModelLike, Vocabulary, as_model
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
        raise OptionError(f"the number of new tokens must be at least 1; it was {new_tokens}")
    return " ".join(filter(str.strip, [prefix, *[vocabulary.mask_token] * new_tokens, suffix]))


def unmask(
    model: ModelLike, text: str, config: UnmaskingConfig | None = None
) -> Iterator[DecodingStep]:
    """Fill the masks of a text step by step, by default the surest first; errors as of `fill`."""
    model = as_model(model)
    decoding = _begin(model, text, config)
    while decoding.hidden:
        yield from _steps_together(model, [decoding])[0]


def finish(
    model: ModelLike,
    text: str,
    config: UnmaskingConfig | None = None,
    on_step: Callable[[DecodingStep], None] | None = None,
) -> Unmasked:
    """The result of `unmask`; `on_step` is called with each step."""
    model = as_model(model)
    decoding = _begin(model, text, config)
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
    writable = WritableTokens(model, config or UnmaskingConfig())
    for window in windows(texts, lambda _: 1, max_size=WINDOW_TEXTS, max_items=WINDOW_TEXTS):
        decodings = [_begin_or_error(model, text, config, writable) for text in window]
        running = [decoding for decoding in decodings if isinstance(decoding, Decoding)]
        while running := [decoding for decoding in running if decoding.hidden]:
            plan = plan_batches(
                [len(decoding.ids) for decoding in running],
                max_tokens=BATCH_TOKENS,
                targets=[len(decoding.hidden) for decoding in running],
                max_targets=BATCH_POSITIONS,
            )
            for batch in plan:
                _steps_together(model, [running[index] for index in batch])
        for decoding in decodings:
            yield decoding if isinstance(decoding, FillmaskError) else _result(model, decoding)


@dataclass(eq=False)
class Decoding:
    """One text from masks to words, a call of the model at a time.

    What it draws comes from the seed and the text, so that a batch changes nothing.
    """

    encoding: Encoding  # with at least one mask
    vocabulary: Vocabulary  # of the model
    config: UnmaskingConfig
    writable: WritableTokens  # which tokens may be written where
    positions: Sequence[int] | None = None  # of the masks to fill, ascending; None for all
    keep_hidden: bool = True  # whether steps have `Step.hidden`

    def __post_init__(self) -> None:
        masks = mask_positions(self.encoding, self.vocabulary)
        self.initial = masks if self.positions is None else tuple(self.positions)
        self.ids = list(self.encoding.ids)
        self.steps: list[DecodingStep] = []
        self._filled: dict[int, FilledToken] = {}
        self._rng = np.random.default_rng([self.config.seed, *self.encoding.ids])

    @property
    def hidden(self) -> tuple[int, ...]:
        return tuple(position for position in self.initial if position not in self._filled)

    @property
    def text(self) -> str:
        ids = {position: token.token_id for position, token in self._filled.items()}
        return filled_text(self.encoding, self.vocabulary, ids)

    def advance(self, logits: np.ndarray, seconds: float) -> list[DecodingStep]:
        """Make steps by the logits at the hidden positions, float32 [M, V], until one fills some.

        `seconds` is what the model took, which the first of them is given.
        """
        hidden, values = self.hidden, scoring.exponentials(logits)
        allowed = self.writable.allowed(self.encoding, self.ids, hidden)
        log_probs = values.log_probabilities
        distributions = Distributions(
            log_probs, values.entropy_nats, writable=np.where(allowed, log_probs, -np.inf)
        )
        states = self._states(distributions, hidden) if self.keep_hidden else ()
        steps = [self._step(distributions, hidden, states, seconds)]
        while not steps[-1].filled:
            steps.append(self._step(distributions, hidden, states, 0.0))
        return steps

    def _step(
        self,
        distributions: Distributions,
        hidden: Sequence[int],
        states: tuple[HiddenPosition, ...],
        seconds: float,
    ) -> DecodingStep:
        left = (self.config.max_steps or len(self.initial)) - len(self.steps)
        chosen = choose_positions(distributions, self.config, left, self._rng)
        tokens = choose_tokens(distributions, chosen, self.config, self._rng)
        filled = [
            self._token(hidden[index], token_id, float(distributions.log_probs[index, token_id]))
            for index, token_id in zip(chosen.tolist(), tokens.tolist(), strict=True)
        ]
        remasked = self._remasked() if left > 1 else ()
        for token in remasked:
            del self._filled[token.position]
            self.ids[token.position] = self.vocabulary.mask_id
        for token in filled:
            self._filled[token.position] = token
            self.ids[token.position] = token.token_id
        gain = math.fsum(
            [token.log_probability_nats for token in filled]
            + [-token.log_probability_nats for token in remasked]
        )
        before = self.steps[-1].total_log_probability_nats if self.steps else 0.0
        step = DecodingStep(
            number=len(self.steps) + 1,
            ids=tuple(self.ids),
            hidden=states,
            filled=tuple(filled),
            remasked=tuple(remasked),
            log_probability_nats=gain,
            total_log_probability_nats=before + gain,
            duration_seconds=seconds,
        )
        self.steps.append(step)
        return step

    def _states(
        self, distributions: Distributions, hidden: Sequence[int]
    ) -> tuple[HiddenPosition, ...]:
        top = scoring.top_k(distributions.writable, SHOWN)
        sure = confidences(distributions, self.config.order).tolist()
        states = zip(hidden, sure, top.token_ids, top.nll_nats, strict=True)
        return tuple(
            HiddenPosition(position, confidence, candidates_of(self.vocabulary, ids, nlls))
            for position, confidence, ids, nlls in states
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
    ids = [tuple(decoding.ids) for decoding in decodings for _ in decoding.hidden]
    positions = [position for decoding in decodings for position in decoding.hidden]
    stops = np.cumsum([len(decoding.hidden) for decoding in decodings])
    return np.split(raw_logits_at(model, ids, positions), stops[:-1])


def pseudo_perplexity(model: MaskedLM, ids: Sequence[int]) -> float:
    """As the metric of that name: e^ of the mean NLL of each token that is not special."""
    vocabulary = model.vocabulary
    mask_id = vocabulary.mask_id
    views = [
        ((*ids[:position], mask_id, *ids[position + 1 :]), position, token_id)
        for position, token_id in enumerate(ids)
        if token_id not in vocabulary.special_ids
    ]
    losses = view_nlls(model, views).tolist()
    mean = math.fsum(losses) / len(losses)
    return math.exp(mean) if mean < 700 else math.inf


def _begin(
    model: MaskedLM,
    text: str,
    config: UnmaskingConfig | None,
    writable: WritableTokens | None = None,
) -> Decoding:
    config = config or UnmaskingConfig()
    encoding = encode_masked(model, text)
    return Decoding(encoding, model.vocabulary, config, writable or WritableTokens(model, config))


def _begin_or_error(
    model: MaskedLM, text: str, config: UnmaskingConfig | None, writable: WritableTokens
) -> Decoding | FillmaskError:
    try:
        return _begin(model, text, config, writable)
    except FillmaskError as error:
        return error  # the others finish


def _steps_together(model: MaskedLM, decodings: Sequence[Decoding]) -> list[list[DecodingStep]]:
    started = time.perf_counter()
    logits = logits_of(model, decodings)
    seconds = time.perf_counter() - started
    return [
        decoding.advance(text_logits, seconds)
        for decoding, text_logits in zip(decodings, logits, strict=True)
    ]


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
