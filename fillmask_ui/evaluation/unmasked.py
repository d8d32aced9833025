"""Texts filled step by step through the models, and what each said of the true tokens meanwhile.

Each model writes its own words, so two models see the same text only in the first step: rows have
the scores of both, and no difference of their logits.

Axes: M hidden positions of a text, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

import numpy as np

from fillmask_ui import scoring
from fillmask_ui.batching import Budget
from fillmask_ui.evaluation.batches import Batch, Scorer
from fillmask_ui.evaluation.prepare import Prepared
from fillmask_ui.evaluation.rows import EvaluatedText, UnmaskedScores
from fillmask_ui.evaluation.schemes.unmasking import Unmasking
from fillmask_ui.filling.words import ROWS_PER_CALL
from fillmask_ui.protocol import MaskedLM, Vocabulary
from fillmask_ui.unmasking.sampling import Pieces
from fillmask_ui.unmasking.unmask_texts import Decoding, logits_of, pseudo_perplexity
from fillmask_ui.unmasking.unmasking_options import UnmaskingConfig


class UnmaskingScorer(Scorer):
    """Models with one tokenizer, each of which fills the texts in its own way.

    Args:
        models: one, or two that are compared.
        batch_tokens: largest B * T.
        budget: bytes of logits that all threads together may hold.
        scheme: how the texts are filled.
        seed: of what is drawn.
    """

    def __init__(
        self,
        models: Sequence[MaskedLM],
        batch_tokens: int,
        budget: Budget,
        *,
        scheme: Unmasking,
        seed: int,
    ) -> None:
        super().__init__(models, batch_tokens, budget)
        self._config = UnmaskingConfig(**asdict(scheme.decoding), seed=seed)
        fitting = self._config.pieces == "fitting"
        self._pieces = [
            Pieces(model.vocabulary, model.signature.vocabulary_size, fitting=fitting)
            for model in models
        ]

    def score(self, batch: Batch) -> list[list[UnmaskedScores]]:
        """For each model the scores of each text of a batch; safe to call from many threads."""
        texts = [view.text for view in batch.views]
        return [
            self._unmask(model, pieces, texts)
            for model, pieces in zip(self._models, self._pieces, strict=True)
        ]

    def finished(
        self, batch: Batch, scores: list[list[UnmaskedScores]], done: frozenset[int]
    ) -> Iterator[EvaluatedText]:
        """All texts of a batch: each is one view."""
        for view, own, *second in zip(batch.views, *scores, strict=True):
            row = view.text.row
            if row.id not in done:
                yield EvaluatedText(**vars(row), scores=own, baseline=second[0] if second else None)

    def _unmask(
        self, model: MaskedLM, pieces: Pieces, texts: Sequence[Prepared]
    ) -> list[UnmaskedScores]:
        under_way = [_UnderWay(text, model.vocabulary, self._config, pieces) for text in texts]
        while running := [one for one in under_way if one.decoding.hidden]:
            positions = sum(len(one.decoding.hidden) for one in running)
            with self._room_for(positions):
                logits = logits_of(model, [one.decoding for one in running])
                for one, part in zip(running, logits, strict=True):
                    one.advance(part)
        return [self._scores(model, one) for one in under_way]

    def _scores(self, model: MaskedLM, finished: "_UnderWay") -> UnmaskedScores:
        columns, token = finished.columns(), model.vocabulary.token
        with self._room_for(ROWS_PER_CALL):
            perplexity = pseudo_perplexity(model, finished.decoding.ids)
        return UnmaskedScores(
            **columns,
            top_tokens=tuple(map(token, columns["top_ids"].tolist())),
            written_tokens=tuple(map(token, columns["written_ids"].tolist())),
            pseudo_perplexity=perplexity,
        )


class _UnderWay:
    """A text on its way, and what the steps said of its M hidden tokens."""

    def __init__(
        self, text: Prepared, vocabulary: Vocabulary, config: UnmaskingConfig, pieces: Pieces
    ) -> None:
        self._hidden = text.hidden
        ids = tuple(text.hidden.input_ids.tolist())
        seen = replace(text.encoding, ids=ids, tokens=tuple(map(vocabulary.token, ids)))
        places = text.hidden.cols.tolist()
        self.decoding = Decoding(seen, vocabulary, config, pieces, places, keep_hidden=False)
        self._entries: list[np.ndarray] = []  # of each step: which of the M it wrote
        self._found: list[dict[str, np.ndarray]] = []  # of each step: `UnmaskedScores` of these

    def advance(self, logits: np.ndarray) -> None:
        """One step, of the logits at the positions still hidden, float32 [hidden, V]."""
        hidden = self.decoding.hidden
        step = self.decoding.advance(logits, seconds=0.0)
        positions = [token.position for token in step.filled]
        if not positions:
            return
        entries = np.searchsorted(self._hidden.cols, positions)
        asked = logits[np.searchsorted(hidden, positions)]  # [written, V]
        targets = self._hidden.true_ids[entries]
        found = vars(scoring.score_targets(scoring.exponentials(asked), asked, targets)) | {
            "steps": np.full(len(positions), step.number),
            "written_ids": np.array([token.token_id for token in step.filled]),
            "written_probabilities": np.array([token.probability for token in step.filled]),
        }
        self._entries.append(entries)
        self._found.append(found)

    def columns(self) -> dict[str, np.ndarray]:
        """Arrays [M]; of a position that was hidden again, what its last step said."""
        entries = np.concatenate(self._entries)
        columns = {}
        for name in self._found[0]:
            values = np.concatenate([found[name] for found in self._found])
            columns[name] = np.empty(len(self._hidden.cols), values.dtype)
            columns[name][entries] = values  # where an entry is repeated the last value remains
        return columns
