"""What is usually used instead, on PyTorch and on the same weights; only this file imports torch.

Each peer is written as usual, with full logits [B, T, V], but gets more than it would
have: the hidden tokens of this project ready-made, inference mode, and all cores.
"""

import importlib.util
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from fillmask_ui.batching import pad
from fillmask_ui.bench import timing
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.evaluation.measure import prepared
from fillmask_ui.evaluation.rows import Prepared
from fillmask_ui.models.load import find_files
from fillmask_ui.models.loading_progress import quiet_transformers
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.models.torch_model import read_torch
from fillmask_ui.models.vocabulary import load_vocabulary, read_tokenizer

_TRAINER_BATCH = 8


class Peer:
    """A float32 model of transformers on the CPU, and the tokenizer beside it."""

    name: ClassVar[str]  # in rows
    work: ClassVar[str] = "cross-entropy"  # or another metric, or `sentence`

    def __init__(self, folder: Path, max_tokens: int, shape: timing.EncoderShape | None) -> None:
        self._vocabulary = load_vocabulary(folder, str(folder))
        self.max_tokens, self._shape = max_tokens, shape
        with quiet_transformers():
            # The type is named, as transformers would compute in the one that is stored.
            files = find_files(ModelChoice(str(folder), runtime="torch"))
            self._model = read_torch(files, torch.float32, torch.device("cpu"))
            self._tokenizer = read_tokenizer(folder, str(folder))
            self._load()

    def _load(self) -> None:
        """What a library needs beside the model."""

    def evaluation(self, texts: Sequence[str], metric: str) -> timing.Timing:
        """One pass over the texts; they are tokenized and hidden before the clock starts."""
        config = EvaluationConfig(metric, max_tokens=self.max_tokens)
        ready = list(prepared(self._vocabulary, texts, config))
        sizes = [(len(item.hidden.ids), len(item.hidden.cols)) for item in ready]
        with torch.inference_mode():
            seconds, total = timing.timed(lambda: self._summed_nll(ready), 1)
        loss = total / sum(asked for _, asked in sizes)
        return timing.evaluation_timing(seconds, loss, sizes, metric, self._shape)

    def _summed_nll(self, texts: Sequence[Prepared]) -> float:
        """Losses of all hidden tokens, summed, in nats."""
        raise NotImplementedError


class PublishedLoop(Peer):
    """The published evaluator: a text at a time, the loss of the full logits [1, T, V]."""

    name = "published loop"

    def _summed_nll(self, texts: Sequence[Prepared]) -> float:
        total = 0.0
        for text in texts:
            ids = torch.from_numpy(text.hidden.input_ids)
            logits = self._model(input_ids=ids[None]).logits[0]  # [T, V]
            total += cross_entropy(logits, _labels(text), reduction="sum").item()
        return total


class TrainerLoop(Peer):
    """As `Trainer.evaluate`: eight texts in their order, padded; the model's own loss."""

    name = "Trainer-style loop"

    def _summed_nll(self, texts: Sequence[Prepared]) -> float:
        total = 0.0
        for start in range(0, len(texts), _TRAINER_BATCH):
            group = texts[start : start + _TRAINER_BATCH]
            batch = pad([text.hidden.input_ids for text in group], self._vocabulary.pad_id)
            labels = torch.full(batch.input_ids.shape, -100)  # [B, T]
            for row, text in zip(labels, group, strict=True):
                row[: len(text.hidden.ids)] = _labels(text)
            output = self._model(
                input_ids=torch.from_numpy(batch.input_ids),
                attention_mask=torch.from_numpy(batch.attention_mask),
                labels=labels,
            )
            total += output.loss.item() * int((labels != -100).sum())
        return total


class OnePassPerToken(Peer):
    """Pseudo-perplexity by its definition: for each token a forward pass with it alone hidden."""

    name = "one pass per token"
    work = "pseudo-perplexity"

    def _summed_nll(self, texts: Sequence[Prepared]) -> float:
        total = 0.0
        for text in texts:
            tokens = zip(text.hidden.cols, text.hidden.true_ids, strict=True)
            for place, (col, true_id) in enumerate(tokens):
                ids = torch.from_numpy(text.hidden.view(place))
                logits = self._model(input_ids=ids[None]).logits[0]  # [T, V]
                total -= logits[col].log_softmax(-1)[true_id].item()
        return total


class Minicons(Peer):
    """The scorer of the library minicons, a text at a time with all its hidden variants."""

    name = "minicons"
    work = "pseudo-perplexity"

    def _load(self) -> None:
        from minicons.scorer import MaskedLMScorer

        self._scorer = MaskedLMScorer(self._model, "cpu", tokenizer=self._tokenizer)

    def _summed_nll(self, texts: Sequence[Prepared]) -> float:
        scores = (
            self._scorer.sequence_score([text.row.text], reduction=lambda own: own.sum().item())
            for text in texts
        )
        return -sum(score for (score,) in scores)


class FillMaskPipeline(Peer):
    """The fill-mask pipeline of transformers."""

    name = "fill-mask pipeline"
    work = "sentence"

    def _load(self) -> None:
        from transformers import pipeline

        own = {"model": self._model, "tokenizer": self._tokenizer}
        self._ask: Any = pipeline("fill-mask", **own, device="cpu")

    def sentence(self, texts: Sequence[str], tokens: int) -> timing.Timing | None:
        """Five candidates for the mask of a sentence; None if there is no such sentence."""
        text = timing.sentence(self._vocabulary, texts, tokens, self.max_tokens)
        if text is None:
            return None
        seconds, candidates = timing.timed_turn(lambda: self._ask(text, top_k=5))
        return timing.Timing(seconds, 1, -math.log(candidates[0]["score"]))


PEERS: dict[str, type[Peer]] = {
    peer.name: peer
    for peer in (FillMaskPipeline, PublishedLoop, TrainerLoop, OnePassPerToken, Minicons)
}


def installed_peers() -> list[type[Peer]]:
    """All but those whose library is missing; PyTorch is taken to be installed."""
    missing = importlib.util.find_spec("minicons") is None
    return [peer for peer in PEERS.values() if not (missing and peer is Minicons)]


def _labels(text: Prepared) -> torch.Tensor:
    """int64 [T], the true tokens at hidden positions, elsewhere -100, which torch ignores."""
    labels = np.full(len(text.hidden.ids), -100)
    labels[text.hidden.cols] = text.hidden.true_ids
    return torch.from_numpy(labels)
