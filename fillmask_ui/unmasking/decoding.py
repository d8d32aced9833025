"""Iterative unmasking of one text, one model answer at a time.

A `Decoding` says which positions are hidden, takes the model's logits there and makes a step of
them. Who drives it decides how many texts share a batch; what it draws comes from the seed and
the text alone, so that a batch changes nothing.
"""

import math
from collections.abc import Sequence

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.filling.predict import candidates_of
from fillmask_ui.filling.prompt import filled_text, mask_positions
from fillmask_ui.protocol import Vocabulary
from fillmask_ui.records import Encoding
from fillmask_ui.unmasking.choosing import Allowed, choose_positions, choose_tokens, confidences
from fillmask_ui.unmasking.config import UnmaskingConfig
from fillmask_ui.unmasking.pieces import Pieces
from fillmask_ui.unmasking.steps import FilledToken, HiddenPosition, Step

# Tokens that a step keeps of each hidden position.
SHOWN = 5


class Decoding:
    """One text on its way from masks to words.

    Args:
        encoding: with at least one mask.
        vocabulary: of the model.
        config: how it is unmasked.
        pieces: which tokens may be written where.
        positions: the masks that are filled, from left to right; all of the text if not given.
        keep_hidden: whether steps keep what they saw at each hidden position, `Step.hidden`.
    """

    def __init__(
        self,
        encoding: Encoding,
        vocabulary: Vocabulary,
        config: UnmaskingConfig,
        pieces: Pieces,
        positions: Sequence[int] | None = None,
        *,
        keep_hidden: bool = True,
    ) -> None:
        self.encoding = encoding
        self.config = config
        self.initial = tuple(
            mask_positions(encoding, vocabulary) if positions is None else positions
        )
        self.ids = list(encoding.ids)
        self.steps: list[Step] = []
        self._vocabulary = vocabulary
        self._pieces = pieces
        self._keep_hidden = keep_hidden
        self._most_steps = config.max_steps or len(self.initial)
        self._filled: dict[int, FilledToken] = {}
        self._rng = np.random.default_rng([config.seed, *encoding.ids])

    @property
    def hidden(self) -> tuple[int, ...]:
        """Positions that are hidden now, from left to right."""
        return tuple(position for position in self.initial if position not in self._filled)

    @property
    def text(self) -> str:
        """The text as far as it is filled."""
        ids = {position: token.token_id for position, token in self._filled.items()}
        return filled_text(self.encoding, self._vocabulary, ids)

    def advance(self, logits: np.ndarray, seconds: float) -> Step:
        """Make a step of the logits at the hidden positions, float32 [M, V]."""
        hidden = self.hidden
        found = self._allowed(logits, hidden)
        left = self._most_steps - len(self.steps)
        chosen = choose_positions(found, self.config, left, self._rng)
        tokens = choose_tokens(found, chosen, self.config, self._rng)
        filled = [
            self._token(hidden[index], token_id, float(found.log_probs[index, token_id]))
            for index, token_id in zip(chosen.tolist(), tokens.tolist(), strict=True)
        ]
        states = self._states(found, hidden) if self._keep_hidden else ()
        remasked = self._remasked() if left > 1 else ()
        for token in remasked:
            del self._filled[token.position]
            self.ids[token.position] = self._vocabulary.mask_id
        for token in filled:
            self._filled[token.position] = token
            self.ids[token.position] = token.token_id
        own = math.fsum(
            [
                *(t.log_probability_nats for t in filled),
                *(-t.log_probability_nats for t in remasked),
            ]
        )
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

    def _allowed(self, logits: np.ndarray, hidden: Sequence[int]) -> Allowed:
        allowed = self._pieces.allowed(self.encoding, self.ids, hidden)
        return Allowed.of(scoring.exponentials(logits), allowed)

    def _states(self, found: Allowed, hidden: Sequence[int]) -> tuple[HiddenPosition, ...]:
        top = scoring.top_k(found.masked, SHOWN)
        sure = confidences(found, self.config.order).tolist()
        shown = zip(hidden, sure, top.token_ids, top.nll_nats, strict=True)
        return tuple(
            HiddenPosition(position, own, candidates_of(self._vocabulary, ids, nlls))
            for position, own, ids, nlls in shown
        )

    def _token(self, position: int, token_id: int, log_probability: float) -> FilledToken:
        token = self._vocabulary.token(token_id)
        return FilledToken(position, token_id, token, math.exp(log_probability))

    def _remasked(self) -> tuple[FilledToken, ...]:
        """The least probable tokens of earlier steps, the one further left of a tie first."""
        earlier = sorted(self._filled.values(), key=lambda token: token.position)
        worst = sorted(earlier, key=lambda token: token.probability)[: self.config.remask]
        return tuple(sorted(worst, key=lambda token: token.position))
