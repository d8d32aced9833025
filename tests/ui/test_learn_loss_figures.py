"""Figures on one masked word: guesses, the loss, its sides, distributions; losses as of torch."""

import math
import re
from functools import partial

import pytest
import torch
from lesson_figures import cells, show_figure, text_of
from page_tags import Tags
from table_model import TableModel

from fillmask_ui import fill, load_model
from fillmask_ui.errors import OptionError, TextError
from fillmask_ui.filling import score_candidate_at, score_candidates
from fillmask_ui.models import ModelStore
from fillmask_ui.ui.learn import context_figures, guess_figures, loss_figures
from fillmask_ui.ui.session import Session
from tests.ui.test_examples import holds

TEXT = "the [MASK] sat on the mat."
MASK = {"sentence": TEXT, "truth": "cat"}
SPLIT = {"word_0": "cat", "percent_0": "50", "word_1": "dog", "percent_1": "25"}
OURS = {"which": "own", **MASK, **SPLIT}


@pytest.fixture(scope="module", params=["embedded", "embedded:int8"])
def embedded(request):
    """A session and its model."""
    session = Session(ModelStore(), request.param)
    return session, session.model("")


@pytest.fixture
def show(session):
    """What a figure shows of the table model."""
    return partial(show_figure, session, TableModel())


@pytest.fixture
def logits():
    """Of the table model at the mask, for torch."""
    model = TableModel()
    ids = model.vocabulary.encode(TEXT).ids
    own = model.own[model.vocabulary.mask_id]
    return torch.tensor(model.left[ids[1]] + model.right[ids[3]] + own).double()


def cross_entropy(logits, temperature=1.0):
    target = torch.tensor([TableModel().vocabulary.ids["cat"]])
    return torch.nn.functional.cross_entropy(logits[None] / temperature, target).item()


def entropy(logits, temperature=1.0):
    return torch.distributions.Categorical(logits=logits / temperature).entropy().item()


def bars(html):
    """Word -> the probability that its bar shows."""
    row = r'fm-row-name" dir="auto">(?:<span.*?</span>)?([^<]*?) ?<.*?--p:([\d.]+)'
    return {word: float(value) for word, value in re.findall(row, html, re.S)}


# ---- Guess the word


@pytest.mark.parametrize("example", [*guess_figures.READY, *guess_figures.ROUNDS], ids=str)
def test_the_model_makes_the_point_of_every_sentence(example, embedded):
    assert example.claims and len(example.hidden) == 1
    assert [claim for claim in example.claims if not holds(claim, example, embedded[1])] == []


def test_the_model_is_absent_until_it_is_revealed_for_this_sentence(show, logits):
    hidden = show("guess", **OURS)
    expected = {"cat": 0.5, "dog": 0.25, "no guess": 0.25}
    assert bars(hidden.pieces["result"]) == pytest.approx(expected)
    assert "model" not in "".join(hidden.pieces.values()).lower()
    assert "cat" not in hidden.pieces["sentence"] and hidden.set == {"revealed": ""}
    shown = show("guess", **OURS, reveal=1)
    assert "cat" in shown.pieces["sentence"] and "0.693 nats" in shown.pieces["result"]
    assert f"{cross_entropy(logits):.3f} nats" in shown.pieces["result"]
    later = {**OURS, **shown.set, "percent_0": "25"}
    assert "1.386 nats" in show("guess", **later).pieces["result"]
    assert "The class" in show("guess", **later, hide=1).pieces["result"]
    assert show("guess", **{**later, "sentence": "a [MASK] ran."}).set == {"revealed": ""}
    nobody = show("guess", **{**OURS, "truth": "river"}, reveal=1).pieces["result"]
    assert "Nobody guessed “river”: the loss of the class is infinite" in nobody
    markup = show("guess", **{**OURS, "word_0": "<img src=x>", "truth": ""}, reveal=1)
    assert "&lt;img" in markup.pieces["result"] and "<img" not in markup.pieces["result"]


def test_no_more_than_all_is_split_and_something_is_guessed(show):
    with pytest.raises(OptionError, match="percents add up to 120"):
        show("guess", **{**OURS, "percent_1": "70"})
    with pytest.raises(OptionError, match="nobody has guessed yet"):
        show("guess", **{**OURS, "word_0": "", "word_1": ""}, reveal=1)
    with pytest.raises(TextError, match="no mask"):
        show("guess", **{**OURS, "sentence": "the cat sat"})


def test_the_score_of_three_masks_is_the_mean_of_the_losses(embedded):
    session, model = embedded
    typed = {"guesses_0": "honey 3, wax", "guesses_1": "hay 50%, oats 20%", "guesses_2": "sea 1%"}
    assert show_figure(session, model, "guess_rounds", **typed).pieces == {"result": ""}
    html = show_figure(session, model, "guess_rounds", **typed, score=1).pieces["result"]
    ours = [
        score_candidates(model, one.text, [*one.hidden])[0][0].nll_nats
        for one in guess_figures.ROUNDS
    ]
    people = [-math.log(0.75), -math.log(0.5), -math.log(0.01)]
    mean = html[html.index("<tfoot>") :]
    assert f"{sum(people) / 3:.3f}" in mean and f"{sum(ours) / 3:.3f}" in mean
    assert all(f"{value:.3f}" in html for value in [*people, *ours])
    nobody = {**typed, "guesses_1": "", "score": "1"}
    assert "infinite" in show_figure(session, model, "guess_rounds", **nobody).pieces["result"]


# ---- From logits to a loss


def test_columns_open_one_after_the_other_and_only_differences_matter(show, logits):
    tables = [show("softmax_table", **MASK, columns=n).pieces["table"] for n in (1, 2, 3, 4)]
    assert [table.count('scope="col"') for table in tables] == [2, 3, 4, 5]
    cat = TableModel().vocabulary.ids["cat"]
    assert f"{logits[cat]:.2f}" in tables[0] and "sum" not in tables[1]
    assert f"{torch.exp(logits).sum():,.0f}" in tables[2] and "nats" not in tables[2]
    assert f"{cross_entropy(logits):.3f} nats" in tables[3]
    shares = re.findall(r"--share:([\d.]+)", tables[3])
    for added, number in (("5", 5), ("largest", -logits.max().item())):
        moved = show("softmax_table", **MASK, columns=4, added=added).pieces["table"]
        assert re.findall(r"--share:([\d.]+)", moved) == shares and len(shares) >= 5
        assert f">{logits.max().item() + number:.2f}<" in moved


@pytest.mark.parametrize(
    ("typed", "nats", "bits"),
    [("70", "0.357", "0.515"), ("1", "4.605", "6.644"), ("seventy", "0.357", "0.515")],
)
def test_the_curve_has_the_numbers_of_the_course(typed, nats, bits):
    pieces = show_figure(None, None, "loss_curve", percent=typed).pieces
    assert f">{nats}<" in pieces["point"] and f">{bits}<" in pieces["point"]
    curve = pieces["curve"]
    frame = re.search(r'fm-frame" x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"', curve)
    left, top, width, height = map(int, frame.groups())
    x, y = map(float, re.search(r"cx:([\d.]+)px;cy:([\d.]+)px", curve).groups())
    share, loss = (x - left) / width, (top + height - y) / height * 7
    assert loss == pytest.approx(float(nats), abs=0.01)
    assert share == pytest.approx(math.exp(-loss), abs=0.01)


@pytest.mark.parametrize("temperature", [0.1, 1, 5])
def test_bars_and_loss_follow_the_temperature(show, logits, temperature):
    pieces = show("loss_temperature", **MASK, temperature=temperature).pieces
    wanted = torch.softmax(logits / temperature, 0)
    found, ids = bars(pieces["bars"]), TableModel().vocabulary.ids
    assert sum(found.values()) == pytest.approx(1, abs=1e-4)
    words = [word for word in found if word in ids]
    assert len(words) >= 4
    for word in words:
        assert found[word] == pytest.approx(wanted[ids[word]].item(), abs=1e-5)
    for value in (cross_entropy(logits, temperature), entropy(logits, temperature)):
        assert f"{value:.3f} nats" in pieces["facts"]
    assert f"{math.log(len(logits)):.3f} nats" in pieces["facts"]


def test_the_embedded_model_shows_what_temperature_does(embedded):
    """Sharper, the loss of the second word grows; flatter, loss and entropy near ln V."""
    example = guess_figures.READY[0]

    def figures(temperature):
        values = {"sentence": example.text, "truth": example.hidden[0], "temperature": temperature}
        facts = show_figure(*embedded, "loss_temperature", **values).pieces["facts"]
        return [float(n) for n in re.findall(r'<dd dir="auto">([\d.]+) nats', facts)]

    (cold, sure, top), (plain, _, _), (hot, unsure, _) = map(figures, (0.1, 1, 5))
    assert cold > 3 * plain and sure < 0.05
    assert hot > plain and unsure > 0.8 * top


def test_three_names_of_one_loss(show, logits):
    html = show("loss_units", **MASK).pieces["units"]
    value = cross_entropy(logits)
    assert f">{value:.3f}<" in html and f">{value / math.log(2):.3f}<" in html
    assert f">{math.exp(entropy(logits)):.2f}<" in html
    boxes = [min(loss_figures.MOST_BOXES, round(math.exp(n))) for n in (value, entropy(logits))]
    assert html.count("<i></i>") == sum(boxes)


@pytest.mark.parametrize("name", ["softmax_table", "loss_temperature", "loss_units"])
def test_what_is_wrong_with_a_sentence_is_said(show, name):
    with pytest.raises(OptionError, match="is 2 tokens"):
        show(name, **{**MASK, "truth": "walking"})
    with pytest.raises(TextError, match="has 2 masks"):
        show(name, sentence="[MASK] [MASK]", truth="cat")


@pytest.mark.parametrize("family", ["roberta", "xlm-roberta"])
def test_other_tokenizers_write_their_masks_otherwise(tiny_models, family):
    model = load_model(str(tiny_models.without_onnx(family)), runtime="torch")
    session = Session(ModelStore(loader=lambda reference, **_: model), family)
    words = [c.word.strip() for c in fill(model, TEXT, top_k=100).masks[0].candidates]
    best = next(w for w in words if w.isalpha() and len(model.vocabulary.encode_word(w)) == 1)
    values = {**OURS, "truth": best, "temperature": "2", "columns": "4", "reveal": "1"}
    for name in ("guess", "softmax_table", "loss_temperature", "loss_units"):
        shown = show_figure(session, model, name, **values)
        assert best in "".join(shown.pieces.values())


# ---- Both sides


def test_three_sides_show_the_losses_of_the_cut_texts(embedded):
    model = embedded[1]
    pieces = show_figure(*embedded, "sides").pieces
    texts = ["I put the [MASK].", "[MASK] into the lock and opened the door."]
    for number, text in enumerate([*texts, context_figures.EXAMPLES[0].text], 1):
        said = text_of(pieces[f"view{number}"])
        word = score_candidate_at(model, text, "key", 0)
        assert text in said and f"loss {word.nll_nats:.3f} nats" in said
        best = fill(model, text, top_k=1, joint=0).masks[0].candidates[0]
        assert f"{best.word} {100 * best.probability:.1f}%" in said
    pressed = show_figure(*embedded, "sides", cup=1, text="anything", word="x")
    assert pressed.set == {"text": "I drink a cup of [MASK] every morning.", "word": "tea"}
    assert "for “tea”" in text_of(pressed.pieces["view3"])


def test_a_side_is_cut_or_hidden(show):
    text = {"text": "The [MASK] sat on the old mat.", "word": "cat"}
    titles = [
        text_of(piece).split(" The ")[0] for piece in show("cut_or_hidden", **text).pieces.values()
    ]
    assert titles == ["Cut off", "Cut off, “.” stays", "Hidden by masks"]
    pieces = show("cut_or_hidden", kept="right", **text).pieces
    assert "[MASK] [MASK] sat" in text_of(pieces["view2"])
    assert text_of(pieces["view3"]).startswith("All words The [MASK] sat")
    pieces = show("cut_or_hidden", text="the [MASK] sat", word="cat").pieces
    assert text_of(pieces["view3"]).startswith("All words")


@pytest.mark.parametrize("figure", ["sides", "cut_or_hidden", "model_truth", "attention"])
def test_what_cannot_be_asked_is_said_and_nothing_is_markup(show, figure):
    with pytest.raises(TextError, match="no mask"):
        show(figure, text="no gap here.")
    if figure != "attention":
        with pytest.raises(OptionError, match="word is missing"):
            show(figure, text=TEXT, word=" ")
    written = "<img src=x onerror=alert(1)> & [MASK] <b>the</b>."
    pieces = show(figure, text=written, word="cat").pieces
    assert not Tags("".join(pieces.values())).names & {"img", "b"}


def test_the_grids_say_how_many_words_a_guess_can_use(show):
    said = text_of(show("attention").pieces["grids"])
    assert "Guessed at “The”, from 1 word." in said
    assert "Guessed in the gap, from 8 words." in said
    said = text_of(show("attention", text="[MASK] is blue.").pieces["grids"])
    assert "before the first word, from 0 words" in said


def test_every_word_is_measured_from_three_sides(show):
    rows = cells(show("side_losses", text="the cat sat.").pieces["losses"])
    assert [row[0] for row in rows] == ["the", "cat", "sat"]
    views = ("the [MASK].", "[MASK] sat.", "the [MASK] sat.")
    losses = [score_candidate_at(TableModel(), view, "cat", 0).nll_nats for view in views]
    assert rows[1][1:] == [f"{loss:.3f}" for loss in losses]


# ---- Two distributions


def test_a_one_hot_truth_leaves_one_term(show):
    shown = show("one_hot")
    assert cells(shown.pieces["result"])[1] == ["2", "1", "0.7", "0.357", "0.357"]
    assert "cross-entropy H(p, q) 0.357 nats" in text_of(shown.pieces["result"])
    shown = show("one_hot", example="animals", true_animals="2", true_four="0")
    terms = [row[-1] for row in cells(shown.pieces["result"])]
    assert terms == ["0.000", "0.000", f"{-math.log(0.1):.3f}"]
    assert shown.pieces["true"].count("checked") == 1


def test_typed_distributions_are_compared_in_either_unit_and_scaled_on_request(show):
    typed = {"names": "yes, no", "p": "1/2, 1/2", "q": "25%, 75%"}
    said = text_of(show("compare_distributions", **typed, unit="bits").pieces["result"])
    # By hand: H(p) = 1 bit, H(p, q) = (2 + log2(4/3)) / 2 = 1.2075 bits.
    assert "cross-entropy H(p, q) 1.208 bits = entropy H(p) 1.000 bits + KL(p ‖ q) 0.208" in said
    result = show("compare_distributions", zero="1").pieces["result"]
    assert "H(p, q) infinite" in text_of(result)
    assert cells(result)[2] == ["milk", "0.1", "0", "∞", "∞"]
    wrong = {"p": "3, 1", "q": "0.5, 0.5"}
    with pytest.raises(OptionError, match="p adds up to 4"):
        show("compare_distributions", **wrong)
    shown = show("compare_distributions", **wrong, scale="1")
    assert (shown.set["p"], shown.set["q"]) == ("0.75, 0.25", "0.5, 0.5")
    # What was written into the fields is again a distribution.
    again = show("compare_distributions", p="1 1 1", q="1 2 4", scale="1").set
    assert show("compare_distributions", p=again["p"], q=again["q"]).pieces["result"]


def test_the_cross_entropy_is_lowest_at_the_truth(show):
    said = text_of(show("soft_truth", p="0.7", q="0.7").pieces["result"])
    floor = -0.7 * math.log(0.7) - 0.3 * math.log(0.3)
    assert f"H(p, q) {floor:.3f} nats = entropy H(p) {floor:.3f} nats" in said
    assert "KL(p ‖ q) 0.000 nats" in said
    # A certain truth has no floor.
    assert "entropy H(p) 0.000 nats" in text_of(show("soft_truth", p="1", q="2").pieces["result"])


def test_the_models_cross_entropy_is_the_loss_that_explore_shows(embedded):
    shown = show_figure(*embedded, "model_truth")
    word = score_candidate_at(embedded[1], loss_figures.SENTENCE, loss_figures.WORD, 0)
    assert 0.2 < word.probability < 0.9  # likely, but not certain
    assert f"cross-entropy H(p, q) {word.nll_nats:.3f} nats" in text_of(shown.pieces["result"])
    assert f"“cold”: {word.nll_nats:.3f} nats" in text_of(shown.pieces["model"])
    rows = cells(shown.pieces["result"])
    assert sum(float(row[2]) for row in rows) == pytest.approx(1, abs=0.002)
    with pytest.raises(OptionError, match="is 2 tokens"):
        show_figure(*embedded, "model_truth", text="He had a [MASK].", word="toothache")
