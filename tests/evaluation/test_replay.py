"""A token of a row, replayed: the ids that the model read, and the numbers that it gave."""

import pytest
from evaluated import ALL_CONFIGS, MODEL, TEXTS, measured
from tiny_models import SENTENCES

from fillmask_ui.evaluation import EvaluatedText, EvaluationConfig, evaluate
from fillmask_ui.evaluation.measure import prepare
from fillmask_ui.evaluation.metrics.metric import replay
from fillmask_ui.evaluation.rows import nested
from fillmask_ui.filling import fill_at
from fillmask_ui.masking import MaskRecipe
from fillmask_ui.models import load_model
from fillmask_ui.records import Example
from fillmask_ui.runs.collator_masks import CollatorMasks
from fillmask_ui.schema import from_values

CONFIGS = [
    *ALL_CONFIGS,
    EvaluationConfig("bits-per-byte", within_word=True),
    EvaluationConfig(recipe=MaskRecipe(0.5, 0.4, 0.3, 0.3), max_tokens=8),
    EvaluationConfig("pseudo-perplexity", within_word=True, max_tokens=7),
    EvaluationConfig(recipe=MaskRecipe(0.5, 0.4, 0.3, 0.3), mask_stream="collator"),
]
NAMES = [config.signature for config in CONFIGS]


def from_disk(row):
    return from_values(EvaluatedText, nested(row.to_dict()))


def masks_of(config, model):
    stream = config.mask_stream == "collator"
    return CollatorMasks(model.vocabulary, config) if stream else None


@pytest.mark.parametrize("config", CONFIGS, ids=NAMES)
def test_a_row_says_every_reading_of_its_text(config):
    """Against what the masks themselves gave, before anything was stored."""
    config = config.resolved(MODEL.max_tokens)
    rows = measured(evaluate(MODEL, TEXTS, config, masks=masks_of(config, MODEL)))
    masks = masks_of(config, MODEL)
    replayed = 0
    for index, text in enumerate(TEXTS):
        prepared = prepare(Example(index, text), MODEL.vocabulary, config, masks)
        if index not in rows:
            continue
        for view in range(prepared.hidden.view_count):
            for entry in prepared.hidden.scored(view):
                row = from_disk(rows[index])
                reading = replay(row, config.metric, MODEL.vocabulary, entry, row.scores)
                assert reading.ids.tolist() == prepared.hidden.view(view).tolist()
                assert reading.scored.tolist() == prepared.hidden.scored(view).tolist()
                assert reading.position == prepared.hidden.cols[entry]
                assert reading.true_id == prepared.hidden.true_ids[entry]
                replayed += 1
    assert replayed == sum(len(row.cols) for row in rows.values()) > 50


SOME = [CONFIGS[1], CONFIGS[4], CONFIGS[8]]


@pytest.mark.parametrize("family", ["roberta"])
@pytest.mark.parametrize("config", SOME, ids=lambda config: config.signature)
def test_a_replayed_token_has_the_loss_of_the_run(tiny_models, family, config):
    """Batches of many texts round otherwise than a text alone, in the seventh digit."""
    model = load_model(tiny_models.folder(family))
    config = config.resolved(model.max_tokens)
    rows = measured(evaluate(model, SENTENCES, config, masks=masks_of(config, model)))
    assert any(row.truncated for row in rows.values()) == (config.max_tokens < 10)
    for row in rows.values():
        for entry in {0, len(row.cols) // 2, len(row.cols) - 1}:
            stored = from_disk(row)
            reading = replay(stored, config.metric, model.vocabulary, entry, stored.scores)
            mask = fill_at(model, reading.ids, reading.position, reading.true_id, top_k=3)
            (true,) = mask.scored
            assert true.nll_nats == pytest.approx(row.scores.nll_nats[entry], abs=1e-5)
            assert true.rank == pytest.approx(row.scores.ranks[entry], abs=1)
            assert mask.entropy_nats == pytest.approx(row.scores.entropy_nats[entry], abs=1e-5)
            best = mask.candidates[0].probability
            assert best == pytest.approx(row.scores.top_probabilities[entry], abs=1e-6)
