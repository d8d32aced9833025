"""Text to segments to blocks."""

import gzip
import os
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.training.corpus import (
    CorpusPart,
    best_fit,
    epoch_blocks,
    read_paragraphs,
    tokenize,
    tokenize_once,
)
from fillmask_ui.training.weights import train_tokenizer


@pytest.fixture(scope="module")
def tokenizer(sentences):
    return train_tokenizer(sentences, 200)


def test_a_share_takes_paragraphs_evenly(tmp_path):
    path = tmp_path / "text.txt.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(f"line {i}" for i in range(100)) + "\n\n")
    picked = read_paragraphs([CorpusPart.parse(f"{path}:0.25")])
    assert picked.texts == [f"line {i}" for i in range(3, 100, 4)]
    assert len(read_paragraphs([CorpusPart.parse(str(path))]).texts) == 100


def test_a_share_above_one_reads_paragraphs_again(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a\nb\nc\nd\n", encoding="utf-8")
    read = read_paragraphs([CorpusPart.parse(f"{path}:2.5")])
    assert read.texts == ["a", "b", "c", "d"]
    assert read.copies.tolist() == [2, 3, 2, 3]


def test_a_folder_gives_the_text_of_its_files(tmp_path):
    (tmp_path / "b.txt").write_text("third\n", encoding="utf-8")
    (tmp_path / "notes.md").write_text("not this\n", encoding="utf-8")
    with gzip.open(tmp_path / "a.txt.gz", "wt", encoding="utf-8") as file:
        file.write("first\n\nsecond\n")
    read = read_paragraphs([CorpusPart.parse(str(tmp_path))])
    assert read.texts == ["first", "second", "third"]


def test_text_may_come_through_a_pipe_and_an_error_names_its_line(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for content, wanted in (
        (b"\xef\xbb\xbffirst\r\n\n second \n", None),
        (b"a\nb\xe9\n", "line 2"),
    ):
        writer = threading.Thread(target=pipe.write_bytes, args=[content])
        writer.start()
        if wanted is None:
            assert read_paragraphs([CorpusPart(pipe)]).texts == ["first", "second"]
        else:
            with pytest.raises(DataError, match=f"{wanted} of .*pipe is not UTF-8"):
                read_paragraphs([CorpusPart(pipe)])
        writer.join()


def test_an_epoch_reads_a_segment_as_often_as_its_copies_say(tokenizer, sentences):
    texts = sentences[:20]
    copies = np.array([1, 3] * 10)
    segments = tokenize(texts, tokenizer, 64, copies)
    assert segments.copies.tolist() == copies.tolist()
    blocks = epoch_blocks(segments, np.arange(4), 64, tokenizer.pad_token_id, seed=1, epoch=0)
    assert (blocks.ids != tokenizer.pad_token_id).sum() == (segments.lengths * copies)[:4].sum()


@pytest.mark.parametrize("share", ["0", "101", "-1"])
def test_a_share_outside_its_range_says_so(text_file, share):
    with pytest.raises(OptionError, match="outside"):
        CorpusPart.parse(f"{text_file}:{share}")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(OptionError, match=r"nowhere\.txt"):
        CorpusPart.parse(str(tmp_path / "nowhere.txt"))


def test_binary_and_empty_files_are_data_errors(tmp_path):
    for name, content in (
        ("binary.txt", b"\xff\xfe\x00"),
        ("empty.txt", b"\n\n"),
        ("cut.gz", b"x"),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(DataError, match=name):
            read_paragraphs([CorpusPart(path)])


def test_segments_hold_the_whole_text(tokenizer, sentences):
    segments = tokenize(sentences, tokenizer, 16)
    assert segments.lengths.max() <= 16
    inner = [i for i in segments.ids.tolist() if i not in tokenizer.all_special_ids]
    expected = [i for s in sentences for i in tokenizer(s, add_special_tokens=False)["input_ids"]]
    assert inner == expected
    firsts = segments.ids[segments.starts[:-1]]
    assert set(firsts.tolist()) == {tokenizer.cls_token_id}
    lasts = segments.ids[segments.starts[1:] - 1]
    assert set(lasts.tolist()) == {tokenizer.sep_token_id}
    assert tokenizer.backend_tokenizer.truncation is None  # as it was before


def test_token_ids_are_made_once(tokenizer, text_file, tmp_path):
    cache = tmp_path / "tokens.npz"
    first = tokenize_once([CorpusPart(text_file)], tokenizer, 32, cache)
    stamp = cache.stat().st_mtime_ns
    again = tokenize_once([CorpusPart(text_file)], tokenizer, 32, cache)
    assert cache.stat().st_mtime_ns == stamp
    assert np.array_equal(first.ids, again.ids)
    other = tokenize_once([CorpusPart(text_file)], tokenizer, 16, cache)
    assert other.lengths.max() <= 16


@given(st.lists(st.integers(1, 50), max_size=60))
def test_best_fit_places_everything_once(lengths):
    bins = best_fit(np.array(lengths, np.int64), 50)
    assert sorted(i for members in bins for i in members) == list(range(len(lengths)))
    assert all(sum(lengths[i] for i in members) <= 50 for members in bins)
    # No two bins could have been one: the promise of any fit that looks at all open bins.
    totals = sorted(sum(lengths[i] for i in members) for members in bins)
    assert len(totals) < 2 or totals[0] + totals[1] > 50


def test_blocks_of_an_epoch_hold_each_segment_once(tokenizer, sentences):
    segments = tokenize(sentences, tokenizer, 32)
    chosen = np.arange(len(segments))
    blocks = epoch_blocks(segments, chosen, 32, tokenizer.pad_token_id, seed=1, epoch=0)
    seen = []
    for row in range(len(blocks)):
        for number in range(1, blocks.segment[row].max() + 1):
            here = blocks.segment[row] == number
            seen.append(tuple(blocks.ids[row][here].tolist()))
            assert blocks.position[row][here].tolist() == list(range(here.sum()))
    expected = [
        tuple(segments.ids[a:b].tolist())
        for a, b in zip(segments.starts[:-1], segments.starts[1:], strict=True)
    ]
    assert sorted(seen) == sorted(expected)
    assert (blocks.ids[blocks.segment == 0] == tokenizer.pad_token_id).all()
    again = epoch_blocks(segments, chosen, 32, tokenizer.pad_token_id, seed=1, epoch=0)
    other = epoch_blocks(segments, chosen, 32, tokenizer.pad_token_id, seed=1, epoch=1)
    assert np.array_equal(blocks.ids, again.ids)
    assert blocks.ids.shape != other.ids.shape or not np.array_equal(blocks.ids, other.ids)
