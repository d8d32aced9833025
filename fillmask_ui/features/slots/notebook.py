"""A template with slots as notebooks show it: words by sentences, tinted."""

from collections.abc import Iterator
from operator import attrgetter

from fillmask_ui.features.slots import heat_map
from fillmask_ui.features.slots.slot_tables import long_table
from fillmask_ui.features.slots.word_spread import SlotTable
from fillmask_ui.show.charts.record_charts import Bars
from fillmask_ui.show.displays import Display, Row, still


def _rows(table: SlotTable) -> Iterator[Row]:
    numbers = long_table([table])
    return (dict(zip(numbers.headings, row, strict=True)) for row in numbers.rows)


def _html(table: SlotTable) -> Iterator[str]:
    rows = heat_map.heat_rows(table, heat_map.log_scale([table], 0.0, 1.0), "nats")
    most = max(table.words, key=attrgetter("spread_nats"))
    yield still("slots/notebook.html", most=most, sentences=table.sentences, rows=rows)


_BARS = Bars(("word", "sentence"), ("probability",), "probability", ".3~p")
DISPLAY = Display(_rows, _html, _BARS, attrgetter("template"))
