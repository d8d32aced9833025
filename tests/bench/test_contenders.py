"""Everything that `bench` measures does the same work: the losses of all agree with PyTorch's."""

import json

import numpy as np
import pytest
import torch
from tiny_models import SENTENCES, quiet
from torch.nn.functional import cross_entropy

from fillmask_ui.bench.contenders import OwnModel
from fillmask_ui.bench.machine import LIBRARIES, MatrixProducts
from fillmask_ui.bench.peers import FillMaskPipeline, OnePassPerToken, PublishedLoop, TrainerLoop
from fillmask_ui.bench.timing import EncoderShape, mask_place, prepared, sentence, timed_turn
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.models import ModelChoice, load_model

TEXTS = [*SENTENCES[:20], " ".join(SENTENCES[:3])]
FAMILIES = ("bert", "roberta")
# Two layers of width 4 with inner width 8, and 10 words.
TINY = {"num_hidden_layers": 2, "hidden_size": 4, "intermediate_size": 8, "vocab_size": 10}


class Contenders:
    """Those of one folder, in this process, and PyTorch's own model."""

    def __init__(self, folder):
        from transformers import AutoModelForMaskedLM

        config = json.loads((folder / "config.json").read_text())
        shape = EncoderShape.of(config)
        self.own = [
            OwnModel(ModelChoice(str(folder), runtime=runtime), shape)
            for runtime in ("onnx", "torch")
        ]
        self.vocabulary = load_model(folder).vocabulary
        self.limit = self.own[0].max_tokens
        peers = (PublishedLoop, TrainerLoop, OnePassPerToken, FillMaskPipeline)
        self.published, self.trainer, self.one_pass, self.pipeline = (
            peer(folder, self.limit, shape) for peer in peers
        )
        with quiet():
            self.model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()

    def reference(self, metric):
        """Mean of torch's cross_entropy over all hidden tokens, one view of a text at a time."""
        config = EvaluationConfig(metric, max_tokens=self.limit)
        losses = []
        for text in prepared(self.vocabulary, TEXTS, config):
            for number in range(text.hidden.view_count):
                seen = torch.tensor(text.hidden.view(number))[None]
                asked = text.hidden.scored(number)
                with torch.no_grad():
                    logits = self.model(input_ids=seen).logits[0, text.hidden.cols[asked]]
                true = torch.tensor(text.hidden.true_ids[asked])
                losses += cross_entropy(logits, true, reduction="none").tolist()
        return np.mean(losses), len(losses)


@pytest.fixture(scope="module", params=FAMILIES)
def contenders(request, tiny_models):
    return Contenders(tiny_models.folder(request.param))


def test_evaluations_have_the_loss_of_torch(contenders):
    expected, _ = contenders.reference("cross-entropy")
    timings = [
        contender.evaluation(TEXTS, "cross-entropy")
        for contender in (*contenders.own, contenders.published, contenders.trainer)
    ]
    assert [timing.loss for timing in timings] == pytest.approx([expected] * 4, abs=1e-4)
    tokens = sum(len(contenders.vocabulary.encode(text)) for text in TEXTS)
    # Some texts are so short that none of their tokens is chosen.
    assert 0 < timings[0].amount <= tokens
    assert len({(timing.amount, timing.operations) for timing in timings}) == 1
    assert all(len(timing.seconds) == 1 and timing.seconds[0] > 0 for timing in timings)
    expected, tokens = contenders.reference("pseudo-perplexity")
    timings = [
        contender.evaluation(TEXTS, "pseudo-perplexity")
        for contender in (*contenders.own, contenders.one_pass)
    ]
    assert [timing.loss for timing in timings] == pytest.approx([expected] * 3, abs=1e-4)
    assert [timing.amount for timing in timings] == [tokens] * 3


def test_one_sentence_is_answered_alike(contenders):
    text = sentence(contenders.vocabulary, TEXTS, 16)
    ids, place = mask_place(contenders.vocabulary, text)
    with torch.no_grad():
        logits = contenders.model(input_ids=torch.from_numpy(ids)).logits[0, place]
    expected = -logits.log_softmax(-1).max().item()
    calls = [
        *(call for own in contenders.own for call in (own.sentence, own.call_alone)),
        contenders.pipeline.sentence,
    ]
    timings = [call(TEXTS, 16) for call in calls]
    assert [timing.loss for timing in timings] == pytest.approx([expected] * 5, abs=1e-4)
    # A sentence that is too long for the model is not measured.
    assert [call(TEXTS, 512) for call in calls] == [None] * 5


def test_a_turn_has_a_call_before_the_clock_and_at_most_ten():
    calls = iter(range(100))
    seconds, last = timed_turn(lambda: next(calls))
    assert (len(seconds), last) == (10, 10)


@pytest.mark.parametrize("reference", ["embedded", *FAMILIES])
def test_sentences_have_just_the_length_and_one_mask(reference, tiny_models):
    own = reference == "embedded"
    vocabulary = load_model(None if own else tiny_models.folder(reference)).vocabulary
    texts = [f"{vocabulary.mask_token} and ___ are no words", *TEXTS]
    for tokens in (8, 32, 128, 512):
        text = sentence(vocabulary, texts, tokens)
        ids = vocabulary.encode(text).ids
        assert len(ids) == tokens
        assert ids.count(vocabulary.mask_id) == 1
        assert "___" not in text
    assert sentence(vocabulary, [vocabulary.mask_token, " "], 8) is None
    assert sentence(vocabulary, ["a"], 2) is None  # the special tokens alone


@pytest.mark.parametrize("library", LIBRARIES)
def test_products_count_a_multiplication_and_an_addition(library):
    timing = MatrixProducts().product(library, (3, 4, 5))
    assert timing.amount == 2 * 3 * 4 * 5


def test_a_text_of_three_tokens_with_one_hidden():
    """Multiplications of matrices [rows, inner] x [inner, columns], one by one."""
    first = (
        4 * (3 * 4 * 4)  # query, key, value, output: [3, 4] x [4, 4]
        + 2 * (3 * 4 * 8)  # feed-forward, in and out
        + 2 * (3 * 4 * 3)  # scores [3, 4] x [4, 3], weighted sum [3, 3] x [3, 4]
    )
    last = (
        2 * (3 * 4 * 4)  # key, value of all three tokens
        + 2 * (1 * 4 * 4)  # query, output of the hidden one
        + 2 * (1 * 4 * 8)
        + 2 * (1 * 4 * 3)
    )
    head = 1 * 4 * 4 + 1 * 4 * 10
    shape = EncoderShape.of(TINY)
    one = shape.operations([(3, 1)])
    assert one == 2 * (first + last + head)
    assert shape.operations([(3, 1), (7, 2)]) == one + shape.operations([(7, 2)])
    # As in ALBERT and ELECTRA: [3, 2] x [2, 4] first, a head of width 2 in the end.
    narrow = EncoderShape.of({**TINY, "embedding_size": 2}).operations([(3, 1)])
    widened, narrow_head, wide_head = 3 * 2 * 4, 4 * 2 + 2 * 10, 4 * 4 + 4 * 10
    assert narrow - one == 2 * (widened + narrow_head - wide_head)
    near = EncoderShape.of({**TINY, "local_attention": 4}).operations([(9, 1)])
    assert shape.operations([(9, 1)]) - near == 2 * 2 * 10 * 5 * 4


@pytest.mark.parametrize("missing", TINY)
def test_configs_call_sizes_otherwise_or_leave_them_out(missing):
    assert EncoderShape.of({**TINY, missing: None}) is None
    other = {"n_layers": 2, "dim": 4, "hidden_dim": 8, "vocab_size": 10}
    assert EncoderShape.of(other) == EncoderShape.of(TINY)
