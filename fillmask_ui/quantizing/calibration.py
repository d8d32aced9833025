"""Texts to calibrate with: as an evaluation shows them to a model, some tokens hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluationConfig, SeededMasks
from fillmask_ui.evaluation.prepare import Prepared, prepare
from fillmask_ui.records import Example
from fillmask_ui.texts import TextSource, open_texts

if TYPE_CHECKING:
    from fillmask_ui.models.onnx import OnnxMaskedLM

MEASURED = 200  # of the embedded texts, the first so many are for measuring
_MOST_TOKENS = 256


def read_texts(source: TextSource | None) -> list[Example]:
    """The texts of a source, by default the hundred embedded ones behind `MEASURED`."""
    with open_texts(source or TextSource()) as texts:
        return list(texts)[0 if source else MEASURED :]


def calibration_feeds(model: OnnxMaskedLM, texts: list[Example]) -> list[dict[str, np.ndarray]]:
    """Inputs of the model's graph, a text each, cut at 256 tokens.

    Raises:
        DataError: if no text can be used.
    """
    config = EvaluationConfig(max_tokens=min(_MOST_TOKENS, model.max_tokens))
    masks = SeededMasks(config, model.vocabulary)
    feeds = []
    for text in texts:
        prepared = prepare(text, model.vocabulary, config, masks)
        if isinstance(prepared, Prepared):
            ids = prepared.hidden.view(0)[None]  # int64 [1, T]
            feeds.append(model.graph_inputs(ids, np.ones_like(ids)))
    if not feeds:
        raise DataError(
            f"none of the {len(texts)} calibration texts can be used: they are blank, or have no "
            "token that can be hidden; give some sentences, one a line"
        )
    return feeds
