"""What the tasks in `texts/*.yaml` draw: a number, or with a function of its own all of a task."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from fillmask_ui.features.course.distributions import compare
from fillmask_ui.features.course.exercises.exercise import Item, written
from fillmask_ui.features.course.heads.labeled_texts import labeled_texts
from fillmask_ui.intervals import Interval, Limits, judge
from fillmask_ui.scoring import nll_nats

Drawn = dict[str, Any]
Rng = np.random.Generator

_WORDS = yaml.safe_load(Path(__file__).with_name("words.yaml").read_text(encoding="utf-8"))
_SENSES: dict[str, list[str]] = _WORDS["senses"]


def masked_sentence(rng: Rng) -> Drawn:
    """A sentence with a mask, and four words for it, the true one first."""
    sentence, words = choice(rng, _WORDS["masked"])
    return {"sentence": sentence, "words": rng.permutation(words).tolist()}


def shares(rng: Rng, count: int, step: float = 0.05) -> list[float]:
    """Probabilities that differ, are multiples of a step, and add up to 1."""
    steps = round(1 / step)
    while True:
        cuts = np.sort(rng.choice(np.arange(1, steps), count - 1, replace=False))
        parts = np.diff([0, *cuts, steps]).tolist()
        if len(set(parts)) == count:
            return [part / steps for part in parts]


def hundredths(rng: Rng, low: int, high: int) -> float:
    """A probability of `low` to `high` hundredths."""
    return int(rng.integers(low, high + 1)) / 100


def choice(rng: Rng, options: Sequence[Any]) -> Any:
    """One of the options."""
    return options[int(rng.integers(len(options)))]


def some(rng: Rng, low: int, high: int, count: int) -> np.ndarray:
    """Whole numbers from `low` to below `high` that differ: int64 [count]."""
    return rng.choice(np.arange(low, high), count, replace=False)


def sample(rng: Rng, options: Sequence[Any], count: int) -> list[Any]:
    """Some of the options, none twice."""
    return [options[index] for index in rng.choice(len(options), count, replace=False)]


@cache
def loss_nats(probability: float) -> float:
    """The loss of a word of this probability, by the code of the evaluator."""
    two_classes = np.array([[probability, 1 - probability]])
    return float(nll_nats(np.log(two_classes), np.array([0]))[0])


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    """Cosine similarity of two vectors [H]."""
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


# ---- All that one task draws


def class_votes(rng: Rng) -> Drawn:
    """Guesses for a hidden word and their shares."""
    drawn, parts = masked_sentence(rng), shares(rng, 4)
    votes = sorted(zip(parts, drawn["words"], strict=True), reverse=True)
    rows = [(word, f"{100 * part:.0f}%") for part, word in votes]
    return {**drawn, "truth": parts[0], "most": max(parts), "rows": rows}


def logits_at_a_temperature(rng: Rng) -> Drawn:
    """Three logits, and the losses of the first token with and without the temperature."""
    words = masked_sentence(rng)["words"][:3]
    temperature = float(rng.choice([0.5, 2.0]))
    nats = 0.0
    while not 0.1 < nats < 4:
        logits = some(rng, -2, 5, 3) / 2  # from -1 to 2
        divided = logits / temperature
        nats, plain = nll_nats(np.stack([divided, logits]), np.array([0, 0])).tolist()
    rows = [(word, written(logit, 1)) for word, logit in zip(words, logits, strict=True)]
    shared = {"words": words, "temperature": temperature, "divided": divided}
    return {**shared, "nats": nats, "plain": plain, "rows": rows}


def kind_of_a_token(rng: Rng) -> Drawn:
    """A masked sentence, and what happened to one of its words."""
    *words, stranger = choice(rng, _WORDS["sentences"])
    position = int(rng.integers(len(words) - 1))
    word = words[position]
    kinds = {
        "It is chosen and shown as [MASK]": "[MASK]",
        "It is chosen and shown as a random token": stranger,
        "It is chosen and shown unchanged": word,
        "It is not chosen": word,
    }
    right = choice(rng, [*kinds])
    shown_word, chosen = kinds[right], right != "It is not chosen"
    has = "a label, so it is chosen" if chosen else "no label, so it is not chosen"
    reason = f"“{word}” has {has}, and the model sees “{shown_word}” in its place."
    rows = [(token, token, "–") for token in words]
    rows[position] = (word, shown_word, word if chosen else "–")
    wrong = {kind: reason for kind in kinds if kind != right}
    return {"word": word, "right": right, "wrong": wrong, "rows": rows, "reason": reason}


def two_distributions(rng: Rng) -> Drawn:
    """Two distributions that clearly differ."""
    p = q = [1.0]
    while compare(p, q).kl_nats <= 0.05:
        p, q = shares(rng, 3, 0.1), shares(rng, 3, 0.1)
    return {"p": p, "q": q, "rows": [*zip(("tea", "coffee", "milk"), p, q, strict=True)]}


def two_wrong_models(rng: Rng) -> Drawn:
    """What two models give the true word, which both put second at best."""
    close = {"river": hundredths(rng, 20, 35), "stream": hundredths(rng, 37, 45), "water": 0.2}
    far = {"river": hundredths(rng, 1, 6), "mountain": hundredths(rng, 80, 90), "sky": 0.02}
    best, worst, *models = ("B", "A", far, close) if rng.integers(2) else ("A", "B", close, far)
    columns = [[f"{word} {value:g}" for word, value in model.items()] for model in models]
    p, most = [model["river"] for model in models], [max(model.values()) for model in models]
    rows = [*zip(*columns, strict=True)]
    return {"best": best, "worst": worst, "rows": rows, "p": p, "most": most}


def four_models(rng: Rng) -> Drawn:
    """Four models in an order that is not that of their losses."""
    drawn = masked_sentence(rng)
    # P of the true word and of the best other one. The first model is wrong by its first word, and
    # gives the true word more than the second, which alone is right.
    first, second = hundredths(rng, 36, 44), hundredths(rng, 22, 33)
    pairs = [
        (first, first + hundredths(rng, 3, 9)),
        (second, second - hundredths(rng, 3, 11)),
        (hundredths(rng, 6, 15), hundredths(rng, 20, 79)),
        (hundredths(rng, 1, 4), hundredths(rng, 20, 94)),
    ]
    places = [0, 1, 2, 3]
    while places == [0, 1, 2, 3]:
        places = rng.permutation(4).tolist()
    items = []
    for name, position in zip("ABCD", places, strict=True):
        truth, rival = pairs[position]
        description = f"P({drawn['words'][0]}) = {truth:.2f}, best other word {rival:.2f}"
        items.append(
            Item(name, description, loss_nats(truth), f"{written(loss_nats(truth), 3)} nats")
        )
    ordered = [("ABCD"[places.index(rank)], truth) for rank, (truth, _) in enumerate(pairs)]
    return {**drawn, "items": tuple(items), "ordered": ordered}


def change_and_interval(rng: Rng) -> Drawn:
    """Two losses, and an interval of their relative change for each verdict alike."""
    limits = Limits()
    # Lowest and highest middle of the interval, in tenths of a percent, and half its width.
    bands = {
        "PASS": (-20, 30, 1.0),
        "AT_RISK": (70, 81, 1.0),
        "REGRESSION": (130, 300, 2.0),
        "INCONCLUSIVE": (30, 80, 4.0),
    }
    verdict = str(rng.choice([*bands]))
    middles = {label: rng.integers(low, high) / 10 for label, (low, high, _) in bands.items()}
    baseline, half = int(rng.integers(150, 260)) / 100, bands[verdict][2]
    model = round(baseline * (1 + middles[verdict] / 100), 3)
    change = model / baseline - 1
    interval = Interval(change - half / 100, change + half / 100, "bootstrap-t")
    right = judge(change, interval, texts=1000).label
    rule = (
        f"Below {100 * limits.pass_below:g}% the verdict is PASS, below "
        f"{100 * limits.risk_below:g}% it is AT_RISK, and otherwise REGRESSION. It is INCONCLUSIVE "
        "if the interval reaches into more than one of these ranges."
    )
    wrong = {label: rule for label in bands if label != right}
    losses = {"baseline": baseline, "model": model, "interval": interval}
    return {**losses, "rule": rule, "right": right, "wrong": wrong}


def two_vectors(rng: Rng) -> Drawn:
    """Two vectors whose cosine is neither near 0 nor near 1."""
    while True:
        a, b = rng.integers(-3, 5, (2, 3))
        if a.any() and b.any() and 0.1 < abs(cosine(a, b)) < 0.95:
            return {"a": a, "b": b, "word": str(rng.choice(list(_SENSES)))}


def values_of_a_dimension(rng: Rng) -> Drawn:
    """Four values, their mean, and one of them."""
    spread, mean = int(rng.integers(1, 5)), int(rng.integers(20, 61))
    # Around 0, with the variances 2.5, 5 and 7.5.
    offsets = np.array([[-2, -1, 1, 2], [-3, -1, 1, 3], [-4, -1, 2, 3]][rng.integers(3)])
    values = rng.permutation(mean + spread * offsets)
    return {"mean": mean, "values": values, "value": values[rng.integers(4)]}


def vectors_of_three_senses(rng: Rng) -> Drawn:
    """Vectors of a word in three senses, and a new one near one of them."""
    word = str(rng.choice(list(_SENSES)))
    gap = 0.0  # between the best and the second cosine
    while gap <= 0.15:
        groups = rng.integers(-2, 6, (3, 2, 2))  # two vectors for each sense
        new, centroids = rng.integers(-1, 6, 2), groups.mean(axis=1)
        if new.any() and centroids.any(axis=1).all():
            cosines = [cosine(new, centroid) for centroid in centroids]
            gap = np.diff(np.sort(cosines))[-1]

    def listed(vector: np.ndarray) -> str:
        return f"[{', '.join(written(value) for value in vector)}]"

    near = {
        sense: f"centroid {listed(centroid)}, cosine {written(sense_cosine, 2)}"
        for sense, centroid, sense_cosine in zip(_SENSES[word], centroids, cosines, strict=True)
    }
    right = _SENSES[word][int(np.argmax(cosines))]
    wrong = {
        sense: f"{right} is nearer: {near[right]}; {sense}: {how}."
        for sense, how in near.items()
        if sense != right
    }
    rows = [
        (sense, ", ".join(map(listed, vectors)))
        for sense, vectors in zip(near, groups, strict=True)
    ]
    return {"word": word, "new": new, "right": right, "wrong": wrong, "near": near, "rows": rows}


def best_words_by_layer(rng: Rng) -> Drawn:
    """The best word behind each of seven layers: the true one early, once, and then to the end."""
    truth, *rivals = sample(
        rng, ["bank", "river", "tea", "cold", "money", "east", "snow", "red"], 7
    )
    first = int(rng.integers(4, 7))
    early = int(rng.integers(1, first - 1))
    rows = [
        (layer, truth if layer in (early, *range(first, 7)) else rivals.pop()) for layer in range(7)
    ]
    return {"truth": truth, "first": first, "early": early, "lowest": rows[0][1], "rows": rows}


def tags_of_a_sentence(rng: Rng) -> Drawn:
    """A training sentence of the chapter on heads that has an entity of several words."""
    sentences = [s for s in labeled_texts().learn if any(tag[0] == "I" for tag in s.tags)]
    sentence = choice(rng, sentences)
    return {"marked": sentence.marked, "words": sentence.spelled, "tags": sentence.tags}


_DRAWS = (
    *(masked_sentence, shares, hundredths, Rng.integers, choice, some, sample, class_votes),
    *(logits_at_a_temperature, kind_of_a_token, two_distributions, two_wrong_models, four_models),
    *(change_and_interval, two_vectors, values_of_a_dimension, vectors_of_three_senses),
    best_words_by_layer,
    tags_of_a_sentence,
)
# What tasks call by these names; the generator of random numbers goes before their arguments.
DRAWS: Mapping[str, Callable[..., Any]] = {function.__name__: function for function in _DRAWS}
