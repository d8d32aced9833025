"""Where texts come from: embedded, files, folders of files, standard input, Hugging Face data sets.

`TextChoice(reference, ...).source()` says which texts; `open_texts(source)` yields them as
`Example`s and reports how many there were. Every way keeps four promises:

- The id of an example is its position in the data before any shuffling, from 0, so that masks
  drawn from (seed, id) do not change with `samples` or `shuffle`. (One exception: in a data set
  that is streamed and shuffled it is the place in the shuffled stream, see `texts/hub.py`.)
- Shuffling with a seed gives the order of `datasets.Dataset.shuffle(seed=seed)`.
- Memory does not grow with the size of a text, nor of the data beyond 8 bytes per row while an
  order is drawn and 24 bytes per text asked for; shuffled texts wait in a temporary file. (A row
  of JSON or CSV is held as a whole, and so is a JSON array: JSON lines suit large data better.)
- Nothing is dropped in silence: blank texts are passed on (an evaluation counts them), texts cut
  at `MAX_CHARACTERS` are counted in the report, all else is an error with its place.

Importing this package loads neither `datasets` nor `pyarrow`.
"""

from fillmask_ui.texts.reading import MAX_CHARACTERS, SourceReport, Texts, open_texts
from fillmask_ui.texts.source import TextChoice, TextSource

__all__ = ["MAX_CHARACTERS", "SourceReport", "TextChoice", "TextSource", "Texts", "open_texts"]
