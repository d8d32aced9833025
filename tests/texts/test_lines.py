"""Lines read in pieces of any size are those of the whole text cut at line feeds."""

import csv
import io

from hypothesis import given, settings
from hypothesis import strategies as st

from fillmask_ui.texts.lines import ByteSource, Lines
from fillmask_ui.texts.rows import TableRows

TEXTS = st.text(st.sampled_from('ab,"猫é\n\r\x0c\u2028 \t')) | st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\0")
)


class InPieces(io.BytesIO):
    """Gives no more than a few bytes at a time, as a pipe may."""

    def __init__(self, content, size):
        super().__init__(content)
        self._size = size

    def read(self, _=-1):
        return super().read(self._size)


@given(TEXTS, st.integers(1, 7), st.sampled_from(["utf-8", "utf-16", "gb18030"]))
@settings(deadline=None)
def test_lines_do_not_depend_on_the_size_of_reads(text, size, encoding):
    stream = InPieces(text.encode(encoding), size)
    expected = text.removeprefix("\ufeff").split("\n")
    if expected[-1] == "":
        expected.pop()  # what follows the last line feed is no line
    found = list(Lines(stream, "example", encoding, keep=1000))
    assert found == [line.removesuffix("\r") for line in expected]


@given(st.lists(st.integers(0, 30), max_size=6), st.integers(0, 12), st.integers(1, 5))
def test_of_a_long_line_the_beginning_is_kept(lengths, keep, size):
    lines = ["x" * length for length in lengths]
    content = "".join(f"{line}\n" for line in lines).encode()
    found = list(Lines(InPieces(content, size), "example", "utf-8", keep=keep))
    assert found == [line[:keep] for line in lines]


FIELDS = st.text(st.sampled_from('ab,"猫\n \t'), max_size=8)


@given(st.lists(st.tuples(FIELDS, FIELDS), min_size=1), st.integers(1, 9))
@settings(deadline=None)
def test_what_the_csv_module_writes_is_read_back(rows, size):
    written = io.StringIO(newline="")
    writer = csv.writer(written)
    writer.writerows([("n", "text"), *rows])
    content = written.getvalue().encode()
    table = TableRows(
        ByteSource("example", lambda: InPieces(content, size)), "utf-8", "text", tabs=False
    )
    assert list(table.texts()) == [text for _, text in rows]
    assert table.count() == len(rows)
