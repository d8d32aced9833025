"""Templates with slots: their sentences, what is refused, and numbers of transformers' pipeline."""

import math

import pytest
from explore_page import asked, session_of
from table_model import TableModel
from test_displays import shown
from tiny_models import EVERY_FAMILY

from fillmask_ui.errors import OptionError
from fillmask_ui.features.slots import heat_map
from fillmask_ui.features.slots.feature import FEATURE
from fillmask_ui.features.slots.slot_examples import slot_examples
from fillmask_ui.features.slots.slot_tables import wide_table
from fillmask_ui.features.slots.slot_template import MAX_SENTENCES, sentences_of
from fillmask_ui.features.slots.word_spread import LEAST_PROBABILITY, slots
from fillmask_ui.filling import fill, score_candidates
from fillmask_ui.ui.explore.explore_modes import served

CATS = "the {cat|old dog} {sat on|ran to} the [MASK]."


def test_two_slots_meet_each_other():
    texts = [sentence.text for sentence in sentences_of(CATS, "<mask>")]
    assert texts == [
        "the cat sat on the <mask>.",
        "the cat ran to the <mask>.",
        "the old dog sat on the <mask>.",
        "the old dog ran to the <mask>.",
    ]
    with_mask = sentences_of("{a ___ sat|sat a ___}.", "[MASK]")
    assert [sentence.text for sentence in with_mask] == ["a [MASK] sat.", "sat a [MASK]."]
    with_nothing = sentences_of("a{| not} [MASK]", "[MASK]")
    assert [sentence.name for sentence in with_nothing] == ["(nothing)", "not"]


def test_the_longer_list_is_the_rows_of_the_printed_table():
    """So that twelve words, the default, fit 80 columns."""
    model, template = TableModel(seed=3), "{the|a} cat [MASK] ."
    table = slots(model, template)
    printed = wide_table(table, "nats")
    assert printed.headings == ("word", "the", "a", "spread (nats)")
    assert [row[0] for row in printed.rows] == [word.word for word in table.words]
    first = table.words[0]
    assert printed.rows[0][1:] == (*first.probability, f"{first.spread_nats:.2f}")
    few = wide_table(slots(model, template, ["sat", "ran"]), "nats")
    assert few.headings == ("sentence", "sat", "ran") and few.rows[-1][0] == "spread (nats)"


def test_a_notebook_shows_words_by_sentences():
    model = TableModel(seed=3)
    table = slots(model, CATS, ["mat", "walking"])
    frame = shown(table)
    for index, sentence in enumerate(table.sentences):
        scores = score_candidates(model, sentence.text, ["mat", "walking"])[0]
        rows = frame[frame.sentence == sentence.text]
        assert [*rows.probability] == [score.probability for score in scores]
        assert [*rows.filling_1, *rows.filling_2] == [f for f in sentence.fillings for _ in scores]
        assert table.words[0].probability[index] == scores[0].probability
    assert table._repr_html_().count("<td") == 8 == len(table.figure().data[0].x)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("the [MASK].", "0 slots"),
        ("{a|b} {c|d} {e|f} [MASK]", "3 slots"),
        ("{a} [MASK]", "one alternative"),
        ("{} [MASK]", "one alternative"),
        ("{a|b [MASK]", "opened and not closed"),
        ("{a|{b|c}} [MASK]", "opened and not closed"),
        ("a|b} [MASK]", "was not opened"),
        ("{a|b|a} [MASK]", "'a' twice"),
        ("{a|b} c", "has no mask"),
        ("{a [MASK]|b} c", "has no mask"),
        ("{a|b} [MASK] [MASK]", "2 masks"),
        ("{1|2|3|4|5} {1|2|3|4|5} [MASK]", "25 sentences"),
    ],
)
def test_a_template_that_cannot_be_read_is_refused_in_a_line(template, message):
    with pytest.raises(OptionError, match=message) as refused:
        sentences_of(template, "[MASK]")
    assert "\n" not in str(refused.value)


def test_as_many_sentences_as_stated_are_possible():
    alternatives = "|".join(map(str, range(MAX_SENTENCES)))
    assert len(sentences_of(f"{{{alternatives}}} [MASK]", "[MASK]")) == MAX_SENTENCES


@pytest.mark.parametrize("runtime", ["onnx", "torch"])
@pytest.mark.parametrize("family", EVERY_FAMILY)
def test_equals_the_fill_mask_pipeline(family, runtime, loaded, tiny_models):
    """The outside reference: `transformers.pipeline("fill-mask")` for each sentence."""
    from transformers import pipeline as make

    pipeline = make("fill-mask", model=str(tiny_models.folder(family)))
    model = loaded(family, runtime)
    vocabulary, size = model.vocabulary, model.signature.vocabulary_size
    sentences = sentences_of(CATS, vocabulary.mask_token)
    expected = [
        {
            candidate["token"]: candidate["score"]
            for candidate in pipeline(sentence.text, top_k=size)
        }
        for sentence in sentences
    ]
    words = {vocabulary.word(token_id): token_id for token_id in expected[0]}
    words = {
        word: token_id
        for word, token_id in words.items()
        if token_id not in vocabulary.special_ids and vocabulary.encode_word(word) == (token_id,)
    }
    words = dict([*words.items()][:20])
    assert len(words) > 5
    table = slots(model, CATS, tuple(words))
    for word in table.words:
        scores = [scores[words[word.word]] for scores in expected]
        assert word.probability == pytest.approx(scores, abs=1e-5)
        assert word.nll_nats == pytest.approx([-math.log(score) for score in scores], abs=1e-3)


def test_typed_words_of_several_tokens_are_those_of_fill():
    model, words = TableModel(1), ("cat", "slowly", "warmerly")
    table = slots(model, CATS, words)
    assert [word.word for word in table.words] == [*words]
    assert [word.tokens for word in table.words] == [1, 2, 3]
    for index, sentence in enumerate(table.sentences):
        (scored,) = score_candidates(model, sentence.text, words)
        assert [word.nll_nats[index] for word in table.words] == pytest.approx(
            [score.nll_nats for score in scored]
        )


def test_words_are_chosen_by_their_spread():
    model = TableModel(1)
    table = slots(model, CATS, top_k=4)
    spreads = [word.spread_nats for word in table.words]
    assert len(spreads) == 4 and spreads == sorted(spreads, reverse=True)
    nlls = {}
    for filling in fill(model, [sentence.text for sentence in table.sentences], top_k=None):
        for candidate in filling.masks[0].candidates:
            nlls.setdefault(candidate.token, []).append(candidate.nll_nats)
    expected = [
        max(values) - min(values)
        for token, values in nlls.items()
        if min(values) <= -math.log(LEAST_PROBABILITY) and token.isalnum()
    ]
    assert spreads == pytest.approx(sorted(expected, reverse=True)[:4])
    assert table.to_dict()["words"][0]["spread_nats"] == spreads[0]


def test_the_templates_that_ship_can_be_read():
    examples = slot_examples()
    assert len(examples) == 6
    assert examples[0].template == FEATURE.modes[0].fields["template"]
    for example in examples:
        assert 2 <= len(sentences_of(example.template, "[MASK]")) <= MAX_SENTENCES
        assert example.thin.endswith(".")


SERVED = served()
STATE = {"model": "table", "fields": {"template": CATS, "slot_words": ""}}


def test_the_page_has_the_numbers_of_python():
    session = session_of()
    answer = asked(SERVED["slots"], session, STATE)
    assert answer["kind"] == "none"
    table = slots(TableModel(1), CATS)
    for word in table.words:
        for nll in word.nll_nats:
            assert f"{nll:.4f}" in answer["html"]["table"]
    assert answer["html"]["story"].count('"fm-heat-cell"') == 4 * len(table.words)
    assert "fm-slots-scatter" not in answer["html"]["story"]
    file = asked(SERVED["slots_csv"], session, STATE)
    assert len(file["text"].splitlines()) == 1 + 4 * len(table.words)
    pair = asked(SERVED["slots"], session, STATE | {"compare": "noisy"})
    assert pair["html"]["story"].count('"fm-heat-cell"') == 8 * len(table.words)
    fields = {"template": "the {cat|dog} [MASK].", "slot_words": "sat, ?"}
    two_sentences = asked(SERVED["slots"], session, STATE | {"fields": fields})
    assert "fm-slots-scatter" in two_sentences["html"]["story"]
    assert "cannot be spelled" in two_sentences["html"]["story"]


@pytest.mark.parametrize(
    ("template", "words", "kind"),
    [
        ("", "", "hint"),
        ("{a|b", "", "error"),
        ("the cat [MASK].", "", "error"),
        (CATS, "?", "error"),
    ],
)
def test_the_page_says_what_is_wrong(template, words, kind):
    fields = {"template": template, "slot_words": words}
    answer = asked(SERVED["slots"], session_of(), STATE | {"fields": fields})
    assert answer["kind"] == kind and answer["notice"]
    assert answer["html"]["story"].count("data-set") == 6


def test_names_of_a_scatter_plot_do_not_cover_each_other():
    points = [(100.0, 100.0), (108.0, 104.0), (104.0, 112.0)]
    labels = heat_map.placed_labels(["nurse", "doctor", "teacher"], points)
    assert len({(label.x, label.y) for label in labels}) == 3


def test_the_command_prints_a_table_and_json(fillmask, tmp_path):
    words = ("--candidates", "nurse, carpenter")
    template = "{He|She} worked as a [MASK]."
    printed = fillmask("slots", template, *words, "--csv", tmp_path / "slots.csv")
    assert "carpenter" in printed.stdout.lower() and printed.returncode == 0
    lines = (tmp_path / "slots.csv").read_text("utf-8").splitlines()
    assert lines[0] == "model,sentence,filling_1,filling_2,word,probability,nll_nats"
    assert len(lines) == 5
    pair = fillmask("slots", template, *words, "--baseline", "embedded:int8", "--json").json
    assert [*pair] == ["reference", "candidate"]
    nurse, carpenter = (word["probability"] for word in pair["candidate"]["words"])
    assert nurse[1] > nurse[0] and carpenter[0] > carpenter[1]
    refused = fillmask("slots", "{He|She works as a [MASK].")
    assert refused.returncode == 2 and "opened and not closed" in refused.stderr
