"""All that the benchmark measures does the same work, with PyTorch's losses."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import SENTENCES, reference_model
from torch.nn.functional import cross_entropy

from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.evaluation.measure import prepared
from fillmask_ui.features.quantize.timing import sentence
from fillmask_ui.models import load_model

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
TEXTS = [*SENTENCES[:12], " ".join(SENTENCES[:3])]


@pytest.fixture
def contenders(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import contenders

    return contenders


@pytest.mark.parametrize("family", ["bert", pytest.param("roberta", marks=pytest.mark.slow)])
def test_all_contenders_have_the_losses_of_torch(tiny_models, family, contenders):
    """Reference: torch's cross_entropy, one view of a text at a time; the softmax at one mask."""
    folder = str(tiny_models.folder(family))
    ours = [contenders.FillmaskModel(folder, runtime) for runtime in ("onnx", "torch")]
    peers = {name: make(folder) for name, make in contenders.PEERS.items() if name != "minicons"}
    vocabulary, limit = ours[0].model.vocabulary, ours[0].model.max_tokens
    model = reference_model(tiny_models.folder(family), dtype=torch.float32)

    for metric in ("cross-entropy", "pseudo-perplexity"):
        losses, tokens = [], 0
        for text in prepared(vocabulary, TEXTS, EvaluationConfig(metric, max_tokens=limit)):
            tokens += len(text.hidden.ids)
            for number in range(text.hidden.view_count):
                seen = torch.tensor(text.hidden.view(number))[None]
                scored = text.hidden.scored(number)
                with torch.no_grad():
                    logits = model(input_ids=seen).logits[0, text.hidden.cols[scored]]
                true = torch.tensor(text.hidden.true_ids[scored])
                losses += cross_entropy(logits, true, reduction="none").tolist()
        able = [*ours, *(peer for peer in peers.values() if metric in peer.tasks)]
        assert len(able) > len(ours)
        for contender in able:
            timing = contender.evaluation(TEXTS, metric)
            assert timing.loss == pytest.approx(np.mean(losses), abs=1e-4)
            assert timing.tokens == (tokens if metric == "cross-entropy" else len(losses))

    ids = vocabulary.encode(sentence(vocabulary, TEXTS, 16, limit)).ids
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0, ids.index(vocabulary.mask_id)]
    best = pytest.approx(-logits.log_softmax(-1).max().item(), abs=1e-4)
    for contender in (*ours, peers["fill-mask pipeline"]):
        assert contender.sentence(TEXTS, 16).loss == best
        assert contender.sentence(TEXTS, 512) is None  # too long for the model


@pytest.mark.parametrize("reference", ["embedded", "roberta"])
def test_sentences_have_just_the_length_and_one_mask(reference, tiny_models):
    is_embedded = reference == "embedded"
    vocabulary = load_model(None if is_embedded else tiny_models.folder(reference)).vocabulary
    texts = [f"{vocabulary.mask_token} and ___ are no words", *TEXTS]
    for tokens in (8, 32, 128, 512):
        text = sentence(vocabulary, texts, tokens, 512)
        ids = vocabulary.encode(text).ids
        assert len(ids) == tokens
        assert ids.count(vocabulary.mask_id) == 1
        assert "___" not in text
    assert sentence(vocabulary, [vocabulary.mask_token, " "], 8, 512) is None
    assert sentence(vocabulary, ["a"], 2, 512) is None  # the special tokens alone


def test_the_script_prints_a_table_for_each_task(tiny_models, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(TEXTS))
    folder = str(tiny_models.folder("bert"))
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "speed.py", folder, "--file", texts, "--rounds", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    titles = [line for line in done.stdout.splitlines() if line.startswith("###")]
    tasks = ["Cross-entropy", "Pseudo-perplexity"]
    # The tiny model takes 64 tokens.
    tasks += ["One sentence of 8 tokens", "One sentence of 32 tokens", "Load", "Peak memory"]
    assert titles == [f"### {task}" for task in tasks]
