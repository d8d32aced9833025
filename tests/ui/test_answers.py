"""What is kept of the latest answers is bounded by the memory that it takes."""

import gc
import tracemalloc

from table_model import WORDS, TableModel

from fillmask_ui.errors import FillmaskError
from fillmask_ui.filling import fill
from fillmask_ui.models import ModelStore
from fillmask_ui.ui.session import MAX_CHARACTERS, Session

KEPT_BYTES = 5_000_000


def test_long_texts_leave_no_more_than_the_bound(monkeypatch):
    """Each leaves about 0.1 MB, whose candidates are few: without a bound on texts 12 MB."""
    monkeypatch.setattr("fillmask_ui.ui.session.MOST_BYTES", 650_000)
    model = TableModel()
    model.max_tokens = 10_000
    session = Session(ModelStore(loader=lambda *_, **__: model), "table")

    def type_text(number: int) -> None:
        words = [WORDS[(number * place) % len(WORDS)] for place in range(1, 600)]
        session.ask(model, fill, f"{number} [MASK] {' '.join(words)}", top_k=10)
        try:
            session.ask(model, fill, f"{number} [MASK] " + "a" * MAX_CHARACTERS, top_k=10)
        except FillmaskError as error:
            assert "characters" in str(error)

    type_text(0)
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(1, 141):
            type_text(number)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 1_000_000 < grown < KEPT_BYTES
