"""Exercises on vectors of a word in several sentences."""

from collections.abc import Mapping, Sequence

import numpy as np

from fillmask_ui.lessons.exercises.draws import choice
from fillmask_ui.lessons.exercises.exercise import Choice, Exercise, Numeric, Option, Slip, written

# Word -> its senses.
_SENSES = {
    "spring": ("season", "water", "coil"),
    "bass": ("fish", "voice", "guitar"),
    "pitch": ("throw", "sound", "field"),
    "bank": ("money", "river", "bench"),
}


def exercises(rng: np.random.Generator, _in_course: bool) -> tuple[Exercise, ...]:
    """A cosine, what a z-score does to a rogue dimension, and a sense by its centroid."""
    return _cosine_of_two(rng), _z_score(rng), _nearest(rng)


def _cosine_of_two(rng: np.random.Generator) -> Numeric:
    while True:
        a, b = rng.integers(-3, 5, (2, 3))
        cosine = _cosine(a, b) if a.any() and b.any() else 1.0
        if 0.1 < abs(cosine) < 0.95:
            break
    dot, lengths = int(a @ b), [float(np.linalg.norm(vector)) for vector in (a, b)]
    word = str(rng.choice(list(_SENSES)))
    products = " + ".join(f"({_whole(x)})({_whole(y)})" for x, y in zip(a, b, strict=True))
    return Numeric(
        text=f"In two sentences “{word}” has the vectors a = {_list(a)} and b = {_list(b)}. What "
        "is their cosine similarity?",
        answer=cosine,
        slips=(
            Slip(dot, "That is the dot product; divide it by both lengths."),
            Slip(-cosine, "The sign is turned: look at the dot product again."),
            Slip(float(np.linalg.norm(a - b)), "That is the distance; the cosine is of the angle."),
            Slip(float(np.arccos(cosine)), "That is the angle; its cosine is asked for."),
            Slip(dot / lengths[0] ** 2, "Divide by the length of each vector once."),
        ),
        explanation=f"Dot product: {products} = {_whole(dot)}.\nLengths: √{int(a @ a)} = "
        f"{written(lengths[0])} and √{int(b @ b)} = {written(lengths[1])}.\nCosine: {_whole(dot)} "
        f"/ ({written(lengths[0])} × {written(lengths[1])}) = {written(cosine)}"
        f"{': below 0, the vectors point away from each other' if cosine < 0 else ''}.",
    )


def _z_score(rng: np.random.Generator) -> Numeric:
    spread, mean = int(rng.integers(1, 5)), int(rng.integers(20, 61))
    # Around 0, with the variances 2.5, 5 and 7.5.
    offsets = np.array([[-2, -1, 1, 2], [-3, -1, 1, 3], [-4, -1, 2, 3]][rng.integers(3)])
    values = rng.permutation(mean + spread * offsets)
    index = int(rng.integers(4))
    value, deviation = float(values[index]), float(values.std())
    score = (value - mean) / deviation
    return Numeric(
        text=f"One dimension of four vectors has the values {', '.join(map(str, values))}; all "
        "other dimensions lie between −1 and 1. Cosines are near 1 for that reason alone. What is "
        f"the z-score of {value:g}, with the standard deviation over these four?",
        answer=score,
        slips=(
            Slip(value - mean, "Divide by the standard deviation, too."),
            Slip(value / deviation, "Subtract the mean first."),
            Slip(-score, "The sign is turned: the value minus the mean."),
            Slip(
                (value - mean) / float(values.std(ddof=1)),
                "That divides the squares by 3; the standard deviation over these four takes 4.",
            ),
            Slip((value - mean) / deviation**2, "That divides by the variance; take its root."),
        ),
        explanation=f"Mean {mean}, standard deviation √{deviation**2:g} = {written(deviation)}.\n"
        f"z = ({value:g} − {mean}) / {written(deviation)} = {written(score)}.\nAfter that the "
        "rogue dimension is about as large as any other, so it no longer makes all cosines alike.",
    )


def _nearest(rng: np.random.Generator) -> Choice:
    word = str(rng.choice(list(_SENSES)))
    senses = _SENSES[word]
    while True:
        groups = rng.integers(-2, 6, (3, 2, 2))  # two vectors for each sense
        new = rng.integers(-1, 6, 2)
        centroids = groups.mean(axis=1)
        if not (new.any() and centroids.any(axis=1).all()):
            continue
        cosines = [_cosine(new, centroid) for centroid in centroids]
        best, second = np.sort(cosines)[::-1][:2]
        if best - second > 0.15:
            break
    winner = int(np.argmax(cosines))
    near: Mapping[str, str] = {
        sense: f"centroid {_list(centroid)}, cosine {written(cosine, 2)}"
        for sense, centroid, cosine in zip(senses, centroids, cosines, strict=True)
    }
    return choice(
        rng,
        f"Vectors of “{word}” in sentences whose sense is known are in the table. In a new "
        f"sentence it has {_list(new)}. Which sense has the nearest centroid, by cosine?",
        senses[winner],
        [
            Option(
                sense,
                f"{senses[winner]} is nearer: {near[senses[winner]]}; {sense}: {near[sense]}.",
            )
            for sense in senses
            if sense != senses[winner]
        ],
        "; ".join(f"{sense}: {how}" for sense, how in near.items())
        + f".\nThe largest cosine is that of {senses[winner]}.",
        (
            ("sense", "vectors"),
            *(
                (sense, f"{_list(first)}, {_list(other)}")
                for sense, (first, other) in zip(senses, groups, strict=True)
            ),
        ),
    )


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def _whole(number: float) -> str:
    return written(number, 0)


def _list(vector: Sequence[float] | np.ndarray) -> str:
    return f"[{', '.join(f'{value:g}' for value in vector)}]".replace("-", "−")
