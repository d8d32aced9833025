"""Texts to calibrate with, some tokens hidden: what the model will have to do with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fillmask_ui.errors import DataError, TextError
from fillmask_ui.masking import MaskRecipe, generator, hide_random, hideable
from fillmask_ui.records import Example
from fillmask_ui.texts import TextSource, open_texts

if TYPE_CHECKING:
    from fillmask_ui.models.onnx_model import OnnxMaskedLM

MEASURED = 200  # of the embedded texts, the first so many are for measuring
_MOST_TOKENS, _SEED = 256, 42


def read_texts(source: TextSource | None) -> list[Example]:
    """The texts of a source, by default the hundred embedded ones behind `MEASURED`."""
    with open_texts(source or TextSource()) as texts:
        return list(texts)[0 if source else MEASURED :]


def calibration_feeds(model: OnnxMaskedLM, texts: list[Example]) -> list[dict[str, np.ndarray]]:
    """Inputs of the model's graph, a text each, cut at 256 tokens.

    Raises:
        DataError: if no text can be used.
    """
    vocabulary, longest = model.vocabulary, min(_MOST_TOKENS, model.max_tokens)
    feeds = []
    for text in texts:
        try:
            encoding = vocabulary.encode(text.text)
        except TextError:
            continue
        if not hideable(encoding.ids, vocabulary.special_ids).any():
            continue
        hidden = hide_random(encoding, vocabulary, MaskRecipe(), generator(_SEED, text.id))
        ids = hidden.input_ids  # int64 [T]
        if len(ids) > longest:
            ids = np.append(ids[: longest - 1], ids[-1])
        feeds.append(model.arrays(ids[None], np.ones_like(ids[None])))
    if not feeds:
        raise DataError(
            f"none of the {len(texts)} calibration texts can be used: they are blank, or of "
            "special or unknown tokens alone; give some sentences, one a line"
        )
    return feeds
