"""Figures on what the evaluator does: masks and their losses, uncertainty, vectors, pairs."""

import re
from functools import partial

import pytest
from lesson_figures import FIGURES, cells, show_figure, text_of
from page_tags import Tags
from table_model import TableModel, letter_vocabulary

from fillmask_ui import load_model
from fillmask_ui.errors import FillmaskError, ModelError, OptionError
from fillmask_ui.evaluation import EvaluationConfig, evaluate
from fillmask_ui.lessons import chapters
from fillmask_ui.lessons.masked_text import mask_text
from fillmask_ui.lessons.token_losses import evaluated
from fillmask_ui.lessons.word_vectors import TWO_SENSES
from fillmask_ui.models import ModelStore
from fillmask_ui.records import Example
from fillmask_ui.ui.components import answered
from fillmask_ui.ui.learn import context_figures, uncertainty_figures
from fillmask_ui.ui.learn.learn_figures import figure
from fillmask_ui.ui.session import Session

MASKING = ["masking", "mask_shares", "mask_kinds", "ledger", "ledger_kinds", "ledger_mix"]
CAT = "the old dog ran to the river and the cat sat on the mat"  # five tokens with seed 4


@pytest.fixture(scope="module")
def show():
    """What a figure shows of the table model; `noisy` is like it, `letters` has other tokens."""
    models = {
        "table": TableModel(),
        "noisy": TableModel(noise=0.2),
        "letters": TableModel(vocabulary=letter_vocabulary()),
    }
    session = Session(ModelStore(loader=lambda choice, **_: models[choice.reference]), "table")
    return partial(show_figure, session, session.model("table"))


def test_every_figure_of_a_text_exists_and_is_used_once():
    used = [step.figure for chapter in chapters() for step in chapter.steps if step.figure]
    assert sorted(used) == sorted(FIGURES)


# ---- Masks and their losses


def test_each_token_has_its_original_what_is_shown_and_its_label(show):
    source = show("masking", text=CAT, seed=4).pieces["tokens"]
    cards = [Tags(card).text.split() for card in re.findall(r"<li.*?</li>", source, re.DOTALL)][1:]
    text, name = mask_text(TableModel(), CAT, 4), TableModel().vocabulary.token
    signs = {"mask": "■", "random": "≠", "unchanged": "="}
    for card, token in zip(cards, text.tokens, strict=True):
        original, shown = name(token.token_id), name(token.shown_id).replace("##", "…")
        without = "never has a label–" if token.fixed else "no label–"
        shows = f"{token.kind} {signs[token.kind]} {shown}" if token.kind else shown
        label = f"label {original}" if token.kind else without
        assert " ".join(card) == f"original {original} shown {shows} {label}"
    assert f"{len(text.chosen)} of {text.free} tokens" in Tags(source).text


@pytest.mark.parametrize("family", ["roberta", "xlm-roberta"])
def test_tokens_of_any_tokenizer_are_words(session, tiny_models, family):
    """No marks of the tokenizer, and masks as everybody writes them."""
    model = load_model(tiny_models.without_onnx(family), runtime="torch")
    text = "The cat ___ on the mat."
    shown = show_figure(session, model, "masking", text=text).pieces["tokens"]
    words = Tags(shown).text.split()
    assert {"on", "the", "[MASK]"} <= set(words)
    assert not set("Ġ▁") & set("".join(words))
    assert show_figure(session, model, "ledger", text=text, seed=3).pieces["lines"]


def test_the_shares_stand_beside_the_expected_and_many_seeds_stay(show):
    four, six = (show("mask_shares", text=CAT, seed=seed).pieces["shares"] for seed in (4, 6))
    columns = [
        [re.findall(r"[\d.]+%|–", " ".join(row)) for row in cells(own)] for own in (four, six)
    ]
    assert [row[0] for row in columns[0]] == ["15.0%", "80.0%", "10.0%", "10.0%"]
    one, other = ([row[1] for row in table] for table in columns)
    assert one != other
    assert [row[2] for row in columns[0]] == [row[2] for row in columns[1]]
    # (1 - 0.15)^14 and (1 - 0.3)^14, by a calculator
    assert "= 10.3%" in Tags(four).text
    rate = show("mask_shares", text=CAT, rate=30).pieces["shares"]
    assert "(1 − 0.30)14 = 0.68%" in Tags(rate).text


def test_one_word_is_shown_in_three_ways(show):
    source = show("mask_kinds", text="the cat sat.").pieces["kinds"]
    texts = [row[1] for row in cells(source)]
    assert texts[::2] == ["the cat [MASK].", "the cat sat."]
    assert texts[1] not in texts[::2]


def test_the_losses_are_revealed_line_by_line(show):
    first = show("ledger", text=CAT, seed=4)
    count = int(re.search(r"1 of (\d) lines", first.pieces["lines"])[1])
    everything = show("ledger", text=CAT, seed=4, lines=2, all=1)
    assert count > 2 and "Mean" in everything.pieces["lines"]
    for pressed, lines in (({}, 1), ({"lines": 1, "more": 1}, 2), ({"lines": 2, "all": 1}, count)):
        shown = show("ledger", text=CAT, seed=4, **pressed)
        assert shown.set["lines"] == str(lines) == str(len(cells(shown.pieces["lines"])))
    beyond = show("ledger", text=CAT, seed=4, lines=count, more=1)
    assert beyond.pieces["lines"] == everything.pieces["lines"]
    assert show("ledger", text=CAT, seed=4, lines=count, first=1).set["lines"] == "1"


def test_the_evaluator_says_the_same_until_text_or_seed_change(show):
    pressed = show("ledger", text=CAT, seed=4, lines=99, evaluate=1)
    number = f"{evaluated(TableModel(), CAT, 4).metric:.6f}"
    assert Tags(pressed.pieces["evaluator"]).text.count(number) == 2
    assert f"{float(number):.4f} nats" in pressed.pieces["lines"]
    kept = {"evaluated": pressed.set["evaluated"]}
    again = show("ledger", text=CAT, seed=4, lines=1, **kept)
    assert again.pieces["evaluator"] == pressed.pieces["evaluator"]
    for other in ({"text": CAT, "seed": 6}, {"text": CAT + " red", "seed": 4}):
        assert not show("ledger", **other, **kept).pieces["evaluator"].strip()


def test_a_seed_that_chooses_nothing_names_one_that_does(show):
    model = TableModel()
    shown = show("ledger", text=CAT, seed=2, evaluate=1)
    (other,) = re.findall(r"is seed (\d+)\.", shown.pieces["lines"])
    assert not any(mask_text(model, CAT, seed).chosen for seed in range(2, int(other)))
    assert mask_text(model, CAT, int(other)).chosen
    assert shown.pieces["evaluator"] == ""
    assert "none chosen" in show("ledger_kinds", text=CAT, seed=2).pieces["kinds"]


def test_kinds_and_other_shares_of_them(show):
    table = cells(show("ledger_kinds", text=CAT, seed=4).pieces["kinds"])
    assert [row[0].split()[0] for row in table] == ["■", "≠", "=", "all"]
    assert f"{evaluated(TableModel(), CAT, 4).mean_nll_nats:.3f}" in table[-1][1]
    means = []
    for share in (0, 10, 60):
        table = cells(show("ledger_mix", text=CAT, unchanged=share).pieces["mix"])
        assert "your" in table[2][0]
        means.append(float(table[2][1].split()[0]))
    assert means == sorted(means, reverse=True) and len({*means}) == 3


@pytest.mark.parametrize("name", MASKING)
def test_what_cannot_be_masked_is_said_and_a_text_is_never_markup(session, show, name):
    for text, said in (
        (" ", "text is empty"),
        ("xyz", "No token"),
        ("the cat " * 50, "takes at most 64"),
    ):
        answer = answered(figure, session, {"name": name, "values": {"text": text}})
        assert answer["kind"] == "error" and said.lower() in answer["notice"].lower()
    shown = show(name, text="<b>the cat</b> sat <script>", seed=1, lines=99)
    assert not Tags("".join(shown.pieces.values())).names & {"b", "script"}


# ---- Accuracy, loss and their uncertainty


def row_of(html, name):
    """The cells of a row after its name."""
    found = re.search(rf"<tr[^>]*><td[^>]*>{name}</td>(.*?)</tr>", html, re.DOTALL)
    return re.findall(r">([^<]+)</td>", found[1])


def test_both_are_wrong_until_the_slider_makes_one_right(show):
    html = show("near_misses").pieces["result"]
    assert html.count("✗ wrong") == 2
    assert "0.916 nats" in html and "2.996 nats" in html
    html = show("near_misses", a="60").pieces["result"]
    assert (html.count("✓ right"), html.count("✗ wrong")) == (1, 1)


def test_hits_stay_and_the_loss_moves(show):
    html = show("two_temperatures", a="1.0", b="1.6").pieces["result"]
    for name in ("first guesses right", "top-1 accuracy"):
        assert len(set(row_of(html, name))) == 1
    first, second, lowest = map(float, row_of(html, "mean loss in nats"))
    assert first != second and lowest <= min(first, second)
    assert row_of(html, "temperature")[:2] == ["1.0", "1.6"]
    for value in ("", "warm", "nan", "-3", "1e9"):
        assert "top-1 accuracy" in show("two_temperatures", a=value).pieces["result"]


def test_columns_of_the_histogram_add_up(show):
    html = show("token_losses", second="noisy", b="1.0").pieces["result"]
    tokens = int(re.search(r">(\d+) tokens<", html)[1])
    rows = re.findall(
        r"<td[^>]*>[\d–]+(?: and more)?</td><td[^>]*>(\d+)</td>\s*<td[^>]*>(\d+)</td>", html
    )
    assert len(rows) == 15
    assert [sum(int(row[side]) for row in rows) for side in (0, 1)] == [tokens, tokens]
    assert row_of(html, "model") == ["table-0-0", "table-0-0.2"]


@pytest.mark.parametrize("name", ["token_losses", "paired_difference"])
def test_another_tokenizer_does_not_compare(show, name):
    with pytest.raises(ModelError, match="other tokens than table-0-0"):
        show(name, second="letters")


def test_the_dial_says_what_its_seed_gives(show):
    first, last = (show("twenty_seeds", seed=seed).pieces for seed in (1, 20))
    assert first["result"].count("<circle") == 21  # a dot each, and a ring
    table = re.findall(
        r"<tr><td[^>]*>(\d+)</td>\s*<td[^>]*>(\d+)</td>\s*<td[^>]*>([\d.]+)</td>", first["result"]
    )
    assert [row[0] for row in table] == [str(seed) for seed in range(1, 21)]
    for pieces, row in ((first, table[0]), (last, table[-1])):
        assert f"Seed {row[0]} hides {row[1]} tokens" in pieces["answer"]
        assert f"{row[2]} nats" in pieces["answer"]


def test_the_order_of_the_texts_moves_the_first_mean(show):
    orders = ("0", "1", "0")
    rows = [row_of(show("more_texts", order=own).pieces["result"], "5") for own in orders]
    assert rows[0] == rows[2] != rows[1]


def test_typed_losses_are_judged_by_typed_limits(show):
    """2.2 / 2 is 10 % more, and e^0.2 is 1.22."""
    own = show("published_changes", loss="2,2", baseline="2").pieces["own"]
    assert "+10.00%" in own and "1.22" in own and "REGRESSION" in own
    pieces = show("published_changes", loss="2.2", baseline="2", risk_below="12 %").pieces
    assert "AT_RISK" in pieces["own"] and pieces["result"].count("PASS") == 7
    strict = show("published_changes", pass_below="2", risk_below="3", order="change")
    html = strict.pieces["result"]
    counts = [html.count(f">{verdict}<") for verdict in ("PASS", "AT_RISK", "REGRESSION")]
    assert counts == [4, 2, 2]
    changes = [float(found) for found in re.findall(r">([+-][\d.]+\d\d)%</td>", html)]
    assert len(changes) == 8 and changes == sorted(changes, reverse=True)
    assert "all 8 computed changes are the printed ones" in html
    for wrong in ({"loss": "two"}, {"baseline": "0"}, {"loss": "inf"}, {"pass_below": "12"}):
        with pytest.raises(OptionError):
            show("published_changes", **wrong)


def test_the_second_model_is_the_same_one_warmer_where_no_other_fits(show):
    html = show("paired_difference").pieces["result"]
    assert "table-0-0 at temperature 1.1" in html
    assert re.search(r"[\d.]+ times narrower", html)


def test_the_texts_say_how_many_texts_the_figures_read():
    said = {
        chapter.name: " ".join(f"{step.text} {step.after}" for step in chapter.steps)
        for chapter in chapters()
    }
    assert f"{uncertainty_figures.TEMPERATURE_TEXTS} texts" in said["accuracy"]
    assert f"{uncertainty_figures.SEED_TEXTS} short texts" in said["certainty"]


# ---- Vectors of words, pairs of sentences


@pytest.fixture(scope="module", params=["embedded", "embedded:int8"])
def embedded(request):
    """What a figure shows of a shipped model."""
    session = Session(ModelStore(), request.param)
    return partial(show_figure, session, session.model(""))


def rows_of(html):
    rows = re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)
    return [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in rows]


def test_a_push_raises_raw_cosines_and_no_others(embedded):
    """The point of z-scoring, with any model."""
    plain, pushed = embedded("rogue_dimensions"), embedded("rogue_dimensions", push="2")
    assert pushed.pieces["scored"] == plain.pieces["scored"]
    (_, before), (_, after) = (
        [list(map(float, row)) for row in rows_of(own.pieces["contrast"]) if len(row) == 2][-2:]
        for own in (plain, pushed)
    )
    assert before[0] < 0.3 and after[0] > 0.75  # any two tokens
    assert abs(after[1] - before[1]) <= 0.01
    raw = [float(cell) for row in rows_of(pushed.pieces["raw"])[1:] for cell in row]
    assert min(raw) > 0.8
    assert "pushed" in pushed.pieces["dimensions"]
    assert "pushed" not in plain.pieces["dimensions"]


def test_an_example_fills_in_the_fields(embedded):
    shown = embedded("nearest_sense", take_match="1", word="bank")
    assert (shown.set["word"], shown.set["sentences"]) == ("match", TWO_SENSES[1].lines)
    said = text_of(shown.pieces["nearest"])
    assert "lamp" in said and "sense 2" in said.split("→")[1][:30]


def test_own_sentences_of_three_senses(embedded):
    lines = "1: The bank lent money.\n2: The bank of the river.\n3: A <b>bank</b> of clouds."
    shown = embedded("word_cosines", word="bank", sentences=lines)
    assert '&lt;b&gt;<strong class="fm-used">bank</strong>' in shown.pieces["matrix"]
    assert "–" in shown.pieces["summary"]  # no two have the same sense
    assert "▲" in shown.pieces["matrix"]
    point = embedded("sense_map", word="bank", sentences=lines).pieces["map"]
    assert "bank" in re.search(r'role="img" aria-label="([^"]*)"', point)[1]


def test_what_a_reader_can_mend_is_said(embedded, show):
    for name, values, said in (
        ("word_cosines", {"word": "river"}, "does not occur"),
        ("sense_map", {"sentences": ""}, "write 2 to 12"),
        ("sentence_pair", {"second": " "}, "empty"),
    ):
        with pytest.raises(FillmaskError, match=said):
            embedded(name, **values)
    with pytest.raises(FillmaskError, match="logits alone"):
        show("word_cosines", sentences="the cat\nthe cat", word="cat")


def test_a_pair_and_the_loss_of_its_order_by_hand(embedded):
    text = text_of(embedded("sentence_pair").pieces["tokens"])
    assert re.search(r"Segment A ?\[CLS\] she put .*fire \. \[SEP\] Segment B ?soon the", text)
    assert "no head" in text
    follows = text_of(embedded("next_sentence", probability="0.7", truth="0").pieces["order"])
    assert "= 0.357 nats; were it the other way round: 1.204 nats" in follows
    assert "1907.11692" in follows
    other = text_of(embedded("next_sentence", probability="0.7", truth="1").pieces["order"])
    assert "= 1.204 nats" in other


def test_both_losses_add_up_and_the_masked_one_is_the_evaluators(embedded):
    """Of one text that is tokenized alike, since it names the token between the sentences."""
    html = embedded("pretraining_loss", probability="0.7", truth="1").pieces["losses"]
    hidden = [float(row[2]) for row in cells(html)]
    masked, order, total = (float(row[0]) for row in rows_of(html)[-3:])
    assert len(hidden) >= 2
    assert masked == pytest.approx(sum(hidden) / len(hidden), abs=1e-3)
    assert order == pytest.approx(1.204)
    assert total == pytest.approx(masked + order, abs=1.1e-3)
    assert "no token was chosen" in embedded("pretraining_loss", seed="2").pieces["losses"]
    text = "She put the kettle on the fire. [SEP] Soon the water began to boil."
    config = EvaluationConfig(seed=context_figures.SEED)
    (row,) = evaluate(embedded.args[1], [Example(0, text)], config)
    assert masked == pytest.approx(float(row.scores.nll_nats.mean()), abs=6e-4)
