"""What a lesson masks is what the evaluator masks, and its losses arrive at the evaluator's."""

import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from table_model import TableModel, sample_texts
from tiny_models import SENTENCES, reference_model
from torch.nn.functional import cross_entropy

from fillmask_ui import load_model
from fillmask_ui.evaluation import EvaluatedText, EvaluationConfig, evaluate, summarize
from fillmask_ui.features.course.masked_text import encoded, mask_text, shares
from fillmask_ui.features.course.masking_figures import SEED, TEXT
from fillmask_ui.features.course.token_losses import mixed_mean_nats, over_seeds, token_losses
from fillmask_ui.masking import KINDS, MaskRecipe

DOG = "the old dog ran to the river and the cat sat on the mat"


@pytest.fixture(scope="module")
def model():
    return TableModel()


@pytest.mark.parametrize("rate", [0.15, 0.4])
def test_a_text_is_masked_as_the_first_text_of_an_evaluation(model, rate):
    seen = 0
    for seed, text in enumerate(sample_texts(40)):
        config = EvaluationConfig(seed=seed, recipe=MaskRecipe(probability=rate))
        row = next(row for row in evaluate(model, [text, "a cat"], config) if row.id == 0)
        chosen_tokens = mask_text(model, text, seed, MaskRecipe(probability=rate)).chosen
        if not isinstance(row, EvaluatedText):
            assert not chosen_tokens
            continue
        assert [token.position for token in chosen_tokens] == row.cols.tolist()
        assert [token.token_id for token in chosen_tokens] == row.true_ids.tolist()
        assert [token.shown_id for token in chosen_tokens] == row.shown_ids.tolist()
        assert [token.kind for token in chosen_tokens] == [KINDS[kind] for kind in row.kinds]
        seen += len(chosen_tokens)
    assert seen > 20


@pytest.mark.parametrize("rate", [0.15, 0.5])
def test_shares_count_what_each_seed_chooses_and_are_those_expected(model, rate):
    """By scipy's exact binomial test; a share that is a tenth off would fail it."""
    encoding, recipe = encoded(model, DOG), MaskRecipe(rate)
    few = shares(encoding, model.vocabulary, recipe, range(40))
    texts = [mask_text(model, DOG, seed, recipe) for seed in range(40)]
    kinds = [token.kind for masked in texts for token in masked.chosen]
    assert few.kinds == tuple(kinds.count(kind) for kind in KINDS)
    assert few.tokens == 40 * 14 and few.empty == sum(not masked.chosen for masked in texts)
    counted = shares(encoding, model.vocabulary, recipe, range(4000))
    assert binomtest(counted.chosen, counted.tokens, rate).pvalue > 1e-4
    for count, share in zip(counted.kinds, (0.8, 0.1, 0.1), strict=True):
        assert binomtest(count, counted.chosen, share).pvalue > 1e-4
    assert binomtest(counted.empty, 4000, (1 - rate) ** 14).pvalue > 1e-4
    assert binomtest(counted.chosen, counted.tokens, 1.1 * rate).pvalue < 1e-4


def test_the_mean_is_that_of_torchs_cross_entropy_over_labels(tiny_models):
    """All logits of transformers' own model; what is not chosen has the label -100."""
    folder = tiny_models.without_onnx("bert")
    ours, model = load_model(folder, runtime="torch"), reference_model(folder)
    for seed in (1, 2, 3):
        text = mask_text(ours, " ".join(SENTENCES)[:100], seed)
        losses = token_losses(ours, text)
        labels = [token.token_id if token.kind else -100 for token in text.tokens]
        input_ids = torch.tensor([[token.shown_id for token in text.tokens]])
        with torch.no_grad():
            logits = model(input_ids=input_ids).logits[0]
        expected = cross_entropy(logits, torch.tensor(labels), ignore_index=-100).item()
        assert losses[-1].mean_nats == pytest.approx(expected, abs=1e-5)
        for count, line in enumerate(losses, 1):
            so_far = [earlier.nll_nats for earlier in losses[:count]]
            assert line.sum_nats == pytest.approx(sum(so_far))
            assert line.mean_nats == pytest.approx(np.mean(so_far))


def test_many_seeds_are_pooled_as_if_each_was_evaluated(model):
    text, seeds = "the old dog ran to the red house", range(30)
    reported = []
    pooled = over_seeds(model, text, seeds, reported.append)
    rows = []
    for seed in seeds:
        rows += evaluate(model, [text], EvaluationConfig(seed=seed))
    alone = summarize(rows).model
    assert pooled.tokens == alone.tokens > 20
    assert pooled.mean_nll_nats == pytest.approx(alone.mean_nll_nats, abs=1e-12)
    assert {group.name: group.tokens for group in pooled.by_kind} == {
        group.name: group.tokens for group in alone.by_kind
    }
    measured = [row for row in rows if isinstance(row, EvaluatedText)]
    for group in pooled.by_kind:
        losses = [row.scores.nll_nats[row.kinds == KINDS.index(group.name)] for row in measured]
        assert group.mean_nll_nats == pytest.approx(np.concatenate(losses).mean())
    assert reported == [*range(1, 31)]


def test_the_text_of_the_chapter_shows_all_three_kinds(shipped):
    losses = token_losses(shipped, mask_text(shipped, TEXT, SEED))
    by_name = {loss.token.kind: loss.nll_nats for loss in losses}
    assert len(losses) == 5 and set(by_name) == set(KINDS)
    assert by_name["unchanged"] < 0.01
    assert by_name["random"] == max(loss.nll_nats for loss in losses) > 3


def test_unchanged_tokens_flatter_the_mean(shipped):
    figures = over_seeds(shipped, TEXT, range(200))
    means = {group.name: group.mean_nll_nats for group in figures.by_kind}
    assert means["unchanged"] < 0.1
    assert means["random"] > means["mask"] > figures.mean_nll_nats + 0.1
    mixes = [mixed_mean_nats(means, share / 100) for share in (0, 10, 50, 90)]
    assert mixes == sorted(mixes, reverse=True)
    assert mixes[0] > means["mask"] > mixes[1]
    assert mixes[1] == pytest.approx(figures.mean_nll_nats, abs=0.1)
