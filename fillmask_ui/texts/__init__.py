"""Where texts come from: embedded, files, folders of files, standard input, Hugging Face data sets.

`TextChoice(reference, ...).source()` says which texts; `open_texts(source)` yields `Example`s.
The id of an example is its place in the data before any shuffling, from 0, so that masks drawn
from (seed, id) do not change with `samples` or `shuffle` (but see `texts/hub.py` for streams). The
order of a seed is that of `datasets.Dataset.shuffle(seed=seed)`. Memory grows by 8 bytes per row
while an order is drawn and 32 per text asked for, not with the data; a JSON array is held whole.
Nothing is dropped in silence. Importing this package loads neither `datasets` nor `pyarrow`.
"""

from fillmask_ui.texts.reading import MAX_CHARACTERS, SourceReport, Texts, open_texts
from fillmask_ui.texts.source import TextChoice, TextSource

__all__ = ["MAX_CHARACTERS", "SourceReport", "TextChoice", "TextSource", "Texts", "open_texts"]
