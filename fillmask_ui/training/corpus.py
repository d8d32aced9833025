"""Text files to token ids, once, and token ids to packed blocks, anew each epoch.

A *segment* is one paragraph between the tokenizer's special tokens, cut where it is longer than a
block. A *block* is a row of segments, packed best-fit: ordinary ones leave 1 % or less of padding.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
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
    # how often a paragraph is read in an epoch, on average, in (0, 100]; 0.4: two in five, evenly
    share: float = 1.0

    @classmethod
    def parse(cls, argument: str) -> CorpusPart:
        """`FILE` or `FILE:SHARE`; an `OptionError` for another share or where there is no file.

        >>> CorpusPart.parse("/dev/null:0.4").share
        0.4
        """
        name, share = argument, 1.0
        start, _, tail = argument.rpartition(":")
        if start:
            with suppress(ValueError):
                name, share = start, float(tail)
        if not 0 < share <= 100:
            raise OptionError(
                f"share {share:g} of {name!r} is outside (0, 100]; FILE:0.5 is half, FILE:3 thrice"
            )
        if not Path(name).exists():
            raise OptionError(f"no text file {name!r}; give UTF-8 text, one paragraph a line")
        return cls(Path(name), share)

    @property
    def files(self) -> list[Path]:
        """The file, or those of the folder, by name."""
        if not self.path.is_dir():
            return [self.path]
        return sorted([*self.path.glob("*.txt"), *self.path.glob("*.txt.gz")])


@dataclass(frozen=True)
class Paragraphs:
    """The text of a corpus."""

    texts: list[str]  # N paragraphs, each that is read at all
    copies: np.ndarray  # int64 [N], how often each is read in an epoch


def read_paragraphs(parts: Iterable[CorpusPart]) -> Paragraphs:
    """The paragraphs of all parts, each as often as its share says; `DataError` without text."""
    texts: list[str] = []
    copies = [np.zeros(0, np.int64)]
    for part in parts:
        files = (file_bytes(str(path), compressed=path.suffix == ".gz") for path in part.files)
        lines = [text for file in files for line in file.lines() if (text := line.strip())]
        if not lines:
            raise DataError(
                f"{part.path} holds no text; give one paragraph a line, or a folder of .txt files"
            )
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
    characters: int  # number of characters of the text that was read, copies left out

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> np.ndarray:
        """int64 [N]."""
        return np.diff(self.starts)


def tokenize(
    paragraphs: Sequence[str], tokenizer: Any, max_tokens: int, copies: np.ndarray | None = None
) -> Segments:
    """Paragraphs to segments of at most `max_tokens` tokens; a longer paragraph becomes several.

    Each of the P paragraphs is read as often in an epoch as `copies` [P] says, once where None.
    """
    backend = tokenizer.backend_tokenizer
    special = backend.num_special_tokens_to_add(False)
    if max_tokens <= special:
        raise OptionError(f"blocks of {max_tokens} tokens leave no room for text; take 16 or more")
    copies = np.ones(len(paragraphs), np.int64) if copies is None else copies
    pieces: list[np.ndarray] = []
    sources: list[int] = []  # the paragraph of each piece
    backend.no_padding()
    backend.enable_truncation(max_tokens)  # what does not fit is kept as `overflowing`
    for start in range(0, len(paragraphs), 2000):
        encoded = backend.encode_batch(paragraphs[start : start + 2000])
        for number, whole in enumerate(encoded, start):
            cut = [part.ids for part in (whole, *whole.overflowing) if len(part.ids) > special]
            pieces += [np.array(ids, np.int32) for ids in cut]
            sources += [number] * len(cut)
    backend.no_truncation()
    if not pieces:
        raise DataError("the text tokenizes to nothing; is this the right tokenizer?")
    starts = np.cumsum([0, *map(len, pieces)])
    return Segments(np.concatenate(pieces), starts, copies[sources], sum(map(len, paragraphs)))


def vocabulary_hash(tokenizer: Any) -> str:
    """SHA-256 of all tokens with their ids."""
    return hashlib.sha256(json.dumps(sorted(tokenizer.get_vocab().items())).encode()).hexdigest()


def tokenize_once(
    parts: Sequence[CorpusPart], tokenizer: Any, max_tokens: int, cache: Path
) -> Segments:
    """`tokenize` for files, kept in `cache` and read from there when nothing has changed."""
    files = [[f.name, f.stat().st_size, part.share] for part in parts for f in part.files]
    vocabulary = vocabulary_hash(tokenizer)
    key = json.dumps({"files": files, "max_tokens": max_tokens, "tokenizer": vocabulary})
    if cache.exists():
        with np.load(cache) as stored:
            if str(stored["key"]) == key:
                arrays = {name: stored[name] for name in ("ids", "starts", "copies")}
                return Segments(**arrays, characters=int(stored["characters"]))
    read = read_paragraphs(parts)
    segments = tokenize(read.texts, tokenizer, max_tokens, read.copies)
    cache.parent.mkdir(parents=True, exist_ok=True)
    np.savez(cache, key=key, **vars(segments))
    return segments


@dataclass(frozen=True)
class Split:
    """Indices of segments, int64 each."""

    training: np.ndarray
    validation: np.ndarray


def split_validation(count: int, validation: int) -> Split:
    """Segments to train on and to validate on; the latter, a tenth at most, lie evenly.

    >>> split_validation(20, 2).validation.tolist()
    [5, 15]
    """
    validation = min(validation, count // 10)
    held_out = ((np.arange(validation) + 0.5) * count / max(1, validation)).astype(np.int64)
    return Split(np.setdiff1d(np.arange(count), held_out), held_out)


@dataclass(frozen=True)
class Blocks:
    """Packed rows. N blocks of T tokens."""

    ids: np.ndarray  # int32 [N, T], padded
    segment: np.ndarray  # int16 [N, T], 1, 2, ... within a row; 0 where padded.
    position: np.ndarray  # int16 [N, T], from 0 in each segment

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, index: np.ndarray) -> Blocks:
        """Those of int64 [rows], in that order."""
        return Blocks(self.ids[index], self.segment[index], self.position[index])


def best_fit(lengths: np.ndarray, capacity: int) -> list[list[int]]:
    """Bins of indices whose lengths sum to at most `capacity`: each goes where least is left over.

    Source:
        Best-fit bin packing; Johnson et al. 1974, SIAM J. Comput. 3(4).

    >>> best_fit(np.array([3, 2, 2, 1]), 4)
    [[0, 3], [1, 2]]
    """
    bins: list[list[int]] = []
    open_bins: list[list[int]] = [[] for _ in range(capacity + 1)]  # by room that is left
    available = 0  # bit r is set where a bin with room r is open
    for index, length in enumerate(lengths.tolist()):
        if not 0 < length <= capacity:
            raise ValueError(f"length {length} does not fit into 1..{capacity}")
        if not available >> length:
            open_bins[capacity].append(len(bins))
            available |= 1 << capacity
            bins.append([])
        fitting = available >> length
        room = length + (fitting & -fitting).bit_length() - 1
        number = open_bins[room].pop()
        bins[number].append(index)
        if not open_bins[room]:
            available &= ~(1 << room)
        open_bins[room - length].append(number)
        available |= 1 << (room - length)
    return bins


def pack(segments: Segments, chosen: np.ndarray, block_tokens: int, pad_id: int) -> Blocks:
    """Chosen segments, in the given order, packed best-fit into rows of `block_tokens`."""
    bins = best_fit(segments.lengths[chosen], block_tokens)
    ids = np.full((len(bins), block_tokens), pad_id, np.int32)
    segment, position = np.zeros((2, len(bins), block_tokens), np.int16)
    for row, members in enumerate(bins):
        at = 0
        for number, n in enumerate(chosen[members], start=1):
            tokens = segments.ids[segments.starts[n] : segments.starts[n + 1]]
            place = np.s_[row, at : at + len(tokens)]
            ids[place], segment[place], position[place] = tokens, number, np.arange(len(tokens))
            at += len(tokens)
    return Blocks(ids, segment, position)


def epoch_blocks(
    segments: Segments, chosen: np.ndarray, block_tokens: int, pad_id: int, seed: int, epoch: int
) -> Blocks:
    """The rows of one epoch, in random order by (seed, epoch), copies of a segment included."""
    generator = np.random.default_rng([seed, epoch])
    read = generator.permutation(np.repeat(chosen, segments.copies[chosen]))
    blocks = pack(segments, read, block_tokens, pad_id)
    return blocks.rows(generator.permutation(len(blocks)))
