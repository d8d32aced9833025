"""Everything that `bench` measures does the same work: the losses of all agree with PyTorch's."""

import json

import numpy as np
import pytest
import torch
from tiny_models import SENTENCES, quiet
from torch.nn.functional import cross_entropy

from fillmask_ui.bench.flops import EncoderShape
from fillmask_ui.bench.own import OwnModel
from fillmask_ui.bench.peers import FillMaskPipeline, OnePassPerToken, PublishedLoop, TrainerLoop
from fillmask_ui.bench.products import LIBRARIES, MatrixProducts
from fillmask_ui.bench.texts import mask_place, prepared, sentence
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.models import ModelChoice, load_model

TEXTS = [*SENTENCES[:20], " ".join(SENTENCES[:3])]
FAMILIES = ("bert", "roberta")


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


def test_cross_entropy_is_that_of_torch(contenders):
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


def test_pseudo_perplexity_is_that_of_torch(contenders):
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
    timings = [
        *(own.sentence(TEXTS, 16, 2) for own in contenders.own),
        *(own.call_alone(TEXTS, 16, 2) for own in contenders.own),
        contenders.pipeline.sentence(TEXTS, 16, 2),
    ]
    assert [timing.loss for timing in timings] == pytest.approx([expected] * 5, abs=1e-4)
    assert [len(timing.seconds) for timing in timings] == [2] * 5


def test_a_sentence_that_is_too_long_for_a_model_is_not_measured(contenders):
    for own in contenders.own:
        assert own.sentence(TEXTS, 512, 1) is None
        assert own.call_alone(TEXTS, 512, 1) is None
    assert contenders.pipeline.sentence(TEXTS, 512, 1) is None


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


def test_no_sentence_without_words():
    vocabulary = load_model().vocabulary
    assert sentence(vocabulary, ["[MASK]", " "], 8) is None
    assert sentence(vocabulary, ["a"], 2) is None  # the special tokens alone


@pytest.mark.parametrize("library", LIBRARIES)
def test_products_count_a_multiplication_and_an_addition(library):
    timing = MatrixProducts().product(library, (3, 4, 5), 2)
    assert timing.amount == 2 * 3 * 4 * 5
    assert len(timing.seconds) == 2
