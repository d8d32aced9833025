"""Text to segments to blocks."""

import gzip

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fillmask_ui.features.train.corpus import (
    CorpusPart,
    Paragraphs,
    best_fit,
    epoch_blocks,
    read_paragraphs,
    tokenize,
)


def test_a_share_thins_or_repeats_evenly_and_a_folder_stands_for_its_files(tmp_path):
    (tmp_path / "b.txt").write_text("a\nb\nc\nd\n", encoding="utf-8")
    (tmp_path / "notes.md").write_text("not this\n", encoding="utf-8")
    with gzip.open(tmp_path / "a.txt.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(f"line {i}" for i in range(100)) + "\n\n")
    thinned = read_paragraphs([CorpusPart.parse(f"{tmp_path}/a.txt.gz:0.25")])
    assert thinned.texts == [f"line {i}" for i in range(3, 100, 4)]
    repeated = CorpusPart.parse(f"{tmp_path}/b.txt:2.5")
    assert repeated.argument == "b.txt:2.5"
    read = read_paragraphs([repeated])
    assert (read.texts, read.copies.tolist()) == (["a", "b", "c", "d"], [2, 3, 2, 3])
    whole = read_paragraphs([CorpusPart.parse(str(tmp_path))])
    assert whole.texts == [*(f"line {i}" for i in range(100)), "a", "b", "c", "d"]


def test_segments_hold_the_whole_text(tokenizer, sentences):
    segments = tokenize(Paragraphs(sentences, np.ones(len(sentences), int)), tokenizer, 16)
    assert np.diff(segments.starts).max() <= 16
    inner = [i for i in segments.ids.tolist() if i not in tokenizer.all_special_ids]
    expected = [i for s in sentences for i in tokenizer(s, add_special_tokens=False)["input_ids"]]
    assert inner == expected
    firsts = segments.ids[segments.starts[:-1]]
    assert set(firsts.tolist()) == {tokenizer.cls_token_id}
    lasts = segments.ids[segments.starts[1:] - 1]
    assert set(lasts.tolist()) == {tokenizer.sep_token_id}
    assert tokenizer.backend_tokenizer.truncation is None  # as it was before


@given(st.lists(st.integers(1, 50), max_size=60))
def test_best_fit_places_everything_once(lengths):
    bins = best_fit(np.array(lengths, np.int64), 50)
    assert sorted(i for members in bins for i in members) == list(range(len(lengths)))
    assert all(sum(lengths[i] for i in members) <= 50 for members in bins)
    # No two bins could have been one: the promise of any fit that looks at all open bins.
    totals = sorted(sum(lengths[i] for i in members) for members in bins)
    assert len(totals) < 2 or totals[0] + totals[1] > 50


def test_an_epoch_holds_each_segment_as_often_as_its_copies_say(tokenizer, sentences):
    copies = np.array([1, 3] * 300)
    segments = tokenize(Paragraphs(sentences, copies), tokenizer, 64)
    assert segments.copies.tolist() == copies.tolist()
    chosen, pad_id = np.arange(400), tokenizer.pad_token_id
    blocks = epoch_blocks(segments, chosen, 64, pad_id, seed=1, epoch=0)
    seen = []
    for row in range(len(blocks)):
        for number in range(1, blocks.segment[row].max() + 1):
            here = blocks.segment[row] == number
            seen.append(tuple(blocks.ids[row][here].tolist()))
            assert blocks.position[row][here].tolist() == list(range(here.sum()))
    texts = np.split(segments.ids, segments.starts[1:-1])
    expected = [tuple(texts[n].tolist()) for n in chosen for _ in range(copies[n])]
    assert sorted(seen) == sorted(expected)
    assert (blocks.ids[blocks.segment == 0] == pad_id).all()
    again = epoch_blocks(segments, chosen, 64, pad_id, seed=1, epoch=0)
    other = epoch_blocks(segments, chosen, 64, pad_id, seed=1, epoch=1)
    assert np.array_equal(blocks.ids, again.ids)
    assert blocks.ids.shape != other.ids.shape or not np.array_equal(blocks.ids, other.ids)
