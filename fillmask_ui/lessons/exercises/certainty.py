"""Exercises on comparing two losses, and on how sure a mean is."""

import numpy as np

from fillmask_ui.intervals import Interval, Limits, judge
from fillmask_ui.lessons.exercises.draws import choice
from fillmask_ui.lessons.exercises.exercise import Choice, Exercise, Numeric, Option, Slip, written


def exercises(rng: np.random.Generator, _in_course: bool) -> tuple[Exercise, ...]:
    """A relative change, its verdict, and an interval over more texts."""
    return _change(rng), _verdict(rng), _interval(rng)


def _change(rng: np.random.Generator) -> Numeric:
    baseline = int(rng.integers(150, 260)) / 100
    model = round(baseline * (1 + int(rng.choice([-40, 45, 60, 75, 120, 180, 240])) / 1000), 2)
    change = 100 * (model / baseline - 1)
    return Numeric(
        text=f"A baseline has a loss of {baseline:.2f} nats, its quantized copy {model:.2f} nats. "
        "What is the relative change of the loss, in percent?",
        answer=change,
        unit="%",
        decimals=1,
        slips=(
            Slip(change / 100, "That is the change as a fraction; times 100 it is percent."),
            Slip(
                100 * (model - baseline),
                "That is the difference in hundredths of a nat; divide "
                "it by the loss of the baseline.",
            ),
            Slip(-change, "The sign is turned: a loss that grew has a positive change."),
            Slip(
                100 * (1 - baseline / model),
                "Divide by the loss of the baseline, not by that of the copy.",
            ),
            Slip(100 * model / baseline, "That is the ratio in percent; subtract 100 %."),
        ),
        explanation=f"({model:.2f} − {baseline:.2f}) / {baseline:.2f} = "
        f"{written(model - baseline, 2)} / {baseline:.2f} = {written(change / 100, 4)}, that is "
        f"{written(change, 2)} %.",
    )


def _verdict(rng: np.random.Generator) -> Choice:
    limits = Limits()
    low, high = 100 * limits.pass_below, 100 * limits.risk_below
    wanted = str(rng.choice(["PASS", "AT_RISK", "REGRESSION", "INCONCLUSIVE"]))
    middle, half = {
        "PASS": (rng.integers(-20, 30) / 10, 1.0),
        "AT_RISK": (rng.integers(70, 81) / 10, 1.0),
        "REGRESSION": (rng.integers(130, 300) / 10, 2.0),
        "INCONCLUSIVE": (rng.integers(30, 80) / 10, 4.0),
    }[wanted]
    baseline = int(rng.integers(150, 260)) / 100
    model = round(baseline * (1 + middle / 100), 3)
    change = model / baseline - 1
    interval = Interval(change - half / 100, change + half / 100, "bootstrap-t")
    verdict = judge(change, interval, texts=1000).label
    ends = [written(100 * end, 1) for end in (interval.low, interval.high)]
    rule = (
        f"Below {low:g} % it is PASS, below {high:g} % AT_RISK, else REGRESSION, and INCONCLUSIVE "
        "where the interval lies in more than one of these."
    )
    return choice(
        rng,
        f"The loss goes from {baseline:.3f} to {model:.3f} nats; the 95 % interval of the relative "
        f"change is {ends[0]} % to {ends[1]} %. What is the verdict?",
        verdict,
        [
            Option(label, rule)
            for label in ("PASS", "AT_RISK", "REGRESSION", "INCONCLUSIVE")
            if label != verdict
        ],
        f"Change: {model:.3f} / {baseline:.3f} − 1 = {written(100 * change, 1)} %, from {ends[0]} "
        f"% to {ends[1]} %.\n{rule} Here: {verdict}.",
    )


def _interval(rng: np.random.Generator) -> Numeric:
    root = int(rng.integers(2, 6))
    texts, half = 50 * int(rng.integers(1, 9)), int(rng.integers(20, 61)) / 100
    more, narrow = texts * root**2, half / root
    return Numeric(
        text=f"Over {texts} texts a mean loss is known to ± {half:.2f} nats. To about how many "
        f"nats is it known over {more} texts of the same kind?",
        answer=narrow,
        unit="nats",
        decimals=3,
        slips=(
            Slip(
                half / root**2,
                f"With {root**2} times the texts it shrinks by √{root**2}, not by {root**2}.",
            ),
            Slip(half, "More texts make the mean surer: the interval shrinks."),
            Slip(half * root, "More texts make the mean surer: divide."),
        ),
        explanation=f"{more} / {texts} = {root**2} times as many texts; the interval shrinks with "
        f"the square root of the number of texts: √{root**2} = {root}.\n± {half:.2f} / {root} = "
        f"± {written(narrow, 4)} nats.",
    )
