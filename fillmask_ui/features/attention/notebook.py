"""Attention from a mask as notebooks show it: all heads, and the mean of the last layer as bars."""

from collections.abc import Iterator
from typing import Any

from fillmask_ui.features.attention.mask_attention import MaskAttention
from fillmask_ui.show.charts.record_charts import Bars, bars_figure
from fillmask_ui.show.displays import Display, still

_BARS = Bars(("text",), ("from_mask",), "attention of the mask, mean of the last layer", ".3~p")


def _html(result: MaskAttention) -> Iterator[str]:
    yield still("attention/notebook.html", result=result, heads=result.heads())


def _figure(result: MaskAttention) -> Any:
    return bars_figure([vars(word) for word in result.words(result.shape[0])], _BARS)


DISPLAY = Display(MaskAttention.rows, _html, _figure, lambda result: result.encoding.text)
