"""The ledger of a masked text arrives at the evaluator's number, and at torch's."""

import math

import numpy as np
import pytest
import torch
from table_model import TableModel
from tiny_models import FAMILIES, SENTENCES, quiet
from torch.nn.functional import cross_entropy

from fillmask_ui import load_model
from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluatedText, EvaluationConfig, evaluate, summarize
from fillmask_ui.lessons.masked_text import mask_text
from fillmask_ui.lessons.token_losses import (
    by_kind,
    evaluated,
    mixed_mean_nats,
    over_seeds,
    token_losses,
)
from fillmask_ui.masking import KINDS
from fillmask_ui.ui.learn.masking_figures import SEED, TEXT

PROTEIN = "MALWMRLLPLLALLALWGPDPAAAFVNQHLCGSHLVEALYLVCGERGFFYTPKT"


@pytest.fixture(scope="module", params=["embedded", "embedded:int8"])
def embedded(request):
    return load_model(request.param)


def ledger_equals_evaluator(model, text, seeds):
    lines_seen = 0
    for seed in seeds:
        lines = token_losses(model, mask_text(model, text, seed))
        if not lines:
            with pytest.raises(DataError, match="no token was chosen"):
                evaluated(model, text, seed)
            continue
        figures = evaluated(model, text, seed)
        assert lines[-1].mean_nats == pytest.approx(figures.metric, abs=1e-6)
        assert len(lines) == figures.tokens
        lines_seen += len(lines)
    return lines_seen


@pytest.mark.parametrize("family", FAMILIES)
def test_the_mean_is_the_evaluators_for_each_architecture(family, tiny_models):
    model = load_model(tiny_models.without_onnx(family), runtime="torch")
    text = PROTEIN if family == "esm" else " ".join(SENTENCES)[:100]
    assert ledger_equals_evaluator(model, text, range(8)) > 10


def test_the_mean_is_the_evaluators_for_the_embedded_models(embedded):
    assert ledger_equals_evaluator(embedded, TEXT, range(20)) > 30


def test_the_mean_is_that_of_torchs_cross_entropy_over_labels(tiny_models):
    """All logits of transformers' own model; what is not chosen has the label -100."""
    from transformers import AutoModelForMaskedLM

    folder = tiny_models.without_onnx("bert")
    ours = load_model(folder, runtime="torch")
    with quiet():
        model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    for seed in (1, 2, 3):
        text = mask_text(ours, " ".join(SENTENCES)[:100], seed)
        lines = token_losses(ours, text)
        labels = [token.token_id if token.kind else -100 for token in text.tokens]
        shown = torch.tensor([[token.shown_id for token in text.tokens]])
        with torch.no_grad():
            logits = model(input_ids=shown).logits[0]
        expected = cross_entropy(logits, torch.tensor(labels), ignore_index=-100).item()
        assert lines[-1].mean_nats == pytest.approx(expected, abs=1e-5)


def test_the_sum_grows_line_by_line():
    model = TableModel()
    text = mask_text(model, "the old dog ran to the river and the cat sat on the mat", 4)
    lines = token_losses(model, text)
    losses = [line.nll_nats for line in lines]
    assert len(lines) == len(text.chosen) > 2
    for count, line in enumerate(lines, 1):
        assert line.sum_nats == pytest.approx(sum(losses[:count]))
        assert line.mean_nats == pytest.approx(sum(losses[:count]) / count)
        assert line.probability == pytest.approx(math.exp(-line.nll_nats))
    # The table's own logits at the first of them, by hand.
    shown, col = text.hidden.input_ids, text.chosen[0].position
    rows = (model.left[shown[col - 1]], model.right[shown[col + 1]], model.own[shown[col]])
    logits = np.sum(rows, axis=0, dtype=np.float64)
    by_hand = np.log(np.exp(logits).sum()) - logits[text.chosen[0].token_id]
    assert losses[0] == pytest.approx(by_hand, abs=1e-5)


def test_many_seeds_are_pooled_as_if_each_was_evaluated():
    model, text, seeds = TableModel(), "the old dog ran to the red house", range(30)
    told = []
    pooled = over_seeds(model, text, seeds, told.append)
    rows = []
    for seed in seeds:
        rows += evaluate(model, [text], EvaluationConfig(seed=seed))
    alone = summarize(rows).model
    assert pooled.tokens == alone.tokens > 20
    assert pooled.mean_nll_nats == pytest.approx(alone.mean_nll_nats, abs=1e-12)
    of_pooled, of_alone = by_kind(pooled), by_kind(alone)
    assert of_pooled.keys() == of_alone.keys()
    for kind, loss in of_alone.items():
        assert of_pooled[kind].tokens == loss.tokens
        assert of_pooled[kind].mean_nll_nats == pytest.approx(loss.mean_nll_nats, abs=1e-12)
    assert told == [*range(1, 31)]


def test_the_losses_of_the_kinds_make_up_the_mean():
    model, text = TableModel(), "the old dog ran to the red house"
    rows = list(evaluate(model, [text] * 200, EvaluationConfig()))
    losses = by_kind(summarize(rows).model)
    measured = [row for row in rows if isinstance(row, EvaluatedText)]
    for number, kind in enumerate(KINDS):
        own = np.concatenate([row.scores.nll_nats[row.kinds == number] for row in measured])
        assert losses[kind].tokens == len(own)
        assert losses[kind].mean_nll_nats == pytest.approx(own.mean())


def test_unchanged_tokens_flatter_the_mean(embedded):
    """What the chapter says, of its own text."""
    figures = over_seeds(embedded, TEXT, range(200))
    losses = {kind: group.mean_nll_nats for kind, group in by_kind(figures).items()}
    assert losses["unchanged"] < 0.1
    assert losses["random"] > losses["mask"] > figures.mean_nll_nats + 0.1
    mixes = [mixed_mean_nats(losses, share / 100) for share in (0, 10, 50, 90)]
    assert mixes == sorted(mixes, reverse=True)
    assert mixes[0] > losses["mask"] > mixes[1]
    assert mixes[1] == pytest.approx(figures.mean_nll_nats, abs=0.1)


def test_the_text_of_the_chapter_has_cheap_and_dear_lines(embedded):
    lines = token_losses(embedded, mask_text(embedded, TEXT, SEED))
    losses = {line.token.kind: line.nll_nats for line in lines}
    assert losses["unchanged"] < 0.01
    assert losses["random"] == max(line.nll_nats for line in lines) > 3
