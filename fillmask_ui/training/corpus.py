"""Text files to token ids, once, and token ids to packed blocks, anew each epoch.

A *segment* is one paragraph between the tokenizer's special tokens, cut where it is longer than a
block. A *block* is a row of segments that together fill the row; the packing is best-fit, which
leaves less than one percent of padding for paragraphs of ordinary length.
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
from fillmask_ui.texts.lines import file_bytes

MAX_SHARE = 100


@dataclass(frozen=True)
class CorpusPart:
    """Text, one paragraph a line, and how often it is read."""

    # plain or gzip-compressed UTF-8 text, or a folder of such `.txt` and `.txt.gz` files.
    path: Path
    # how often a paragraph is read in an epoch, on average, in (0, 100]: with 0.4 two paragraphs in
    # five are read, spread evenly; with 3 each is read three times.
    share: float = 1.0

    @classmethod
    def parse(cls, argument: str) -> CorpusPart:
        """`FILE` or `FILE:SHARE`.

        Raises:
            OptionError: for a share outside (0, 100] or a file that does not exist.

        >>> CorpusPart.parse("/dev/null:0.4").share
        0.4
        """
        name, share = argument, 1.0
        start, _, tail = argument.rpartition(":")
        if start:
            with suppress(ValueError):
                name, share = start, float(tail)
        if not 0 < share <= MAX_SHARE:
            raise OptionError(
                f"share {share:g} of {name!r} is outside (0, {MAX_SHARE}]; write FILE:0.5 for half "
                "of it, FILE:3 to read it three times an epoch"
            )
        path = Path(name)
        if not path.exists():
            raise OptionError(f"no text file {name!r}; give UTF-8 text, one paragraph a line")
        return cls(path, share)

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
    """The paragraphs of all parts, each with the number of times that its share gives it.

    Raises:
        DataError: if a file is not UTF-8 text, or a part holds none.
    """
    texts: list[str] = []
    copies = [np.zeros(0, np.int64)]
    for part in parts:
        files = (file_bytes(str(path), compressed=path.suffix == ".gz") for path in part.files)
        lines = [text for file in files for line in file.lines() if (text := line.strip())]
        if not lines:
            raise DataError(
                f"{part.path} holds no text; a file with one paragraph a line, or a folder of such "
                ".txt or .txt.gz files, is wanted"
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
    """Paragraphs to segments of at most `max_tokens`; a longer paragraph becomes several.

    Args:
        paragraphs: P texts.
        tokenizer: a fast tokenizer of transformers.
        max_tokens: special tokens included.
        copies: [P], how often each is read in an epoch; once where None.
    """
    backend = tokenizer.backend_tokenizer
    special = backend.num_special_tokens_to_add(False)
    if max_tokens <= special:
        raise OptionError(f"blocks of {max_tokens} tokens leave no room for text; take 16 or more")
    copies = np.ones(len(paragraphs), np.int64) if copies is None else copies
    pieces: list[np.ndarray] = []
    read: list[int] = []  # how often, of each piece
    backend.no_padding()
    backend.enable_truncation(max_tokens)  # what does not fit is kept as `overflowing`
    for start in range(0, len(paragraphs), 2000):
        batch = slice(start, start + 2000)
        for times, whole in zip(
            copies[batch], backend.encode_batch(paragraphs[batch]), strict=True
        ):
            cut = [part.ids for part in (whole, *whole.overflowing) if len(part.ids) > special]
            pieces += [np.array(ids, np.int32) for ids in cut]
            read += [times] * len(cut)
    backend.no_truncation()
    if not pieces:
        raise DataError("the text tokenizes to nothing; is this the right tokenizer?")
    starts = np.cumsum([0, *map(len, pieces)])
    return Segments(np.concatenate(pieces), starts, np.array(read), sum(map(len, paragraphs)))


def vocabulary_hash(tokenizer: Any) -> str:
    """SHA-256 of all tokens with their ids."""
    return hashlib.sha256(json.dumps(sorted(tokenizer.get_vocab().items())).encode()).hexdigest()


def tokenize_once(
    parts: Iterable[CorpusPart], tokenizer: Any, max_tokens: int, cache: Path
) -> Segments:
    """`tokenize` for files, kept in `cache` and read from there when nothing has changed."""
    parts = list(parts)
    identity = {
        "files": [[f.name, f.stat().st_size, part.share] for part in parts for f in part.files],
        "max_tokens": max_tokens,
        "tokenizer": vocabulary_hash(tokenizer),
    }
    key = json.dumps(identity)
    if cache.exists():
        with np.load(cache) as stored:
            if str(stored["key"]) == key:
                ids, starts, copies = (stored[name] for name in ("ids", "starts", "copies"))
                return Segments(ids, starts, copies, int(stored["characters"]))
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
    """Segments to train on and to validate on; the latter lie evenly over the corpus.

    Args:
        count: N, number of segments.
        validation: how many to keep out; a tenth of them at most.

    >>> split_validation(20, 2).validation.tolist()
    [5, 15]
    """
    validation = min(validation, count // 10)
    spread = (np.arange(validation) + 0.5) * count / max(1, validation)
    held_out = spread.astype(np.int64)
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
        fitting = available >> length
        if fitting:
            room = length + (fitting & -fitting).bit_length() - 1
            number = open_bins[room].pop()
            if not open_bins[room]:
                available &= ~(1 << room)
            bins[number].append(index)
        else:
            room, number = capacity, len(bins)
            bins.append([index])
        left = room - length
        if left:
            open_bins[left].append(number)
            available |= 1 << left
    return bins


def pack(segments: Segments, chosen: np.ndarray, block_tokens: int, pad_id: int) -> Blocks:
    """Chosen segments, in the given order, packed best-fit into rows of `block_tokens`."""
    bins = best_fit(segments.lengths[chosen], block_tokens)
    ids = np.full((len(bins), block_tokens), pad_id, np.int32)
    segment = np.zeros((len(bins), block_tokens), np.int16)
    position = np.zeros((len(bins), block_tokens), np.int16)
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
    """The rows of one epoch: segments, each as often as its copies say, shuffled, packed, rows
    shuffled; by (seed, epoch) alone.
    """
    generator = np.random.default_rng([seed, epoch])
    read = np.repeat(chosen, segments.copies[chosen])
    blocks = pack(segments, generator.permutation(read), block_tokens, pad_id)
    return blocks.rows(generator.permutation(len(blocks)))
