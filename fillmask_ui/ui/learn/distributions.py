"""Figures of the chapter on cross-entropy: the truth and a prediction as two distributions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fillmask_ui.filling.prompt import split_words
from fillmask_ui.lessons.context_sides import MASK
from fillmask_ui.lessons.distributions import Comparison, adds_up, compare, read_numbers, scaled
from fillmask_ui.lessons.masked_position import one_gap, true_token
from fillmask_ui.show.drawing import Scale, bars_of
from fillmask_ui.show.render import render
from fillmask_ui.ui.components import link_to
from fillmask_ui.ui.figure import Asked, Figure, Shown
from fillmask_ui.ui.session import check_text

# Words of the model beside the true one and all others.
_WORDS = 4
SENTENCE, WORD = "Water freezes when it gets very [MASK].", "cold"
_HIGHEST_NATS = 3.0  # of the drawing


@dataclass(frozen=True)
class Example:
    """Two distributions to begin with."""

    key: str
    label: str
    names: str  # as typed, and so the rest
    p: str
    q: str


ONE_HOT = (
    Example("four", "4 classes", "1, 2, 3, 4", "0, 1, 0, 0", "0.1, 0.7, 0.1, 0.1"),
    Example("three", "3 classes", "A, B, C", "0, 1, 0", "0.2, 0.5, 0.3"),
    Example("animals", "animals", "fox, cat, dog", "1, 0, 0", "0.7, 0.2, 0.1"),
)
SOFT = (
    Example("unsure", "drinks", "tea, coffee, milk", "0.6, 0.3, 0.1", "0.3, 0.3, 0.4"),
    Example("equal", "q = p", "tea, coffee, milk", "0.6, 0.3, 0.1", "0.6, 0.3, 0.1"),
    Example("zero", "zero in q", "tea, coffee, milk", "0.6, 0.3, 0.1", "0.6, 0.4, 0"),
)


def _show_one_hot(asked: Asked) -> Shown:
    example = next((one for one in ONE_HOT if one.key == asked.text("example")), ONE_HOT[0])
    names, q = split_words(example.names), read_numbers(example.q, "q")
    true = read_numbers(example.p, "p").index(1.0)
    # Each example has a choice of its own, since they differ in their classes.
    true = asked.integer(f"true_{example.key}", 0, len(q) - 1, true)
    p = [float(number == true) for number in range(len(q))]
    choice = {"example": example.key, "names": names, "true": true}
    return Shown(
        {
            "true": render("page/learn/one_hot_true.html", **choice),
            "result": _result(compare(p, q, names), "nats"),
        }
    )


def _show_compare(asked: Asked) -> Shown:
    begun = next((one for one in (*ONE_HOT, *SOFT) if asked.pressed(one.key)), None)
    if begun:
        typed = {"names": begun.names, "p": begun.p, "q": begun.q}
    else:
        typed = {name: asked.text(name, getattr(SOFT[0], name)) for name in ("names", "p", "q")}
    p, q = (read_numbers(typed[name], name) for name in ("p", "q"))
    if asked.pressed("scale"):
        p, q = (n if adds_up(n) else scaled(n, name) for name, n in (("p", p), ("q", q)))
        typed |= {"p": _written(p), "q": _written(q)}
    unit = "bits" if asked.text("unit") == "bits" else "nats"
    found = compare(p, q, split_words(typed["names"]))
    changed = typed if begun or asked.pressed("scale") else {}
    return Shown({"result": _result(found, unit)}, changed)


def _written(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:.6g}" for number in numbers)


def _result(found: Comparison, unit: str) -> str:
    return render("page/learn/distributions_result.html", found=found, unit=unit)


def _show_soft_truth(asked: Asked) -> Shown:
    p, q = asked.number("p", 0, 1, 0.7), asked.number("q", 0.01, 0.99, 0.4)
    found = compare((p, 1 - p), (q, 1 - q), ("tea", "coffee"))
    across, up = Scale(0, 1, 44, 690), Scale(0, _HIGHEST_NATS, 230, 10)
    curve = []
    for step in range(1, 200):
        loss = compare((p, 1 - p), (step / 200, 1 - step / 200)).cross_entropy_nats
        if loss <= _HIGHEST_NATS:
            curve.append(f"{across(step / 200):.1f},{up(loss):.1f}")
    values = {"found": found, "p": p, "q": q, "across": across, "up": up, "curve": " ".join(curve)}
    return Shown({"result": render("page/learn/soft_truth_result.html", **values)})


def _show_model_truth(asked: Asked) -> Shown:
    text, word = asked.text("text", SENTENCE), asked.text("word", WORD).strip()
    check_text(text)
    model, session = asked.model, asked.session
    gap = one_gap(model, text)
    true_token(model, gap, word)  # a softmax is over single tokens
    text = f"{gap.before}{MASK}{gap.after}"
    filling = session.fill(model, text, top_k=_WORDS, joint=0)
    scored = session.score_at(model, text, word, 0)
    size = filling.signature.vocabulary_size
    bars = bars_of(filling.masks[0], 0, model.vocabulary, size, scored)
    # All other words share one row: with p = 0 it adds nothing, whatever they are.
    p = [float(bar.kind == "hidden") for bar in bars]
    found = compare(p, [bar.probability for bar in bars], [bar.word for bar in bars])
    link = "?" + link_to("explore", text=text, words=word)
    values = {"scored": scored, "size": size, "link": link}
    return Shown(
        {
            "result": _result(found, "nats"),
            "model": render("page/learn/model_truth_result.html", **values),
        }
    )


FIGURES: Mapping[str, Figure] = {
    "one_hot": Figure(
        "A one-hot truth beside a prediction", _show_one_hot, {"examples": ONE_HOT}, False
    ),
    "compare_distributions": Figure(
        "Two distributions of your own",
        _show_compare,
        {"examples": (*ONE_HOT, *SOFT), "begun": SOFT[0]},
        False,
    ),
    "soft_truth": Figure("Cross-entropy for every prediction", _show_soft_truth, {}, False),
    "model_truth": Figure(
        "The truth and the model's prediction",
        _show_model_truth,
        {"text": SENTENCE, "word": WORD},
    ),
}
