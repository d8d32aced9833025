"""A class's rounds and typed guesses: splits, the pooled distribution, losses, all by hand."""

import csv
import io
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fillmask_ui.errors import DataError, FillmaskError, OptionError, TextError
from fillmask_ui.features.classroom.class_rounds import (
    parse_sentence,
    pool,
    read_sentences,
    smoothed_nll,
    split_of,
    standing,
)
from fillmask_ui.features.classroom.class_run import (
    ClassRound,
    ClassRun,
    ClassStore,
    RoundLosses,
    WordShare,
    write_csv,
)
from fillmask_ui.filling.guesses import Guess, parse_guesses

V = 1000
TEA = (WordShare("tea", 0.5, 0.25),)


HOSTILE = tuple(
    WordShare(word, 0.1, None)
    for word in ("tea;=1+1", "tea\t@SUM(A1)", "＝1+1", "x; －1+1", 'x;"+1+1;y', "\t=1", "-1+1")
)


def split(**percents):
    return split_of([Guess(word, percent) for word, percent in percents.items()])


def finished(people, model, text="a [MASK]", words=TEA):
    losses = RoundLosses(people, people + 1, model)
    return ClassRound(text, "", "tea", 3, words, WordShare("", 0.5, 0.75), losses)


def test_losses_by_hand():
    """s = 0.99 (p + u/V) + 0.01/V, with V = 1000, worked out on paper."""
    sure, half, wrong = split(tea=100), split(tea=50, milk=30), split(milk=100)
    assert smoothed_nll(sure, "Tea ", V) == pytest.approx(-math.log(0.99 + 0.00001), rel=1e-12)
    assert smoothed_nll(half, "tea", V) == pytest.approx(-math.log(0.495 + 0.000198 + 0.00001))
    assert smoothed_nll(wrong, "tea", V) == pytest.approx(math.log(100 * V))  # the largest there is
    pooled = pool([sure, half, wrong])
    assert [own.word for own in pooled.guesses] == ["tea", "milk"]
    assert (pooled.share("tea"), pooled.share("Milk")) == pytest.approx((0.5, 1.3 / 3))
    assert pooled.no_guess == pytest.approx(0.2 / 3)
    assert smoothed_nll(pooled, "tea", V) == pytest.approx(
        -math.log(0.99 * (0.5 + 0.2 / 3 / V) + 0.01 / V)
    )
    # A word that nobody named has what was not placed.
    assert smoothed_nll(pooled, "rum", V) == pytest.approx(-math.log(0.99 * 0.2 / 3 / V + 0.01 / V))


def test_characters_that_nobody_sees_make_no_other_word():
    """Of Persian, "mikhaham" is spelled with a joiner of no width, which stays."""
    (tea,) = split_of([Guess("Tea\u200b", 50), Guess("\u202etea \u3164", 20)]).guesses
    assert (tea.word, tea.amount) == ("Tea", 70)
    persian = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    assert split_of([Guess(f"{persian}\u200d", 1)]).guesses[0].word == persian


SHARES = st.lists(
    st.tuples(st.sampled_from(["tea", "Tea", "milk", "rum"]), st.integers(0, 33)), max_size=3
)


@given(st.lists(SHARES, min_size=1, max_size=30), st.sampled_from(["tea", "gin"]))
def test_together_is_never_worse_than_the_mean_of_each(students, truth):
    """Jensen's inequality, for which both must be smoothed alike."""
    splits = [split_of([Guess(*own) for own in guesses]) for guesses in students]
    mean = math.fsum(smoothed_nll(own, truth, V) for own in splits) / len(splits)
    assert smoothed_nll(pool(splits), truth, V) <= mean + 1e-9
    pooled = pool(splits)
    total = math.fsum(pooled.share(own.word) for own in pooled.guesses) + pooled.no_guess
    assert total == pytest.approx(1)


@pytest.mark.parametrize(
    ("guesses", "said"),
    [
        ([Guess("a", 60), Guess("b", 50)], "at most 100"),
        ([Guess("a", -1)], "0 to 100"),
        ([Guess("a", math.nan)], "0 to 100"),
        ([Guess("x" * 41, 10)], "1 to 40 characters"),
        ([Guess(" ", 10)], "1 to 40 characters"),
        ([Guess(own, 10) for own in "abcd"], "at most 3"),
    ],
)
def test_bad_splits_are_refused(guesses, said):
    with pytest.raises(OptionError, match=said):
        split_of(guesses)


def test_the_spelling_of_most_is_shown_and_controls_are_dropped():
    splits = [split(tea=10), split(Tea=10), split(Tea=10), split_of([Guess("a\x00b", 1)])]
    assert [own.word for own in pool(splits).guesses] == ["Tea", "ab"]


def test_sentences_of_a_file(tmp_path):
    path = tmp_path / "sentences.txt"
    path.write_text("Hot or [cold].\tWhich?\n\nBees make ___.\n", "utf-8-sig")
    first, second = read_sentences(path)
    assert (first.text, first.truth, first.question) == ("Hot or [MASK].", "cold", "Which?")
    assert (second.text, second.truth) == ("Bees make ___.", "")
    for wrong, said in [
        ("No gap.", "line 1: no word is hidden"),
        ("[a] and [b]", "2 words are in brackets"),
    ]:
        path.write_text(wrong)
        with pytest.raises(TextError, match=said):
            read_sentences(path)
    path.write_text("\n")
    with pytest.raises(TextError, match="has 0 sentences"):
        read_sentences(path)
    with pytest.raises(DataError, match="cannot be read as sentences"):
        read_sentences(tmp_path / "none.txt")
    with pytest.raises(FillmaskError, match="shorten it"):
        parse_sentence("a" * 1001)


def test_standing_over_the_sentences():
    """The interval against scipy's paired t test, which is the one below ten sentences."""
    from scipy import stats

    people, model = [1.0, 2.0, 0.5, 1.5], [1.5, 2.25, 1.75, 1.25]
    rounds = [finished(*both) for both in zip(people, model, strict=True)]
    unknown = ClassRound("b [MASK]", "", "", 2, (), WordShare("", 1.0, 1.0))
    found = standing([*rounds, unknown, finished(3.0, None)])
    assert len(found.losses) == 4
    assert found.people_nats - found.model_nats == pytest.approx(-0.4375)
    interval = stats.ttest_rel(people, model).confidence_interval(0.95)
    assert (found.interval.low, found.interval.high) == pytest.approx((interval.low, interval.high))
    assert standing([unknown]) is None
    assert standing(rounds[:1]).interval is None


def test_a_stored_class_is_what_was_saved_and_nothing_runs_in_its_csv(tmp_path):
    store = ClassStore(tmp_path)
    words = (WordShare("tea", 0.5, 0.25), WordShare("=1+1", 0.1, None), *HOSTILE)
    run = ClassRun({"name": "table"}, "ABCD", "0" * 64, (finished(0.5, 1.0, words=words),))
    saved = store.save(run)
    again = store.save(saved)
    assert store.names() == [again.name]
    assert store.read(again.name[:15]) == saved
    target = io.StringIO()
    write_csv(saved.rounds, target)
    lines = target.getvalue().splitlines()
    assert lines[1] == "1,a [MASK],tea,3,tea,1,0.5,0.25,0.5,1.5,1.0"
    assert lines[2].split(",")[4:7] == ["'=1+1", "0", "0.1"]
    assert lines[-1].split(",")[4:7] == ["", "0", "0.5"]
    for delimiter in ",;\t":  # whatever a spreadsheet takes for the end of a cell
        for row in csv.reader(target.getvalue().splitlines(), delimiter=delimiter):
            assert not [cell for cell in row if re.match(r"[\s\"]*[=+\-@＝＋－＠]", cell)]
    (tmp_path / saved.name / "class.json").write_text("{")
    with pytest.raises(DataError, match=saved.name):
        store.read(saved.name)
    store.delete(saved.name)
    assert store.names() == []


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("mat 12, floor 5, sofa", {"mat": 12, "floor": 5, "sofa": 1}),
        ("mat\nfloor\n\nmat", {"mat": 2, "floor": 1}),
        ("Mat 3; mat 4", {"Mat": 7}),
        ("ice cream 3, ice  CREAM", {"ice cream": 4}),
        ("mat: 12, floor = 5", {"mat": 12, "floor": 5}),
        ("covid-19, 1945 2", {"covid-19": 1, "1945": 2}),
        ("  ,\n;", {}),
    ],
)
def test_counts(typed, wanted):
    found = parse_guesses(typed)
    assert {guess.word: guess.amount for guess in found.guesses} == wanted
    assert not found.percent


def test_percents_leave_a_rest_that_guessed_nothing():
    found = parse_guesses("mat 60%, floor 12.5 %")
    assert found.percent and found.share("MAT ") == 0.6
    assert found.no_guess == pytest.approx(0.275)
    # Percents that were rounded one by one may add up to a little more.
    rounded = parse_guesses("a 33.5%, b 33.5%, c 33.5%")
    assert sum(rounded.share(word) for word in "abc") == pytest.approx(1)
    assert rounded.no_guess == 0


def test_losses_of_guesses_by_hand():
    """12 of 18: ln 1.5. With one more guess for it 1 of 19; of percents, 1 of 100."""
    found = parse_guesses("mat 12, floor 5, sofa")
    assert found.nll_nats("Mat") == pytest.approx(math.log(1.5))
    assert found.nll_nats("rug") == math.inf
    assert found.nll_with_one_more("rug") == pytest.approx(math.log(19))
    assert parse_guesses("mat 60%").nll_with_one_more("rug") == pytest.approx(math.log(100))
