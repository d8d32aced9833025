"""Texts that a quantizer runs a model on to learn the range of its activations."""

from collections.abc import Sequence

import numpy as np

from fillmask_ui.errors import DataError, TextError
from fillmask_ui.masking import MaskRecipe, generator, hide_random, hideable
from fillmask_ui.models.onnx_model import OnnxMaskedLM
from fillmask_ui.records import Example
from fillmask_ui.texts.reading import open_texts
from fillmask_ui.texts.source import TextSource

MEASURED = 200  # the first embedded texts, which are for measuring
_MOST_TOKENS, _SEED = 256, 42  # of a calibration text
_MOST_UNKNOWN = 0.5  # of the tokens of a text that tells something about the model


def calibration_texts() -> list[Example]:
    """The embedded texts that are not for measuring."""
    with open_texts(TextSource()) as texts:
        return list(texts)[MEASURED:]


def calibration_feeds(model: OnnxMaskedLM, texts: Sequence[Example]) -> list[dict[str, np.ndarray]]:
    """Inputs of the model's graph, a text each, some tokens hidden, cut at 256 tokens.

    A DataError if no text can be used.
    """
    vocabulary, longest = model.vocabulary, min(_MOST_TOKENS, model.max_tokens)
    feeds = []
    for text in texts:
        try:
            encoding = vocabulary.encode(text.text)
        except TextError:
            continue
        unknown = encoding.ids.count(vocabulary.unk_id)
        known = hideable(encoding.ids, vocabulary.special_ids).sum()
        if not known or unknown > _MOST_UNKNOWN * (known + unknown):
            continue
        hidden = hide_random(encoding, vocabulary, MaskRecipe(), generator(_SEED, text.id))
        ids = hidden.input_ids  # int64 [T]
        if len(ids) > longest:
            ids = np.append(ids[: longest - 1], ids[-1])
        feeds.append(model.arrays(ids[None], np.ones_like(ids[None])))
    if not feeds:
        raise DataError(
            f"none of the {len(texts)} calibration texts can be used: they are blank, or mostly "
            "special or unknown tokens to this model; give some sentences that it can read, one a "
            "line, with --calibration FILE"
        )
    return feeds
