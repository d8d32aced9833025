"""Files are streamed: fifteen times the data, the same memory.

Allowed on top: 8 bytes per row while a permutation is drawn, as the package's docstring promises.
"""

import gzip
import json
import tracemalloc

import pytest

from fillmask_ui.texts import TextChoice, open_texts

SMALL, LARGE = 600, 9_000  # rows of about 900 characters: 0.5 MB and 8 MB
SENTENCE = "The quick brown fox had, on the whole, been rather unlucky with its dogs. " * 12


def write(path, rows):
    texts = (f"{number} {SENTENCE}" for number in range(rows))
    kind = path.name.split(".")[1]
    with gzip.open(path, "wt", 1) if path.suffix == ".gz" else path.open("w") as stream:
        if kind == "csv":
            stream.write("n,text\n")
        for text in texts:
            line = {"txt": text, "csv": f'1,"{text}"'}.get(kind)
            stream.write((line or json.dumps({"n": 1, "text": text})) + "\n")


def peak_bytes(source):
    """Largest memory in use by Python and numpy while the texts pass by."""
    tracemalloc.start()
    try:
        for _ in open_texts(source):
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("rows.txt", {"shuffle": False}),
        ("rows.csv", {"samples": 500}),
        ("rows.jsonl.gz", {"samples": 500}),
    ],
)
def test_memory_does_not_grow_with_the_file(tmp_path, name, choices):
    peaks = {}
    for rows in (SMALL, LARGE):
        path = tmp_path / f"{rows}{name}"
        write(path, rows)
        peaks[rows] = peak_bytes(TextChoice(str(path), **choices).source())
        path.unlink()
    permutation = 8 * LARGE if choices.get("shuffle", True) else 0
    assert peaks[LARGE] <= peaks[SMALL] + permutation + 500_000


def test_a_whole_file_is_shuffled_through_the_disk(tmp_path):
    path = tmp_path / "rows.txt"
    rows = LARGE
    write(path, rows)
    size = path.stat().st_size
    peak = peak_bytes(TextChoice(str(path)).source())
    assert peak < 32 * rows + 500_000 < size / 4


def test_parquet_is_read_a_page_at_a_time(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pool = pa.default_memory_pool()
    peaks = {}
    for rows in (SMALL, LARGE):
        path = tmp_path / f"{rows}.parquet"
        texts = [f"{number} {SENTENCE}" for number in range(rows)]
        # One row group, not compressed, without a dictionary: as large as it can be.
        table = pa.table({"text": texts})
        pq.write_table(table, path, row_group_size=rows, compression="none", use_dictionary=False)
        del table, texts
        python = peak_bytes(TextChoice(str(path), samples=500).source())
        before = pool.bytes_allocated()
        highest = before
        for _ in open_texts(TextChoice(str(path), samples=500, shuffle=False).source()):
            highest = max(highest, pool.bytes_allocated())
        for _ in open_texts(TextChoice(str(path), shuffle=False).source()):
            highest = max(highest, pool.bytes_allocated())
        peaks[rows] = python + highest - before
    assert peaks[LARGE] <= peaks[SMALL] + 8 * LARGE + 4_000_000
