"""Text files to token ids, once, and token ids to packed blocks, anew each epoch.

A *segment* is one paragraph between the tokenizer's special tokens, cut where it is longer than a
block. A *block* is a row of segments that together fill the row; the packing is best-fit, which
leaves less than one percent of padding for paragraphs of ordinary length.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.models.quiet import quiet_transformers

MAX_SHARE = 100


@dataclass(frozen=True)
class TextSource:
    """Text, one paragraph a line.

    Attributes:
        path: plain or gzip-compressed UTF-8 text, or a folder of such `.txt` and `.txt.gz` files.
        share: how often a paragraph is read in an epoch, on average, in (0, 100]: with 0.4 two
            paragraphs in five are read, spread evenly; with 3 each is read three times.
    """

    path: Path
    share: float = 1.0

    @classmethod
    def parse(cls, argument: str) -> TextSource:
        """`FILE` or `FILE:SHARE`.

        Raises:
            OptionError: for a share outside (0, 100] or a file that does not exist.

        >>> TextSource.parse("/dev/null:0.4").share
        0.4
        """
        name, colon, tail = argument.rpartition(":")
        share = 1.0
        if colon:
            try:
                share = float(tail)
            except ValueError:
                name = argument
        else:
            name = argument
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
    """The text of a source.

    Attributes:
        texts: N paragraphs, each that is read at all.
        copies: int64 [N], how often each is read in an epoch.
    """

    texts: list[str]
    copies: np.ndarray


def _lines(path: Path) -> list[str]:
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as lines:
            return [line.strip() for line in lines]
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise DataError(f"cannot read {path} as UTF-8 text: {error}") from error


def read_source(source: TextSource) -> Paragraphs:
    """The non-blank lines of a source, each with the number of times that its share gives it.

    Raises:
        DataError: if a file is not UTF-8 text, or none holds text.
    """
    paragraphs = [line for path in source.files for line in _lines(path) if line]
    if not paragraphs:
        raise DataError(
            f"{source.path} holds no text; a file with one paragraph a line, or a folder of such "
            ".txt or .txt.gz files, is wanted"
        )
    # floor((i + 1) s) - floor(i s) spreads a share evenly without a random generator.
    index = np.arange(len(paragraphs))
    copies = np.floor((index + 1) * source.share) - np.floor(index * source.share)
    read = np.flatnonzero(copies)
    return Paragraphs([paragraphs[i] for i in read], copies[read].astype(np.int64))


def read_paragraphs(source: TextSource) -> list[str]:
    """The texts of `read_source`, each once.

    Raises:
        DataError: as `read_source`.
    """
    return read_source(source).texts


@dataclass(frozen=True)
class Segments:
    """All segments of a corpus in one flat array.

    Attributes:
        ids: int32 [total tokens], special tokens included.
        starts: int64 [N + 1], segment n is `ids[starts[n]:starts[n + 1]]`.
        copies: int64 [N], how often a segment is read in an epoch.
        characters: number of characters of the text that was read, copies left out.
    """

    ids: np.ndarray
    starts: np.ndarray
    copies: np.ndarray
    characters: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> np.ndarray:
        """int64 [N]."""
        return np.diff(self.starts)


@dataclass(frozen=True)
class Frame:
    """The special ids that a tokenizer puts around a text."""

    before: list[int]
    after: list[int]


def special_frame(tokenizer: Any) -> Frame:
    """The ids that the tokenizer puts before and after a text.

    Raises:
        DataError: if the tokenizer changes the text itself when it adds them.
    """
    probe = "a"
    inner = tokenizer(probe, add_special_tokens=False)["input_ids"]
    framed = tokenizer(probe)["input_ids"]
    for start in range(len(framed) - len(inner) + 1):
        if framed[start : start + len(inner)] == inner:
            return Frame(framed[:start], framed[start + len(inner) :])
    raise DataError(f"tokenizer frames {inner} as {framed}; the text's ids should stay together")


def tokenize(
    paragraphs: list[str], tokenizer: Any, max_tokens: int, copies: np.ndarray | None = None
) -> Segments:
    """Paragraphs to segments of at most `max_tokens`; a longer paragraph becomes several.

    Args:
        paragraphs: P texts.
        tokenizer: a fast tokenizer of transformers.
        max_tokens: special tokens included.
        copies: [P], how often each is read in an epoch; once where None.
    """
    frame = special_frame(tokenizer)
    before, after = frame.before, frame.after
    room = max_tokens - len(before) - len(after)
    if room < 1:
        raise OptionError(f"blocks of {max_tokens} tokens leave no room for text; take 16 or more")
    pieces: list[np.ndarray] = []
    counts: list[int] = []
    for start in range(0, len(paragraphs), 2000):
        with quiet_transformers():  # long paragraphs are cut below, a warning would mislead
            batch = tokenizer(paragraphs[start : start + 2000], add_special_tokens=False)
        for ids in batch["input_ids"]:
            cuts = range(0, len(ids), room)
            pieces.extend(np.array(before + ids[c : c + room] + after, np.int32) for c in cuts)
            counts.append(len(cuts))
    if not pieces:
        raise DataError("the text tokenizes to nothing; is this the right tokenizer?")
    starts = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum([len(piece) for piece in pieces], out=starts[1:])
    once = np.ones(len(paragraphs), np.int64)
    of_segments = np.repeat(once if copies is None else copies, counts)
    return Segments(np.concatenate(pieces), starts, of_segments, sum(map(len, paragraphs)))


def vocabulary_hash(tokenizer: Any) -> str:
    """SHA-256 of all tokens with their ids."""
    return hashlib.sha256(json.dumps(sorted(tokenizer.get_vocab().items())).encode()).hexdigest()


def tokenize_once(
    sources: list[TextSource], tokenizer: Any, max_tokens: int, cache: Path
) -> Segments:
    """`tokenize` for files, kept in `cache` and read from there when nothing has changed."""
    identity = {
        "files": [[f.name, f.stat().st_size, s.share] for s in sources for f in s.files],
        "max_tokens": max_tokens,
        "tokenizer": vocabulary_hash(tokenizer),
    }
    key = json.dumps(identity)
    if cache.exists():
        with np.load(cache) as stored:
            if str(stored["key"]) == key:
                return Segments(
                    stored["ids"], stored["starts"], stored["copies"], int(stored["characters"])
                )
    read = [read_source(source) for source in sources]
    paragraphs = [text for one in read for text in one.texts]
    copies = np.concatenate([one.copies for one in read])
    segments = tokenize(paragraphs, tokenizer, max_tokens, copies)
    cache.parent.mkdir(parents=True, exist_ok=True)
    np.savez(
        cache,
        key=np.array(key),
        ids=segments.ids,
        starts=segments.starts,
        copies=segments.copies,
        characters=np.array(segments.characters),
    )
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
    if validation == 0:
        return Split(np.arange(count), np.arange(0))
    held = ((np.arange(validation) + 0.5) * count / validation).astype(np.int64)
    keep = np.ones(count, bool)
    keep[held] = False
    return Split(np.flatnonzero(keep), held)


@dataclass(frozen=True)
class Blocks:
    """Packed rows. N blocks of T tokens.

    Attributes:
        ids: int32 [N, T], padded.
        segment: int16 [N, T], 1, 2, ... within a row; 0 where padded.
        position: int16 [N, T], from 0 in each segment.
    """

    ids: np.ndarray
    segment: np.ndarray
    position: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)


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
        for number, member in enumerate(members, start=1):
            n = chosen[member]
            tokens = segments.ids[segments.starts[n] : segments.starts[n + 1]]
            end = at + len(tokens)
            ids[row, at:end] = tokens
            segment[row, at:end] = number
            position[row, at:end] = np.arange(len(tokens))
            at = end
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
    order = generator.permutation(len(blocks))
    return Blocks(blocks.ids[order], blocks.segment[order], blocks.position[order])
