"""Texts: embedded, files, folders of files, standard input, Hugging Face data sets.

`TextChoice(reference, ...).source()` says which texts; `open_texts(source)` yields `Example`s. The
id of an example is its place in the data, from 0, so that masks drawn from (seed, id) do not change
with `samples` or `shuffle` (but see `texts/hub.py` for streams). Memory grows by 8 bytes per row
while an order is drawn and 32 per text requested; a JSON array is held whole.
"""

from fillmask_ui.texts.reading import Texts, open_texts
from fillmask_ui.texts.source import GroupedTextChoice, TextChoice, TextSource

__all__ = ["GroupedTextChoice", "TextChoice", "TextSource", "Texts", "open_texts"]
