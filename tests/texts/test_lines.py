"""Lines read in pieces of any size, and the seeded order of the datasets library."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fillmask_ui.texts import TextSource
from fillmask_ui.texts.files import ByteSource
from fillmask_ui.texts.rows import Notes, pick, read_rows, shuffled_positions

TEXTS = st.text(st.sampled_from('ab,"猫é\n\r\x0c\u2028 \t')) | st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\0")
)


class InPieces(io.BytesIO):
    """Gives no more than a few bytes at a time, as a pipe may."""

    def __init__(self, content, size):
        super().__init__(content)
        self._size = size

    def read1(self, _=-1):
        return super().read1(self._size)

    def readline(self, _=-1):
        return super().readline(self._size)


def lines(content, size, *choices):
    return list(ByteSource("example", lambda: InPieces(content, size)).lines(*choices))


@given(TEXTS, st.integers(1, 7), st.sampled_from(["utf-8", "utf-16", "gb18030"]))
@settings(deadline=None)
def test_lines_do_not_depend_on_the_size_of_reads(text, size, encoding):
    content = text.encode(encoding)
    # In a text without line feeds carriage returns end lines, as on old Macs.
    line_end = "\n" if "\n" in text else "\r"
    expected = text.removeprefix("\ufeff").split(line_end)
    if expected[-1] == "":
        expected.pop()  # what follows the last line end is no line
    expected = [line.removesuffix("\r") for line in expected]
    assert lines(content, size, encoding, 1000) == expected
    if encoding == "utf-8":
        assert lines(content, size) == expected


@given(st.lists(st.integers(0, 30), max_size=6), st.integers(0, 12), st.integers(1, 5))
def test_of_a_long_line_the_beginning_is_kept(lengths, keep, size):
    whole = ["x" * length for length in lengths]
    content = "".join(f"{line}\n" for line in whole).encode()
    assert lines(content, size, "utf-8", keep) == [line[:keep] for line in whole]


FIELDS = st.text(st.sampled_from('ab,"猫\n \t'), max_size=8)


@given(st.lists(st.tuples(FIELDS, FIELDS), min_size=1), st.integers(1, 9))
@settings(deadline=None)
def test_what_the_csv_module_writes_is_read_back(rows, size):
    written = io.StringIO(newline="")
    writer = csv.writer(written)
    writer.writerows([("n", "text"), *rows])
    content = written.getvalue().encode()
    data = ByteSource("example", lambda: InPieces(content, size))
    source = TextSource("file", "example.csv", column="text")
    for _ in range(2):  # the second time from the beginning again
        assert [text for (text,) in read_rows(source, data, Notes())] == [text for _, text in rows]


@pytest.mark.parametrize("rows", [1, 2, 37, 300, 4358])
@pytest.mark.parametrize("seed", [42, 0, 2**40])
def test_the_order_is_that_of_dataset_shuffle(rows, seed):
    import datasets

    theirs = datasets.Dataset.from_dict({"row": np.arange(rows)}).shuffle(seed=seed)["row"]
    assert np.array_equal(shuffled_positions(rows, seed), theirs)
    assert np.array_equal(shuffled_positions(rows, seed, 30), theirs[:30])


@given(st.lists(st.text(), min_size=1), st.data())
@settings(deadline=None, max_examples=50)
def test_picking_equals_indexing(texts, data):
    positions = data.draw(st.lists(st.integers(0, len(texts) - 1), unique=True))
    picked = list(pick(zip(texts, strict=True), np.array(positions, dtype=np.int64)))
    assert [example.id for example in picked] == positions
    assert [example.text for example in picked] == [texts[position] for position in positions]
