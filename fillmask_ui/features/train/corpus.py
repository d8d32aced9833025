"""Text files to token ids, once, and token ids to packed blocks, anew each epoch.

A *segment* is one paragraph between the tokenizer's special tokens, cut where it is longer than a
block. A *block* is a row of segments, packed best-fit: ordinary text leaves 1% padding or less.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.texts.files import file_bytes


@dataclass(frozen=True)
class CorpusPart:
    """Text, one paragraph a line, and how often it is read."""

    path: Path  # UTF-8 text, also compressed with gzip, or a folder of .txt and .txt.gz files
    share: float = 1.0  # mean readings of a paragraph in an epoch, in (0, 100]; 0.4: two in five

    @classmethod
    def parse(cls, argument: str) -> CorpusPart:
        """`FILE` or `FILE:SHARE`; an `OptionError` for a share out of range or a missing file.

        >>> CorpusPart.parse("/dev/null:0.4").share
        0.4
        """
        name, share = argument, 1.0
        path, _, number = argument.rpartition(":")
        if path:
            with suppress(ValueError):
                name, share = path, float(number)
        if not 0 < share <= 100:
            raise OptionError(
                f"share {share:g} of {name!r} is outside (0, 100]; FILE:0.5 is half, FILE:3 thrice"
            )
        if not Path(name).exists():
            raise OptionError(f"no text file {name!r}; give UTF-8 text, one paragraph a line")
        return cls(Path(name), share)

    @property
    def argument(self) -> str:
        """What `parse` reads, with a plain file name."""
        return self.path.name if self.share == 1 else f"{self.path.name}:{self.share:g}"

    def paragraphs(self) -> list[str]:
        """The lines of the file, or of the folder's files by name; `DataError` without text."""
        paths = [self.path]
        if self.path.is_dir():
            paths = sorted([*self.path.glob("*.txt"), *self.path.glob("*.txt.gz")])
        files = (file_bytes(str(path), compressed=path.suffix == ".gz") for path in paths)
        lines = [text for file in files for line in file.lines() if (text := line.strip())]
        if not lines:
            raise DataError(
                f"{self.path} holds no text; give one paragraph a line, or a folder of .txt files"
            )
        return lines


@dataclass(frozen=True)
class Paragraphs:
    """The text of a corpus."""

    texts: list[str]  # N paragraphs, each that is read at all
    copies: np.ndarray  # int64 [N], how often each is read in an epoch


def read_paragraphs(parts: Iterable[CorpusPart]) -> Paragraphs:
    """The paragraphs of all parts, each as often as its share says."""
    texts: list[str] = []
    copies = [np.zeros(0, np.int64)]
    for part in parts:
        lines = part.paragraphs()
        # floor((i + 1) s) - floor(i s) spreads a share evenly without a random generator.
        times = np.diff(np.floor(np.arange(len(lines) + 1) * part.share)).astype(np.int64)
        texts += [lines[i] for i in np.flatnonzero(times)]
        copies.append(times[times > 0])
    return Paragraphs(texts, np.concatenate(copies))


@dataclass(frozen=True)
class Segments:
    """All segments of a corpus in one flat array."""

    ids: np.ndarray  # int32 [total tokens], special tokens included
    starts: np.ndarray  # int64 [N + 1], segment n is `ids[starts[n]:starts[n + 1]]`
    copies: np.ndarray  # int64 [N], how often a segment is read in an epoch
    characters: int  # of the text, copies left out

    def __len__(self) -> int:
        return len(self.starts) - 1


def tokenize(paragraphs: Paragraphs, tokenizer: Any, max_tokens: int) -> Segments:
    """Paragraphs to segments of at most `max_tokens` tokens; a longer paragraph becomes several."""
    backend = tokenizer.backend_tokenizer
    special = backend.num_special_tokens_to_add(False)
    if max_tokens <= special:
        raise OptionError(f"blocks of {max_tokens} tokens leave no room for text; take 16 or more")
    segments: list[np.ndarray] = []
    sources: list[int] = []  # the paragraph of each segment
    backend.no_padding()
    backend.enable_truncation(max_tokens)  # what is cut off becomes `overflowing`
    for start in range(0, len(paragraphs.texts), 2000):
        encoded = backend.encode_batch(paragraphs.texts[start : start + 2000])
        for number, whole in enumerate(encoded, start):
            for part in (whole, *whole.overflowing):
                if len(part.ids) > special:
                    segments.append(np.array(part.ids, np.int32))
                    sources.append(number)
    backend.no_truncation()
    if not segments:
        raise DataError("the text has no tokens: check that it fits the tokenizer")
    starts = np.cumsum([0, *map(len, segments)])
    characters = sum(map(len, paragraphs.texts))
    return Segments(np.concatenate(segments), starts, paragraphs.copies[sources], characters)


def held_out(count: int, validation: int) -> np.ndarray:
    """Which of `count` segments validate: int64, a tenth of them at most, evenly spread.

    >>> held_out(20, 2).tolist()
    [5, 15]
    """
    validation = min(validation, count // 10)
    return ((np.arange(validation) + 0.5) * count / max(1, validation)).astype(np.int64)


@dataclass(frozen=True)
class Blocks:
    """N packed rows of T tokens."""

    ids: np.ndarray  # int32 [N, T], padded
    segment: np.ndarray  # int16 [N, T], 1, 2, ... within a row; 0 where padded
    position: np.ndarray  # int16 [N, T], from 0 in each segment

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, index: np.ndarray) -> Blocks:
        return Blocks(self.ids[index], self.segment[index], self.position[index])


def best_fit(lengths: np.ndarray, capacity: int) -> list[list[int]]:
    """Bins of indices whose lengths sum to at most `capacity`: each goes where least is left over.

    Source:
        Best-fit bin packing; Johnson et al. 1974, SIAM J. Comput. 3(4).

    >>> best_fit(np.array([3, 2, 2, 1]), 4)
    [[0, 3], [1, 2]]
    """
    bins: list[list[int]] = []
    open_bins: list[list[int]] = [[] for _ in range(capacity + 1)]  # by the room left in them
    available = 0  # bit r is set where a bin with room r is open
    for index, length in enumerate(lengths.tolist()):
        fitting = available >> length
        if fitting:
            room = length + (fitting & -fitting).bit_length() - 1
            number = open_bins[room].pop()
            if not open_bins[room]:
                available &= ~(1 << room)
        else:
            room, number = capacity, len(bins)
            bins.append([])
        bins[number].append(index)
        open_bins[room - length].append(number)
        available |= 1 << (room - length)
    return bins


def pack(segments: Segments, chosen: np.ndarray, block_tokens: int, pad_id: int) -> Blocks:
    """Chosen segments, in the given order, packed best-fit into rows of `block_tokens`."""
    bins = best_fit(np.diff(segments.starts)[chosen], block_tokens)
    ids = np.full((len(bins), block_tokens), pad_id, np.int32)
    segment, position = np.zeros((2, len(bins), block_tokens), np.int16)
    for row, members in enumerate(bins):
        start = 0
        for number, n in enumerate(chosen[members], start=1):
            tokens = segments.ids[segments.starts[n] : segments.starts[n + 1]]
            cells = np.s_[row, start : start + len(tokens)]
            ids[cells], segment[cells], position[cells] = tokens, number, np.arange(len(tokens))
            start += len(tokens)
    return Blocks(ids, segment, position)


def epoch_blocks(
    segments: Segments, chosen: np.ndarray, block_tokens: int, pad_id: int, seed: int, epoch: int
) -> Blocks:
    """The rows of one epoch, in random order by (seed, epoch), copies of a segment included."""
    generator = np.random.default_rng([seed, epoch])
    read = generator.permutation(np.repeat(chosen, segments.copies[chosen]))
    blocks = pack(segments, read, block_tokens, pad_id)
    return blocks.rows(generator.permutation(len(blocks)))
