"""A seeded order of rows, in bounded memory: rows that can only be read from the beginning.

The order is that of `datasets.Dataset.shuffle(seed)`: numpy's PCG64 generator, `permutation(n)`
(Source: Hugging Face datasets, `arrow_dataset.py`, the same in versions 1 to 5).
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import IO

import numpy as np

from fillmask_ui.errors import DataError
from fillmask_ui.records import Example


@dataclass(frozen=True)
class OrderedRows:
    """Examples in the order asked for, and how many rows the data has, where known."""

    examples: Iterator[Example]
    available: int | None


def shuffled_positions(rows: int, seed: int, samples: int | None = None) -> np.ndarray:
    """Positions of the first `samples` rows in shuffled order: int64 [min(rows, samples)].

    >>> shuffled_positions(5, seed=42)
    array([4, 2, 3, 1, 0])
    """
    # A copy, so that the whole permutation can be freed.
    return np.random.default_rng(seed).permutation(rows)[:samples].copy()


def pick(texts: Iterator[str], positions: np.ndarray) -> Iterator[Example]:
    """The texts at some positions of a stream, in the order of the positions.

    They wait in a temporary file. No text after the last position [N] is read.

    >>> [example.text for example in pick(iter("abcde"), np.array([3, 0]))]
    ['d', 'a']
    """
    places = np.zeros((len(positions), 2), dtype=np.int64)  # of each text: its start and size
    with spooled() as spool:
        read = start = 0
        for index in map(int, np.argsort(positions)):
            text = next(islice(texts, int(positions[index]) - read, None), None)
            if text is None:
                raise DataError("the data became shorter while it was read; it must not change")
            read = int(positions[index]) + 1
            # Lone surrogates, which JSON can write, come through as they are.
            size = spool.write(text.encode("utf-8", "surrogatepass"))
            places[index] = start, size
            start += size
        for position, (start, size) in zip(positions, places, strict=True):
            spool.seek(start)
            yield Example(int(position), spool.read(size).decode("utf-8", "surrogatepass"))


@contextmanager
def spooled() -> Iterator[IO[bytes]]:
    """A temporary file; what fails inside the block is an error with a remedy."""
    try:
        with tempfile.TemporaryFile() as file:
            yield file
    except OSError as error:
        raise DataError(
            f"texts cannot be copied to a temporary file in {tempfile.gettempdir()} "
            f"({error.strerror}): free space, set TMPDIR, or keep the order (--no-shuffle)"
        ) from error
