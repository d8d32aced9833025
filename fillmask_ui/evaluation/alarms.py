"""What a reader of the figures must know: a few texts decide, words are cut oddly, ..."""

import math

from fillmask_ui.intervals import LARGEST

UNCHANGED_ALARM = (
    "The mean includes tokens that the model saw unchanged, which are easier than hidden ones: "
    "compare models by it, but judge what a model knows by the mask tokens alone."
)
# Where texts count as less than this share of them, a reader is told, from so many texts on.
LEAST_EFFECTIVE_SHARE = 0.5
FEWEST_TEXTS_TO_TELL = 10
# Told too where 5% of the texts carry more than this share of the variance of the mean.
MOST_VARIANCE_OF_A_FEW = 2 / 3


def few_texts_alarm(texts: int, effective_texts: float, variance_share: float) -> str:
    """What to tell a reader where a few texts decide: by their length, or their loss; else blank.

    `variance_share` is `ModelFigures.top_texts_variance_share`.
    """
    if texts < FEWEST_TEXTS_TO_TELL:
        return ""
    if effective_texts < LEAST_EFFECTIVE_SHARE * texts:
        reason = f"long texts carry most tokens: {texts:,} texts count as {effective_texts:,.0f}"
    elif variance_share > MOST_VARIANCE_OF_A_FEW:
        reason = (
            "texts have far larger or smaller losses than the others: "
            f"{math.ceil(LARGEST * texts):,} of {texts:,} carry {variance_share:.0%} of the "
            "variance"
        )
    else:
        return ""
    return (
        f"a few {reason}; what many more texts would show can lie outside the intervals more often "
        "than 5 times in 100"
    )


def unspaced_alarm(unspaced: int, texts: int) -> str:
    """What to tell a reader where `unspaced` of the texts show no borders of words; else blank."""
    if not unspaced:
        return ""
    return (
        f"{unspaced:,} of {texts:,} texts are in a script without blanks between words: each of "
        "its tokens counts as a word"
    )
