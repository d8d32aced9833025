"""All that `bench` measures does the same work, with PyTorch's losses; its processes and peers."""

import json
import os
import signal
import sys

import numpy as np
import pytest
import torch
from tiny_models import SENTENCES, reference_model
from torch.nn.functional import cross_entropy

from fillmask_ui.bench.contender_process import ContenderProcess
from fillmask_ui.bench.contenders import BenchConfig, OwnModel, lineup
from fillmask_ui.bench.machine import LIBRARIES, MatrixProducts
from fillmask_ui.bench.peers import (
    PEERS,
    FillMaskPipeline,
    OnePassPerToken,
    PublishedLoop,
    TrainerLoop,
    installed_peers,
)
from fillmask_ui.bench.rounds import PRODUCTS
from fillmask_ui.bench.timing import EncoderShape, mask_place, sentence
from fillmask_ui.errors import ModelError, OptionError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.evaluation.measure import prepared
from fillmask_ui.models import ModelChoice, load_model

TEXTS = [*SENTENCES[:12], " ".join(SENTENCES[:3])]
# Two layers of width 4 with inner width 8, and 10 words.
TINY = {"num_hidden_layers": 2, "hidden_size": 4, "intermediate_size": 8, "vocab_size": 10}


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_all_contenders_have_the_losses_of_torch(tiny_models, family):
    """Reference: torch's cross_entropy, one view of a text at a time; the softmax at one mask."""
    folder = tiny_models.folder(family)
    shape = EncoderShape.of(json.loads((folder / "config.json").read_text()))
    own = [OwnModel(ModelChoice(str(folder), runtime=kind), shape) for kind in ("onnx", "torch")]
    vocabulary, limit = load_model(folder).vocabulary, own[0].max_tokens
    peers = (PublishedLoop, TrainerLoop, OnePassPerToken, FillMaskPipeline)
    published, trainer, one_pass, pipeline = (peer(folder, limit, shape) for peer in peers)
    model = reference_model(folder, dtype=torch.float32)

    for metric, contenders in (
        ("cross-entropy", (*own, published, trainer)),
        ("pseudo-perplexity", (*own, one_pass)),
    ):
        losses, tokens = [], 0
        for text in prepared(vocabulary, TEXTS, EvaluationConfig(metric, max_tokens=limit)):
            tokens += len(text.hidden.ids)
            for number in range(text.hidden.view_count):
                seen = torch.tensor(text.hidden.view(number))[None]
                asked = text.hidden.scored(number)
                with torch.no_grad():
                    logits = model(input_ids=seen).logits[0, text.hidden.cols[asked]]
                true = torch.tensor(text.hidden.true_ids[asked])
                losses += cross_entropy(logits, true, reduction="none").tolist()
        timings = [contender.evaluation(TEXTS, metric) for contender in contenders]
        for timing in timings:
            assert timing.loss == pytest.approx(np.mean(losses), abs=1e-4)
            assert timing.amount == (tokens if metric == "cross-entropy" else len(losses))
            assert timing.seconds[0] > 0
        assert len({timing.operations for timing in timings}) == 1

    ids, place = mask_place(vocabulary, sentence(vocabulary, TEXTS, 16, limit))
    with torch.no_grad():
        logits = model(input_ids=torch.from_numpy(ids)).logits[0, place]
    calls = [call for one in own for call in (one.sentence, one.call_alone)]
    for call in (*calls, pipeline.sentence):
        expected = pytest.approx(-logits.log_softmax(-1).max().item(), abs=1e-4)
        assert call(TEXTS, 16).loss == expected
        assert call(TEXTS, 512) is None  # too long for the model


@pytest.mark.parametrize("reference", ["embedded", "roberta"])
def test_sentences_have_just_the_length_and_one_mask(reference, tiny_models):
    own = reference == "embedded"
    vocabulary = load_model(None if own else tiny_models.folder(reference)).vocabulary
    texts = [f"{vocabulary.mask_token} and ___ are no words", *TEXTS]
    for tokens in (8, 32, 128, 512):
        text = sentence(vocabulary, texts, tokens, 512)
        ids = vocabulary.encode(text).ids
        assert len(ids) == tokens
        assert ids.count(vocabulary.mask_id) == 1
        assert "___" not in text
    assert sentence(vocabulary, [vocabulary.mask_token, " "], 8, 512) is None
    assert sentence(vocabulary, ["a"], 2, 512) is None  # the special tokens alone


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
    other = {"n_layers": 2, "dim": 4, "hidden_dim": 8, "vocab_size": 10}
    assert EncoderShape.of(other) == shape
    assert all(EncoderShape.of({**TINY, missing: None}) is None for missing in TINY)
    for library in LIBRARIES:
        assert MatrixProducts().product(library, (3, 4, 5)).amount == 2 * 3 * 4 * 5


def test_a_process_answers_has_a_memory_of_its_own_and_says_why_it_ended():
    ballast = np.ones(400_000_000, np.uint8)
    products = ContenderProcess(PRODUCTS)
    try:
        assert products.ask("peak_bytes") < ballast.nbytes
        assert products.ask("product", library="numpy", shape=(8, 8, 8)).amount == 1024
        assert products.loaded["seconds"] > 0
        with pytest.raises(ModelError, match=r"AttributeError: .*no attribute 'nonsense'"):
            products.ask("nonsense")
        os.kill(products._process.pid, signal.SIGKILL)
        for _ in range(2):
            with pytest.raises(ModelError, match="matrix products ended with code -9"):
                products.ask("peak_bytes")
    finally:
        products.close()


def test_peers_share_the_weights_of_the_models(tiny_models, monkeypatch):
    own = ["embedded", "embedded:int8"]
    assert [one.name for one in lineup(BenchConfig()).contenders] == own
    found = lineup(BenchConfig(peers=True))
    own += ["embedded:torch", "embedded:torch bfloat16"]
    peers = [peer.name for peer in installed_peers()]
    assert [one.name for one in found.contenders] == [*own, *peers]
    assert {"fill-mask pipeline", "published loop", "Trainer-style loop"} <= set(peers)
    assert set(PEERS) - set(peers) <= {"minicons"}
    assert len({one.folder for one in found.contenders}) == 1
    assert not found.notes
    monkeypatch.setitem(sys.modules, "minicons", None)
    assert "minicons" not in [peer.name for peer in installed_peers()]
    # Several weights have peers of their own; the first runs on PyTorch already.
    folder, other = map(str, (tiny_models.without_onnx("bert"), tiny_models.folder("roberta")))
    names = [one.name for one in lineup(BenchConfig((folder, other), peers=True)).contenders]
    on_torch = [f"{folder}:torch bfloat16", f"{other}:torch", f"{other}:torch bfloat16"]
    assert names[:5] == [folder, other, *on_torch]
    assert {f"published loop ({folder})", f"published loop ({other})"} <= set(names)


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(OptionError, match=r"pip install 'fillmask-ui\[torch\]'"):
        BenchConfig(peers=True)
