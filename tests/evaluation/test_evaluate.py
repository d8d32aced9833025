"""evaluate against independent loops with torch's cross_entropy and against its promises."""

from dataclasses import replace

import pytest
import torch
from evaluated import ALL_CONFIGS, MODEL, TEXTS, all_logits, measured
from table_model import TOKENS, TableModel, TableVocabulary, letter_vocabulary
from torch.nn.functional import cross_entropy

from fillmask_ui import scoring
from fillmask_ui.errors import DataError, OptionError, TextError
from fillmask_ui.evaluation import (
    EvaluationConfig,
    Heartbeat,
    RunningSummary,
    evaluate,
    measure,
    pseudo_log_likelihoods,
    summarize,
)
from fillmask_ui.records import Example
from fillmask_ui.runs.collator_masks import CollatorMasks


def plain(rows):
    return {index: row.to_dict() for index, row in measured(rows).items()}


def test_collator_stream_goes_on_from_text_to_text():
    config = EvaluationConfig(mask_stream="collator")
    with pytest.raises(OptionError, match="masks=CollatorMasks"):
        next(evaluate(MODEL, TEXTS, config))
    masks = CollatorMasks(MODEL.vocabulary, config)
    encoding = MODEL.vocabulary.encode(" ".join(["cat"] * 40))
    first, second = (masks.hide(encoding, index) for index in range(2))
    assert first.cols.tolist() != second.cols.tolist()
    with pytest.raises(ValueError, match="came twice"):
        masks.hide(encoding, 1)
    # A resumed run repeats the draws of the texts that are done.
    masks = CollatorMasks(MODEL.vocabulary, config)
    full = plain(evaluate(MODEL, TEXTS, config, masks=masks))
    masks = CollatorMasks(MODEL.vocabulary, config)
    done = set(list(full)[:25])
    remaining = plain(evaluate(MODEL, TEXTS, config, masks=masks, done=done))
    assert remaining == {index: row for index, row in full.items() if index not in done}


@pytest.mark.parametrize("config", ALL_CONFIGS, ids=lambda config: config.signature)
def test_every_loss_equals_torch(config):
    """Each text alone, rebuilt from what its row says the model saw."""
    for row in measured(evaluate(MODEL, TEXTS, config)).values():
        for index, col in enumerate(row.cols):
            seen = row.ids.copy()
            if config.metric.name == "pseudo-perplexity":
                last = col
                if config.metric.within_word:
                    words = MODEL.vocabulary.encode(row.text).word_ids
                    while words[last + 1] == words[col]:
                        last += 1
                seen[col : last + 1] = MODEL.vocabulary.mask_id
            else:
                seen[row.cols] = row.shown_ids
            logits = all_logits(MODEL, seen)[col - 1].double()
            target = torch.tensor(row.ids[col])
            assert row.scores.nll_nats[index] == pytest.approx(
                cross_entropy(logits, target).item(), abs=1e-9
            )
            better = (logits > logits[target]).sum().item()
            assert row.scores.ranks[index] == better + 1
            best = logits.argmax().item()
            assert row.scores.top_ids[index] == best
            assert row.scores.top_tokens[index] == TOKENS[best]
            probabilities = logits.softmax(0)
            assert row.scores.top_probabilities[index] == pytest.approx(probabilities.max().item())
            assert row.scores.entropy_nats[index] == pytest.approx(
                -(probabilities * probabilities.log()).sum().item()
            )


@pytest.mark.parametrize("config", ALL_CONFIGS[:4], ids=lambda config: config.signature)
def test_batches_and_order_change_nothing(config, monkeypatch):
    """Nor how many positions one call may be asked about."""
    expected = plain(evaluate(MODEL, TEXTS, config))
    examples = [Example(index, text) for index, text in enumerate(TEXTS)]
    for batch_tokens in (1, 50):
        other_config = replace(config, batch_tokens=batch_tokens)
        assert plain(evaluate(MODEL, reversed(examples), other_config)) == expected
    monkeypatch.setattr(measure, "LOGIT_BYTES", 4 * len(TOKENS) * 5)
    monkeypatch.setattr(scoring, "CHUNK_LOGITS", len(TOKENS) * 2)
    model = TableModel(seed=1)
    assert plain(evaluate(model, TEXTS, config)) == expected
    assert max(positions for _, positions in model.calls) <= 5


@pytest.mark.parametrize("with_baseline", [False, True])
def test_heartbeats_come_with_every_batch_and_end_at_the_number_of_texts(with_baseline):
    model = TableModel(seed=1)
    baseline = TableModel(seed=2, vocabulary=letter_vocabulary()) if with_baseline else None
    config = EvaluationConfig("pseudo-perplexity", batch_tokens=100)
    candidate = model if baseline else None
    rows = evaluate(baseline or model, ["", *TEXTS], config, candidate=candidate, heartbeat=True)
    items = list(rows)
    beats = [item.texts for item in items if isinstance(item, Heartbeat)]
    assert len(beats) == len(model.calls) + (len(baseline.calls) if with_baseline else 0)
    assert beats == sorted(beats)
    assert beats[-1] == pytest.approx(len(TEXTS) + 1)
    rows = [item for item in items if not isinstance(item, Heartbeat)]
    tokens_so_far = [item.tokens for item in items if isinstance(item, Heartbeat)]
    assert tokens_so_far == sorted(tokens_so_far)
    assert tokens_so_far[-1] == sum(len(row.cols) for row in rows if hasattr(row, "scores"))
    # What nobody pulls is neither read nor measured.
    model.calls.clear()
    unread = iter(["the cat sat on the mat."] * 10_000)
    rows = evaluate(model, unread, EvaluationConfig("uniform"))
    next(rows)
    rows.close()
    assert len([*unread]) >= 10_000 - 513
    assert len(model.calls) == 1


def test_skips_are_counted_by_reason():
    class Broken(TableVocabulary):
        def encode(self, text):
            if text == "broken":
                raise TextError("no tokenizer can take this")
            return super().encode(text)

    model = TableModel(vocabulary=Broken())
    texts = ["", " \t\n", "zzz", "[MASK] [MASK]", "broken", "the", "the cat", *["cat"] * 5]
    summary = summarize(evaluate(model, texts, EvaluationConfig("uniform")))
    assert summary.texts == 7
    assert summary.skipped == {
        "empty or blank": 2,
        "only special or unknown tokens": 2,
        "cannot be tokenized": 1,
    }
    summary = summarize(evaluate(model, ["the cat"] * 50, EvaluationConfig()))
    assert summary.skipped["no token was chosen"] == 50 - summary.texts > 0


def test_long_texts_are_cut_at_the_end_and_read_only_so_far():
    class Watched(TableVocabulary):
        longest = 0

        def encode(self, text):
            Watched.longest = max(Watched.longest, len(text))
            return super().encode(text)

    uniform, model = EvaluationConfig("uniform"), TableModel(max_tokens=10, vocabulary=Watched())
    rows = measured(evaluate(model, ["cat " * 500_000, "cat " * 8, "the"], uniform))
    assert Watched.longest < 10_000
    assert [rows[index].truncated for index in range(3)] == [True, False, False]
    assert rows[0].ids.tolist() == rows[1].ids.tolist()
    assert rows[0].text == ("cat " * 8).strip()
    (shorter,) = evaluate(model, ["cat " * 50], EvaluationConfig("suffix", max_tokens=5))
    assert len(shorter.ids) == 5
    config = EvaluationConfig("pseudo-perplexity")
    (sparse,) = evaluate(model, ["cat" + " " * 50_000 + "sat"], config)
    assert sparse.tokens == ("cat", "sat")
    assert not sparse.truncated


@pytest.mark.parametrize(
    ("examples", "error", "message"),
    [
        ("the cat sat", OptionError, "give a list of texts"),
        (Example(0, "the cat sat"), OptionError, "give a list of texts"),
        ([Example(-1, "a b c")], DataError, "from 0 to 2.63; it was -1"),
        ([Example(2**63, "a b c")], DataError, f"it was {2**63}"),
        (["the old dog", None], DataError, "text 1 is None, not a text: leave it out"),
    ],
)
def test_texts_that_cannot_be_measured_are_refused(examples, error, message):
    with pytest.raises(error, match=message):
        list(evaluate(MODEL, examples))


def test_a_column_of_a_data_set_is_measured_as_its_texts():
    """Those of Hugging Face and pandas; with several columns one has to be named."""
    from datasets import Dataset, DatasetDict
    from pandas import DataFrame

    columns = {"idx": [*range(len(TEXTS))], "sentence": TEXTS}
    data = Dataset.from_dict(columns)
    expected = plain(evaluate(MODEL, TEXTS))
    for data_set in (data, data.to_iterable_dataset(), DataFrame(columns)):
        assert plain(evaluate(MODEL, data_set, column="sentence")) == expected
        with pytest.raises(DataError, match="it has 'idx', 'sentence'; choose one"):
            next(evaluate(MODEL, data_set))
    assert plain(evaluate(MODEL, data.select_columns("sentence"))) == expected
    with pytest.raises(DataError, match="with the parts train: give one"):
        next(evaluate(MODEL, DatasetDict(train=data)))
    with pytest.raises(OptionError, match="no columns such as 'sentence'"):
        next(evaluate(MODEL, TEXTS, column="sentence"))


@pytest.mark.parametrize("count", [2, 12])
def test_the_interval_of_a_loss_never_reaches_below_zero(count):
    """A loss cannot be negative nor a perplexity smaller than 1, however few the texts."""
    running = RunningSummary()
    for row in evaluate(MODEL, TEXTS[:count], EvaluationConfig("uniform")):
        # Losses as far apart as they get: one text almost certain, one hopeless.
        factor = 100.0 if row.id == 0 else 1e-3
        scores = replace(row.scores, nll_nats=row.scores.nll_nats * factor)
        running.add(replace(row, scores=scores))
    for quick in (True, False):
        figures = running.summary(quick=quick).model
        assert min(figures.interval.low, figures.per_character_interval.low) >= 0
        assert figures.perplexity_interval.low >= 1


@pytest.mark.parametrize("config", ALL_CONFIGS[:4], ids=lambda config: config.signature)
def test_resume_forms_the_same_batches(config):
    """What is left after a stop passes through the model in the batches of a full run."""
    model = TableModel(seed=1)
    full = list(evaluate(model, TEXTS, config))
    calls = list(model.calls)
    for stop in (0, 1, 17, len(full)):
        model.calls.clear()
        done = {row.id for row in full[:stop]}
        remaining = list(evaluate(model, TEXTS, config, done=done))
        assert [row.id for row in remaining] == [row.id for row in full[stop:]]
        # The calls are some of the full run's, in their order: nothing is regrouped.
        left = iter(calls)
        assert all(call in left for call in model.calls)
    assert not model.calls  # all were done


def test_likelihoods_are_refused_before_the_model_is_asked_about_any():
    """Sums by torch of each token alone, else the text that has none is named."""
    model = TableModel(1)
    long = " ".join(["cat"] * (model.max_tokens + 1))
    for text, message in (
        (long, "more than the 64 tokens"),
        (" ", "blank"),
        (7, "7 is not a text"),
    ):
        with pytest.raises(
            DataError, match=f"text 2 has no likelihood: .*{message}.*; leave it out"
        ):
            pseudo_log_likelihoods(model, [*TEXTS[:2], text, TEXTS[2]])
    for texts in ("the cat", b"the cat"):
        with pytest.raises(OptionError, match="give a list of texts"):
            pseudo_log_likelihoods(model, texts)
    assert model.calls == []
    for text, found in zip(TEXTS, pseudo_log_likelihoods(model, TEXTS), strict=True):
        ids = torch.tensor(model.vocabulary.encode(text).ids)
        expected = 0.0
        for position in range(1, len(ids) - 1):
            if int(ids[position]) not in model.vocabulary.special_ids:
                hidden = ids.clone()
                hidden[position] = model.vocabulary.mask_id
                logits = all_logits(model, hidden.tolist()).double()
                expected -= float(cross_entropy(logits[position - 1], ids[position]))
        assert found == pytest.approx(expected, rel=1e-6)
