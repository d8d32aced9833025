"""Pseudo-log-likelihoods of 200 pairs against minicons (Misra, arXiv:2203.13112), if installed."""

import itertools
import json

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer
from transformers import PreTrainedTokenizerBase as Tokenizer

from fillmask_ui import EvaluationConfig, evaluate, load_model, pseudo_log_likelihoods, surprisal
from fillmask_ui.files import asset

pytestmark = pytest.mark.slow
LISTED = map(json.loads, (asset("texts") / "pairs.jsonl").read_text().splitlines())
NOUNS = ["keys", "windows", "unbelievers", "dogs", "teachers", "musicians", "neighbours"]
VERBS = ["sing", "sleep", "disappear", "understand", "remember", "arrive", "hesitate"]
MADE = [
    (f"The {noun} {where} {verb}.", f"The {noun} {where} {verb}s.")
    for noun, where, verb in itertools.product(NOUNS, ("here", "near the well", "of Oslo"), VERBS)
]
PAIRS = [(own["good"], own["bad"]) for own in LISTED] + MADE[:140]


def masked_scorer(scorer, folder, monkeypatch):
    # What minicons 0.3 calls is gone from transformers 5.
    monkeypatch.setattr(Tokenizer, "batch_encode_plus", Tokenizer.__call__, raising=False)
    weights = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32)
    return scorer.MaskedLMScorer(weights, "cpu", tokenizer=AutoTokenizer.from_pretrained(folder))


@pytest.mark.parametrize("within_word", [False, True], ids=["original", "within-word"])
@pytest.mark.parametrize("kind", ["embedded", "bert", "roberta"])
def test_equal_to_minicons(kind, within_word, request, monkeypatch):
    scorer = pytest.importorskip("minicons.scorer")
    if kind == "embedded":
        folder, model = asset("model"), load_model()
    else:
        folder = request.getfixturevalue("tiny_models").folder(kind)
        model = load_model(str(folder))
    texts = [text for pair in PAIRS for text in pair]
    reference = masked_scorer(scorer, folder, monkeypatch)
    metric = "within_word_l2r" if within_word else "original"
    # Which minicons scores, and we leave out.
    encode, unknown = model.vocabulary.encode, model.vocabulary.unk_id
    spelled = [text for text in texts if unknown not in encode(text).ids]
    assert kind != "embedded" or len(spelled) == 400
    expected = []
    for start in range(0, len(spelled), 20):
        part = spelled[start : start + 20]
        expected += reference.sequence_score(
            part, reduction=lambda own: own.sum(0), PLL_metric=metric
        )
    likelihoods = pseudo_log_likelihoods(model, spelled, within_word=within_word)
    print(f"{kind} {metric}: {np.abs(likelihoods - expected).max():.2e} of {len(spelled)}")
    assert likelihoods == pytest.approx(np.array(expected), abs=1e-4)


@pytest.mark.parametrize("within_word", [False, True], ids=["original", "within-word"])
@pytest.mark.parametrize("kind", ["embedded", "bert"])
def test_given_a_text_equal_to_conditional_scores_of_minicons(
    kind, within_word, request, monkeypatch
):
    scorer = pytest.importorskip("minicons.scorer")
    folder = asset("model")
    if kind != "embedded":
        folder = request.getfixturevalue("tiny_models").folder(kind)
    model = load_model(folder)
    reference = masked_scorer(scorer, folder, monkeypatch)
    firsts = [PAIRS[(number + 7) % len(PAIRS)][0] for number in range(24)]
    encode, unknown = model.vocabulary.encode, model.vocabulary.unk_id
    triples = [
        (better, worse, "", first)
        for first, (better, worse) in zip(firsts, PAIRS, strict=False)
        if unknown not in encode(f"{first} {better} {worse}").ids
    ]
    metric = "within_word_l2r" if within_word else "original"
    expected = [
        reference.conditional_score(
            [first for *_, first in triples],
            [triple[column] for triple in triples],
            reduction=lambda scores: scores.sum(0).item(),
            PLL_metric=metric,
        )
        for column in (0, 1)
    ]
    config = EvaluationConfig("pairs", within_word=within_word)
    rows = sorted(evaluate(model, triples, config), key=lambda row: row.id)
    assert len(rows) == len(triples) > 9
    for row, *scores in zip(rows, *expected, strict=True):
        found = [-row.scores.nll_nats.sum(), -row.worse.scores.nll_nats.sum()]
        assert found == pytest.approx(scores, abs=1e-4)
    if within_word:
        for (better, *_, first), score in zip(triples, expected[0], strict=True):
            summary = surprisal(model, better, given=first).summary
            assert summary.total_nll_nats == pytest.approx(-score, abs=1e-4)
