"""A token of a run in Explore: as the run saw it, or with nothing else hidden; what is gone."""

import threading
from dataclasses import replace

import pytest
from asrun_page import MIXED, nll_at, page_of, recorded
from explore_page import asked
from page_tags import Tags
from table_model import SPECIAL, WORDS, TableModel, TableVocabulary, letter_vocabulary

from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.masking import MaskRecipe
from fillmask_ui.models import ModelStore
from fillmask_ui.ui.explore import explore_modes


def answer(session, state):
    return asked(explore_modes.answer, session, state)


CONFIGS = [
    MIXED,
    EvaluationConfig("pseudo-perplexity", within_word=True),
    EvaluationConfig("uniform"),
    EvaluationConfig("suffix", suffix_tokens=3),
    EvaluationConfig(recipe=MaskRecipe(0.7), max_tokens=7),
]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.signature)
def test_every_token_has_the_figures_of_the_run_to_the_last_digit(tmp_path, config):
    session = page_of(tmp_path)
    rows, link = recorded(tmp_path, config)
    for index, row in rows.items():
        for entry, position in enumerate(row.cols.tolist()):
            place = {**link, "example": str(index), "token": str(position)}
            found = answer(session, {"text": "whatever", **place})
            assert found["kind"] == "none", found["notice"]
            assert found["truth"]["nll_nats"] == row.scores.nll_nats[entry]
            assert found["truth"]["rank"] == row.scores.ranks[entry]
            assert found["mask"]["entropy_nats"] == row.scores.entropy_nats[entry]
            best = found["mask"]["candidates"][0]
            assert best["id"] == row.scores.top_ids[entry]
            assert best["probability"] == row.scores.top_probabilities[entry]
            assert f"{row.scores.nll_nats[entry]:.4f} nats" in found["html"]["strip"]


def test_the_model_reads_the_words_that_were_planted(tmp_path):
    session, model = page_of(tmp_path), TableModel(1)
    rows, link = recorded(tmp_path)
    row = rows[0]
    seen = row.ids.copy()
    seen[row.cols] = row.shown_ids
    planted = next(i for i, kind in enumerate(row.kinds) if kind == 1)
    position = int(row.cols[planted])
    found = answer(session, {**link, "token": str(position)})
    expected = nll_at(model, seen, position, row.true_ids[planted])
    assert found["truth"]["nll_nats"] == pytest.approx(expected, abs=1e-6)
    word = model.vocabulary.word(int(row.shown_ids[planted]))
    true = model.vocabulary.word(int(row.true_ids[planted]))
    assert f"read “{word}”, planted; the true word is “{true}”" in found["html"]["replay"]
    assert f"planted in place of “{true}”" in found["html"]["strip"]
    # All that is hidden can be chosen, and nothing else.
    strip = found["html"]["strip"]
    assert strip.count("<button") == len(row.cols)
    assert strip.count('aria-pressed="true"') == 1
    assert f'data-token="{position}"' in strip
    # The box holds the sentence with this token hidden, under the model of the run.
    start, end = row.spans[planted]
    assert found["set"]["model"] == "table"
    assert found["text"] == found["set"]["text"] == found["base"]
    assert found["text"] == row.text[:start] + "[MASK]" + row.text[end:]


def test_only_this_one_hidden_is_any_sentence_and_says_both_losses(tmp_path):
    session, model = page_of(tmp_path), TableModel(1)
    rows, link = recorded(tmp_path)
    row = rows[0]
    place = {**link, "token": str(row.cols[0])}
    run = answer(session, place)
    alone = answer(session, {**place, "alone": "1"})
    plain = answer(session, {k: run[k] for k in ("text", "base", "hidden")} | {"model": "table"})
    assert alone["mask"] == plain["mask"]
    assert alone["truth"] == plain["truth"]
    assert {**alone["html"], "replay": ""} == {**plain["html"], "replay": ""}
    ids = row.ids.copy()
    ids[row.cols[0]] = model.vocabulary.mask_id
    expected = nll_at(model, ids, int(row.cols[0]), row.true_ids[0])
    assert alone["truth"]["nll_nats"] == pytest.approx(expected, abs=1e-6)
    told = Tags(alone["html"]["replay"]).text
    assert f"its loss is {expected:.4f} nats; in the run it was" in told
    assert f"it was {row.scores.nll_nats[0]:.4f} nats" in told


def test_a_token_that_was_hidden_alone_offers_no_other_experiment(tmp_path):
    session = page_of(tmp_path)
    rows, link = recorded(tmp_path, EvaluationConfig("pseudo-perplexity"))
    found = answer(session, {**link, "token": str(rows[0].cols[2])})
    assert "Only this one hidden" not in found["html"]["replay"]
    assert "nothing else is hidden" in found["html"]["replay"]


@pytest.mark.parametrize("letters", [False, True])
def test_both_models_of_a_run_can_be_looked_at(tmp_path, letters):
    noisy = TableModel(2, vocabulary=letter_vocabulary()) if letters else TableModel(1, noise=0.3)
    session = page_of(tmp_path, table=TableModel(1), noisy=noisy)
    config = EvaluationConfig("pseudo-perplexity") if letters else MIXED
    rows, link = recorded(tmp_path, config, baseline=noisy)
    theirs = rows[0].other if letters else rows[0]
    scores = theirs.scores if letters else rows[0].baseline
    for entry, position in enumerate(theirs.cols.tolist()):
        place = {**link, "token": str(position), "side": "B"}
        found = answer(session, place)
        assert found["truth"]["nll_nats"] == scores.nll_nats[entry]
        assert found["set"]["model"] == "noisy"
        assert "A: table-1-0" in found["html"]["replay"]


def test_options_that_explore_cannot_be_told_are_those_of_the_run(tmp_path):
    session = page_of(tmp_path)
    rows, link = recorded(tmp_path, dtype="bfloat16", threads=2)
    place = {**link, "token": str(rows[0].cols[0])}
    assert answer(session, place)["kind"] == "none"
    told = answer(session, {**place, "alone": "1"})["html"]["replay"]
    assert "The run was made with dtype bfloat16" in told
    assert "threads" not in told


def test_a_click_on_a_candidate_writes_it_and_leaves_the_run(tmp_path):
    session = page_of(tmp_path)
    rows, link = recorded(tmp_path)
    place = {**link, "token": str(rows[0].cols[0])}
    found = answer(session, place)
    best = found["mask"]["candidates"][0]
    action = {"do": "fill", "key": f"{found['selected']}:{best['id']}", "version": found["version"]}
    state = {k: found[k] for k in ("text", "base", "hidden", "selected")}
    after = answer(session, {**place, **state, "model": "table", "action": action})
    assert after["masks"] == 0
    assert "replay" not in after["html"]
    assert after["text"] == found["text"].replace("[MASK]", best["word"])


def test_what_is_gone_is_said_above_the_sentence(tmp_path):
    session = page_of(tmp_path)
    rows, link = recorded(tmp_path)
    place = {**link, "token": str(rows[0].cols[0]), "text": "the [MASK] sat", "model": "noisy"}

    def said(values, session=session):
        found = answer(session, values)
        assert found["kind"] == "error"
        # The sentence of the box keeps its answer.
        assert found["text"] == "the [MASK] sat"
        assert len(found["mask"]["candidates"]) == 10
        return found["notice"]

    assert "Unknown run 'gone'" in said({**place, "run": "gone"})
    assert "has not measured a text 7" in said({**place, "example": "7"})
    assert "was not hidden" in said({**place, "token": "0"})
    assert "no model B" in said({**place, "side": "B"})
    assert "Unknown run 'gone'" in said({**place, "run_b": "gone"})
    without = page_of(tmp_path, noisy=TableModel(1))
    assert "measured table-1-0, which cannot be had now: no model" in said(place, without)
    other = page_of(
        tmp_path, table=TableModel(2, vocabulary=letter_vocabulary()), noisy=TableModel()
    )
    assert "replaced since" in said(place, other)


def test_a_model_that_has_changed_is_told_and_the_run_keeps_its_loss(tmp_path):
    session = page_of(tmp_path, table=TableModel(2))
    rows, link = recorded(tmp_path)
    found = answer(session, {**link, "token": str(rows[0].cols[0])})
    assert found["kind"] == "hint"
    assert "has changed since" in found["notice"]
    assert found["truth"]["nll_nats"] == rows[0].scores.nll_nats[0]


def test_on_a_public_page_runs_are_their_makers_alone(tmp_path):
    session = page_of(tmp_path, public=True)
    rows, link = recorded(tmp_path / "ada1")
    place = {**link, "token": str(rows[0].cols[0])}
    assert answer(session, {**place, "visitor": "ada1"})["kind"] == "none"
    others = {"eve2": "known: none", "": "who is asking", "../ada1": "who is asking"}
    for visitor, told in others.items():
        found = answer(session, {**place, "visitor": visitor, "text": "a [MASK]"})
        assert found["kind"] == "error"
        assert told in found["notice"]


def test_a_model_that_loads_slowly_says_so(tmp_path):
    loaded = threading.Event()

    def load(choice, **_):
        assert loaded.wait(30)
        return TableModel(1)

    session = page_of(tmp_path)
    session.store = ModelStore(loader=load)
    rows, link = recorded(tmp_path)
    place = {**link, "token": str(rows[0].cols[0])}
    assert answer(session, place)["kind"] == "busy"
    loaded.set()
    while (found := answer(session, place))["kind"] == "busy":
        pass
    assert found["truth"]["nll_nats"] == rows[0].scores.nll_nats[0]


def test_a_very_long_text_is_shown_around_the_token(tmp_path):
    model = TableModel(1, max_tokens=2000)
    session = page_of(tmp_path, table=model)
    rows, link = recorded(tmp_path, MIXED, model, texts=["cat " * 900])
    position = int(rows[0].cols[len(rows[0].cols) // 2])
    found = answer(session, {**link, "token": str(position)})
    shown = found["html"]["strip"].count('class="fm-token')
    assert shown == 301
    assert found["truth"]["nll_nats"] in rows[0].scores.nll_nats


def test_tokens_are_never_markup(tmp_path):
    evil = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'
    vocabulary = TableVocabulary((*SPECIAL, "<b>", "<script>", *WORDS))
    model = TableModel(vocabulary=vocabulary)
    model.signature = replace(model.signature, name=evil)
    session = page_of(tmp_path, table=model, noisy=model)
    # Of words alone the random replacements draw the evil tokens, too.
    config = EvaluationConfig(recipe=MaskRecipe(1.0, 0.0, 1.0, 0.0))
    rows, link = recorded(tmp_path, config, model, model, texts=["the cat " * 25 + evil])
    found = answer(session, {**link, "token": str(rows[0].cols[0])})
    sources = [found["html"]["strip"], found["html"]["replay"]]
    assert all("&lt;" in source for source in sources)
    for source in sources:
        tags = Tags(source)
        assert not tags.names & {"script", "img", "b"}
        assert not {name for name in tags.attributes if name.startswith("on")}
