"""Iterative unmasking, measured: what a model writes in place of masks, and the truth's losses.

Definition. Hide a share of the tokens, all shown as mask tokens; fill them step by step
(`unmask_texts`), and average -ln P(true token) at the step that wrote each position,
given all that the steps before it wrote.

Rivals: `uniform` and `suffix` predict all hidden tokens at once, so that none sees another; the
joint likelihood of a text would feed the true tokens back, this feeds the model its own.

Source:
    Mask-predict, arXiv:1904.09324; the share is an exact count, as in `uniform`.

Two models see the same text only in the first step: rows have the scores of both, and no difference
of their logits.

Axes: M hidden positions of a text, N texts, V vocabulary.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import ClassVar, cast

import numpy as np
from numpy.random import Generator

from fillmask_ui import scoring
from fillmask_ui.batching import Budget
from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.evaluation.batch_scoring import Batch, Scorer
from fillmask_ui.evaluation.catalogue import figure
from fillmask_ui.evaluation.metrics.metric import Metric, Reading
from fillmask_ui.evaluation.rows import (
    EvaluatedText,
    MaskedText,
    Prepared,
    TokenScores,
    UnmaskedScores,
)
from fillmask_ui.evaluation.running_sums import ExtraSums
from fillmask_ui.features.unmask.decoding_history import DecodingStep
from fillmask_ui.features.unmask.sampling import WritableTokens
from fillmask_ui.features.unmask.unmask_texts import Decoding, logits_of, pseudo_perplexity
from fillmask_ui.features.unmask.unmasking_options import UnmaskingConfig, UnmaskingOptions
from fillmask_ui.filling.words import ROWS_PER_CALL
from fillmask_ui.intervals import Interval, estimate_ratio, share_interval
from fillmask_ui.options import option
from fillmask_ui.protocol import MaskedLM


@dataclass(frozen=True)
class Unmasking(Metric):
    """Mean NLL of hidden tokens at the step that wrote their position."""

    name = "unmasking"
    label = "Unmasking"
    note = (
        "A share of the tokens is hidden and filled step by step and compared with the true ones."
    )
    hides = "a share of the tokens that is then filled step by step"
    figure_label = "Mean loss, filled step by step"
    figure_key = "unmasking_loss"
    one_by_one = True
    token_columns: ClassVar[Mapping[str, type]] = {
        "step": int,
        "written_id": int,
        "written_token": str,
        "written_probability": float,
    }

    hidden_share: float = option(
        0.15, "Share of the tokens to hide, above 0 and at most 1.", metavar="P", most=1
    )
    decoding: UnmaskingOptions = field(default_factory=UnmaskingOptions)  # how they are filled

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.hidden_share > 0:
            raise OptionError(
                "the hidden share must be above 0 and at most 1 (0.15 hides 15% of the tokens); "
                f"it was {self.hidden_share:g}"
            )

    def choose(self, positions: np.ndarray, rng: Generator) -> np.ndarray:
        """The share of the tokens that can be hidden, to the nearest whole one, at least one."""
        count = max(1, round(self.hidden_share * len(positions)))
        return np.sort(rng.permutation(positions)[:count])

    @property
    def signature(self) -> tuple[str, ...]:
        return (f"share:{self.hidden_share:g}", *self.decoding.signature.split("|"))

    def scorer(
        self, models: Sequence[MaskedLM], batch_tokens: int, budget: Budget, seed: int
    ) -> Scorer:
        config = UnmaskingConfig(**asdict(self.decoding), seed=seed)
        return UnmaskingScorer(models, batch_tokens, budget, config)

    def extra_sums(self) -> ExtraSums:
        return WrittenSums()

    def reading(self, row: MaskedText, entry: int, scores: TokenScores, mask_id: int) -> Reading:
        """As of `Metric`; a `DataError` if tokens were hidden again."""
        if self.decoding.remask:
            raise DataError(
                "this run hid tokens again that it had written (--remask), and stored what stood "
                "at the end: what the model read in between cannot be shown"
            )
        filled = cast("UnmaskedScores", scores)
        step, input_ids = filled.steps[entry], row.ids.copy()
        input_ids[row.cols] = np.where(filled.steps < step, filled.written_ids, mask_id)
        position, true_id = int(row.cols[entry]), int(row.true_ids[entry])
        scored = np.flatnonzero(filled.steps == step)
        return Reading(input_ids, scored, position, true_id, filled)


@dataclass(eq=False)
class UnmaskingScorer(Scorer):
    """Each of the models fills the texts by the config."""

    config: UnmaskingConfig

    def __post_init__(self) -> None:
        super().__post_init__()
        self._writable = [WritableTokens(model, self.config) for model in self.models]

    def score(self, batch: Batch) -> list[list[UnmaskedScores]]:
        texts = [view.text for view in batch.views]
        scores = [
            self._unmask(model, writable, texts)
            for model, writable in zip(self.models, self._writable, strict=True)
        ]
        return [list(text_scores) for text_scores in zip(*scores, strict=True)]

    def _unmask(
        self, model: MaskedLM, writable: WritableTokens, texts: Sequence[Prepared]
    ) -> list[UnmaskedScores]:
        decodings = [_ScoredDecoding(text, model, self.config, writable) for text in texts]
        while running := [decoding for decoding in decodings if decoding.hidden]:
            with self._room_for(sum(len(decoding.hidden) for decoding in running)):
                for decoding, logits in zip(running, logits_of(model, running), strict=True):
                    decoding.advance(logits, seconds=0.0)
        scores = []
        for decoding in decodings:
            with self._room_for(ROWS_PER_CALL):
                scores.append(decoding.scores(pseudo_perplexity(model, decoding.ids)))
        return scores


class _ScoredDecoding(Decoding):
    """A text that is being filled, and what the steps said of its M hidden tokens."""

    def __init__(
        self, text: Prepared, model: MaskedLM, config: UnmaskingConfig, writable: WritableTokens
    ) -> None:
        ids, vocabulary = tuple(text.hidden.input_ids.tolist()), model.vocabulary
        seen = replace(text.encoding, ids=ids, tokens=tuple(map(vocabulary.token, ids)))
        positions = text.hidden.cols.tolist()
        super().__init__(seen, vocabulary, config, writable, positions, keep_hidden=False)
        self._true = text.hidden
        # Arrays of `UnmaskedScores`, [M]; of a position that was hidden again, of its last step.
        self.columns: dict[str, np.ndarray] = {}

    def advance(self, logits: np.ndarray, seconds: float) -> list[DecodingStep]:
        hidden = self.hidden
        steps = super().advance(logits, seconds)
        positions = [token.position for token in steps[-1].filled]
        entries = np.searchsorted(self._true.cols, positions)
        written_logits = logits[np.searchsorted(hidden, positions)]  # [written, V]
        targets = self._true.true_ids[entries]
        columns = vars(
            scoring.score_targets(scoring.exponentials(written_logits), written_logits, targets)
        ) | {
            "steps": np.full(len(positions), steps[-1].number),
            "written_ids": np.array([token.token_id for token in steps[-1].filled]),
            "written_probabilities": np.array([token.probability for token in steps[-1].filled]),
        }
        for name, values in columns.items():
            empty = np.empty(len(self._true.cols), values.dtype)
            self.columns.setdefault(name, empty)[entries] = values
        return steps

    def scores(self, perplexity: float) -> UnmaskedScores:
        """What the steps said, with the pseudo-perplexity of the finished text."""
        token, columns = self.vocabulary.token, self.columns
        return UnmaskedScores(
            **columns,
            top_tokens=tuple(map(token, columns["top_ids"].tolist())),
            written_tokens=tuple(map(token, columns["written_ids"].tolist())),
            pseudo_perplexity=perplexity,
        )


@dataclass(frozen=True, kw_only=True)
class WrittenFigures:
    """What one model wrote."""

    # Share of texts with every hidden token right, and of hidden tokens where the true one stands.
    exact_match: float = figure("exact match", "", "exact_match_interval", share=True)
    infill_token_accuracy: float = figure(
        "infill token accuracy",
        "",
        "infill_token_accuracy_interval",
        share=True,
        note="of the hidden tokens written right",
    )
    mean_pseudo_perplexity: float = figure(
        "mean pseudo-perplexity of the finished texts", "", "mean_pseudo_perplexity_interval"
    )
    # Of a long tail the mean is that of a few texts.
    median_pseudo_perplexity: float = figure("median pseudo-perplexity of the finished texts")
    # Distinct tokens, and pairs of neighbours that were both written, by all written tokens:
    # Li et al. 2016, arXiv:1510.03055.
    distinct_1: float = figure("distinct-1")
    distinct_2: float = figure("distinct-2")
    exact_match_interval: Interval | None
    infill_token_accuracy_interval: Interval | None
    mean_pseudo_perplexity_interval: Interval | None


class WrittenSums(ExtraSums):
    """The sums behind `WrittenFigures`."""

    def __init__(self) -> None:
        self.texts = array("d")  # per text: right and hidden tokens, pseudo-perplexity
        self.tokens: set[int] = set()  # different ids
        self.pairs: set[tuple[int, int]] = set()  # ids of neighbours that were both written

    def add(self, row: EvaluatedText, scores: TokenScores) -> None:
        filled = cast("UnmaskedScores", scores)
        written = filled.written_ids.tolist()
        right = int((filled.written_ids == row.true_ids).sum())
        self.texts.extend((right, len(written), filled.pseudo_perplexity))
        self.tokens.update(written)
        adjacent = np.flatnonzero(np.diff(row.cols) == 1).tolist()
        self.pairs.update((written[index], written[index + 1]) for index in adjacent)

    def figures(self, order: np.ndarray, quick: bool) -> WrittenFigures:
        right, hidden, perplexity = np.array(self.texts).reshape(-1, 3)[order].T.copy()  # [N] each
        texts, tokens = len(order), int(hidden.sum())
        exact = int((right == hidden).sum())
        accuracy = estimate_ratio(right, hidden, quick, least=0.0)
        spread = right.any() and not np.array_equal(right, hidden)  # to judge by
        mean = estimate_ratio(perplexity, np.ones(texts), quick, least=1.0)
        return WrittenFigures(
            exact_match=exact / texts,
            exact_match_interval=share_interval(exact, texts),
            infill_token_accuracy=accuracy.value,
            infill_token_accuracy_interval=(
                accuracy.map(lambda share: min(share, 1.0)).interval if spread else None
            ),
            mean_pseudo_perplexity=mean.value,
            mean_pseudo_perplexity_interval=mean.interval,
            median_pseudo_perplexity=float(np.median(perplexity)),
            distinct_1=len(self.tokens) / tokens,
            distinct_2=len(self.pairs) / tokens,
        )
