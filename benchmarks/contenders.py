"""What `speed.py` measures: this project's models, and what is usually used instead.

Peers run on PyTorch, on the same weights. Each is written as usual, with the logits of all
positions [B, T, V], but gets more than it would have at home: tokens that this project has hidden
before the clock starts, inference mode, and all cores.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fillmask_ui import EvaluationConfig, evaluate, fill, load_model, summarize
from fillmask_ui.batching import pad
from fillmask_ui.evaluation.measure import prepared
from fillmask_ui.evaluation.rows import Prepared
from fillmask_ui.features.quantize.timing import sentence, timed

CROSS_ENTROPY, PSEUDO_PERPLEXITY = "cross-entropy", "pseudo-perplexity"
TRAINER_BATCH = 8  # texts; the default of `Trainer.evaluate`


@dataclass(frozen=True)
class Timing:
    """One run of a task."""

    seconds: float
    tokens: int  # that were read; of pseudo-perplexity those that were hidden
    loss: float  # mean NLL of the hidden tokens, or NLL of the first candidate, in nats


class FillmaskModel:
    """A model of this project: from text to records."""

    tasks = (CROSS_ENTROPY, PSEUDO_PERPLEXITY, "sentence")

    def __init__(self, reference: str, runtime: str = "auto", dtype: str | None = None) -> None:
        self.model = load_model(reference, runtime=runtime, dtype=dtype)

    def evaluation(self, texts: Sequence[str], metric: str) -> Timing:
        """`evaluate` and `summarize`, with reading and hiding."""
        model, config = self.model, EvaluationConfig(metric, max_tokens=self.model.max_tokens)
        width = model.signature.vocabulary_size

        def measure() -> float:
            rows = evaluate(model, texts, config)
            return summarize(rows, config=config, vocabulary_size=width).model.mean_nll_nats

        (seconds,), loss = timed(measure, 1)
        return Timing(seconds, token_count(prepared(model.vocabulary, texts, config), metric), loss)

    def sentence(self, texts: Sequence[str], tokens: int) -> Timing | None:
        """`fill` of a sentence of so many tokens; None if the texts give none."""
        text = sentence(self.model.vocabulary, texts, tokens, self.model.max_tokens)
        if text is None:
            return None
        (seconds,), filling = timed(lambda: fill(self.model, text, top_k=5), 1)
        return Timing(seconds, tokens, filling.masks[0].candidates[0].nll_nats)


def token_count(texts: Any, metric: str) -> int:
    """Tokens of hidden texts; of pseudo-perplexity those that are hidden, each in its own view."""
    if metric == PSEUDO_PERPLEXITY:
        return sum(len(text.hidden.cols) for text in texts)
    return sum(len(text.hidden.ids) for text in texts)


class Peer:
    """A float32 model of transformers on the CPU."""

    tasks: tuple[str, ...] = (CROSS_ENTROPY,)

    def __init__(self, reference: str) -> None:
        from transformers import AutoModelForMaskedLM, AutoTokenizer

        from fillmask_ui.models.load import find_files
        from fillmask_ui.models.model_choice import ModelChoice

        folder = find_files(ModelChoice(reference, runtime="torch")).folder
        self.vocabulary = load_model(reference).vocabulary
        self.max_tokens = load_model(reference).max_tokens
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        # The type is named, as transformers would compute in the one that is stored.
        self.model = AutoModelForMaskedLM.from_pretrained(folder, dtype="float32").eval()

    def evaluation(self, texts: Sequence[str], metric: str) -> Timing:
        import torch

        config = EvaluationConfig(metric, max_tokens=self.max_tokens)
        hidden_texts = list(prepared(self.vocabulary, texts, config))
        with torch.inference_mode():
            (seconds,), total_nll = timed(lambda: self.total_nll(hidden_texts), 1)
        hidden_tokens = sum(len(text.hidden.cols) for text in hidden_texts)
        return Timing(seconds, token_count(hidden_texts, metric), total_nll / hidden_tokens)

    def total_nll(self, texts: Sequence[Prepared]) -> float:
        """Losses of all hidden tokens, summed, in nats."""
        raise NotImplementedError

    def logits(self, input_ids: np.ndarray) -> Any:
        """Of one text, from int64 [T] to float32 [T, V]."""
        import torch

        return self.model(input_ids=torch.from_numpy(input_ids)[None]).logits[0]


class PublishedLoop(Peer):
    """The published evaluator: a text at a time, torch's cross-entropy of the full logits."""

    def total_nll(self, texts: Sequence[Prepared]) -> float:
        from torch.nn.functional import cross_entropy

        return sum(
            cross_entropy(self.logits(text.hidden.input_ids), labels(text), reduction="sum").item()
            for text in texts
        )


class TrainerLoop(Peer):
    """As `Trainer.evaluate`: eight texts in their order, padded; the model's own loss."""

    def total_nll(self, texts: Sequence[Prepared]) -> float:
        import torch

        total = 0.0
        for start in range(0, len(texts), TRAINER_BATCH):
            group = texts[start : start + TRAINER_BATCH]
            batch = pad([text.hidden.input_ids for text in group], self.vocabulary.pad_id)
            batch_labels = torch.full(batch.input_ids.shape, -100)  # [B, T]
            for row, text in zip(batch_labels, group, strict=True):
                row[: len(text.hidden.ids)] = labels(text)
            output = self.model(
                input_ids=torch.from_numpy(batch.input_ids),
                attention_mask=torch.from_numpy(batch.attention_mask),
                labels=batch_labels,
            )
            total += output.loss.item() * int((batch_labels != -100).sum())
        return total


class OnePassPerToken(Peer):
    """Pseudo-perplexity by its definition: a forward pass for each token, with it alone hidden."""

    tasks = (PSEUDO_PERPLEXITY,)

    def total_nll(self, texts: Sequence[Prepared]) -> float:
        total = 0.0
        for text in texts:
            tokens = zip(text.hidden.cols, text.hidden.true_ids, strict=True)
            for number, (position, true_id) in enumerate(tokens):
                log_probabilities = self.logits(text.hidden.view(number))[position].log_softmax(-1)
                total -= log_probabilities[true_id].item()
        return total


class Minicons(Peer):
    """The scorer of the library minicons, a text at a time with all its hidden variants."""

    tasks = (PSEUDO_PERPLEXITY,)

    def __init__(self, reference: str) -> None:
        from minicons.scorer import MaskedLMScorer

        super().__init__(reference)
        self.scorer = MaskedLMScorer(self.model, "cpu", tokenizer=self.tokenizer)

    def total_nll(self, texts: Sequence[Prepared]) -> float:
        scores = [
            self.scorer.sequence_score([text.row.text], reduction=lambda nlls: nlls.sum().item())
            for text in texts
        ]
        return -sum(score for (score,) in scores)


class FillMaskPipeline(Peer):
    """The fill-mask pipeline of transformers."""

    tasks = ("sentence",)

    def __init__(self, reference: str) -> None:
        from transformers import pipeline

        super().__init__(reference)
        self.pipeline = pipeline("fill-mask", model=self.model, tokenizer=self.tokenizer)

    def sentence(self, texts: Sequence[str], tokens: int) -> Timing | None:
        text = sentence(self.vocabulary, texts, tokens, self.max_tokens)
        if text is None:
            return None
        (seconds,), candidates = timed(lambda: self.pipeline(text, top_k=5), 1)
        return Timing(seconds, tokens, -math.log(candidates[0]["score"]))


PEERS: dict[str, type[Peer]] = {
    "fill-mask pipeline": FillMaskPipeline,
    "published loop": PublishedLoop,
    "Trainer-style loop": TrainerLoop,
    "one pass per token": OnePassPerToken,
    "minicons": Minicons,
}


def labels(text: Prepared) -> Any:
    """int64 [T]: the true tokens at hidden positions, elsewhere -100, which torch ignores."""
    import torch

    values = np.full(len(text.hidden.ids), -100)
    values[text.hidden.cols] = text.hidden.true_ids
    return torch.from_numpy(values)
