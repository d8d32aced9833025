"""Next sentence prediction: two sentences as one text, and both losses of BERT's pre-training.

Axes: T tokens of the pair, M hidden positions, V vocabulary.

Source:
    Devlin et al. 2019, arXiv:1810.04805, section 3.1 (the task) and appendix A.2 (the sum of both
    losses).
"""

import math
from dataclasses import dataclass, fields

import numpy as np

from fillmask_ui.errors import TextError
from fillmask_ui.features.course.masked_text import hide
from fillmask_ui.features.course.pair_head import pair_logits, predicts_next
from fillmask_ui.filling.prompt import check_length
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Encoding, Span
from fillmask_ui.scoring import nll_nats

FOLLOWS, RANDOM = 0, 1  # the two classes, numbered as BERT does


@dataclass(frozen=True)
class SentencePair:
    """[CLS] A [SEP] B [SEP], or with the model's own special tokens."""

    encoding: Encoding
    segments: tuple[int, ...]  # T, 0 for the first sentence and its end, 1 for the second


@dataclass(frozen=True)
class HiddenToken:
    """One token that the masked-LM loss counts."""

    original: str
    shown: str
    nll_nats: float


@dataclass(frozen=True)
class PairLoss:
    """Both losses of a pair, in nats."""

    hidden: tuple[HiddenToken, ...]  # M of them, ascending
    probability: float  # that the second sentence follows, by the head or by the reader
    order_nats: float  # -ln of the probability of the true class

    @property
    def masked_nats(self) -> float | None:
        """Mean over the hidden tokens; None without any."""
        losses = [token.nll_nats for token in self.hidden]
        return float(np.mean(losses)) if losses else None

    @property
    def total_nats(self) -> float | None:
        """BERT's pre-training loss."""
        return None if self.masked_nats is None else self.masked_nats + self.order_nats


def sentence_pair(model: MaskedLM, first: str, second: str) -> SentencePair:
    """Two sentences as one text; a `TextError` if one is blank or both are too long together."""
    if not first.strip() or not second.strip():
        raise TextError("one of the two sentences is empty: write two")
    vocabulary = model.vocabulary
    left, right = vocabulary.encode(first.strip()), vocabulary.encode(second.strip())
    right = right.part(slice(right.special.index(False) if False in right.special else 0, None))
    moved = len(left.text) + 1
    words = 1 + max((word for word in left.word_ids if word is not None), default=0)
    names = [field.name for field in fields(left)]
    values = {name: getattr(left, name) + getattr(right, name) for name in names}
    values |= {
        "text": f"{left.text} {right.text}",
        "spans": left.spans + tuple(Span(s.start + moved, s.end + moved) for s in right.spans),
        "word_ids": left.word_ids + tuple(w if w is None else w + words for w in right.word_ids),
    }
    encoding = Encoding(**values)
    check_length(model, encoding)
    return SentencePair(encoding, (0,) * len(left) + (1,) * len(right))


def next_probability(model: MaskedLM, pair: SentencePair) -> float:
    """P(the second sentence follows the first), of a model that `predicts_next`."""
    ids, segments = np.array(pair.encoding.ids), np.array(pair.segments)
    order = pair_logits(model, ids, segments, np.array([0])).order
    return math.exp(-_order_nats(order, FOLLOWS))


def order_loss(probability: float, truth: int) -> float:
    """Loss in nats of a probability in (0, 1) that the second sentence follows."""
    return _order_nats(np.log([probability, 1 - probability]), truth)


def _order_nats(logits: np.ndarray, truth: int) -> float:
    return float(nll_nats(logits[None], np.array([truth]))[0])


def pair_loss(
    model: MaskedLM, pair: SentencePair, seed: int, truth: int, probability: float
) -> PairLoss:
    """Both losses of a pair whose tokens are hidden by a seed; `truth` is the class.

    A head for the order of sentences reads the hidden text; for a model without one `probability`
    is that the second sentence follows.
    """
    hidden = hide(pair.encoding, model.vocabulary, seed)
    ids, cols = hidden.input_ids, hidden.cols
    losses: list[float] = []
    if predicts_next(model):
        logits = pair_logits(model, ids, np.array(pair.segments), cols)
        tokens, order = logits.tokens, logits.order
    else:
        order = np.log([probability, 1 - probability])
        if len(cols):
            tokens = model.logits_at(ids[None], np.ones_like(ids)[None], np.zeros_like(cols), cols)
    if len(cols):
        losses = nll_nats(tokens, hidden.true_ids).tolist()
    token = model.vocabulary.token
    return PairLoss(
        tuple(
            HiddenToken(token(int(hidden.ids[col])), token(int(ids[col])), loss)
            for col, loss in zip(cols, losses, strict=True)
        ),
        math.exp(-_order_nats(order, FOLLOWS)),
        _order_nats(order, truth),
    )
