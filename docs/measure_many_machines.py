"""What a text costs on this machine: the measured inputs of `simulate_many_machines.py --measure`.

Files have one text a line. Seconds are those of the processor, of one thread (but for those of
loading) and mostly of the fastest of some tries, so that other work on the machine changes them
little. It takes a few minutes.
"""

import gzip
import json
import pickle
import subprocess
import sys
import tempfile
import time
import tracemalloc
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fillmask_ui import load_model
from fillmask_ui.bench.timing import EncoderShape
from fillmask_ui.evaluation import EvaluatedText, EvaluationConfig, RunningSummary, evaluate
from fillmask_ui.evaluation.measure import BLOCK_TEXTS
from fillmask_ui.files import asset
from fillmask_ui.protocol import MaskedLM
from fillmask_ui.records import Example
from fillmask_ui.runs.rows_file import dump_row, read_row
from fillmask_ui.texts import Texts, TextSource, open_texts

BLOCKS = 4
MERGES = 200  # of a block's partial sums: memory and time of 102,400 texts
EMBEDDED = EncoderShape(layers=6, hidden=384, inner=1536, vocabulary=22_400, embedding=384)
NOTED = 200_000  # entries of the sets and dictionaries whose memory is measured
BERT_BASE = EncoderShape(layers=12, hidden=768, inner=3072, vocabulary=30_522, embedding=768)


def measure(files: Sequence[str]) -> dict[str, float]:
    """The fields of `simulate_many_machines.Measured`."""
    lines = [line for file in files for line in _lines(Path(file)) if line.strip()]
    chosen = np.random.default_rng(0).permutation(len(lines))[: BLOCKS * BLOCK_TEXTS]
    texts = [Example(number, lines[place]) for number, place in enumerate(chosen)]
    model, config = load_model(threads=1), EvaluationConfig()
    list(evaluate(model, texts[:64], config))  # the first calls allocate
    rows, seconds = _timed(lambda: list(evaluate(model, texts, config)), 2)
    rows = [row for row in rows if isinstance(row, EvaluatedText)]
    return {
        **_lengths(lines),
        "tokens_a_text": sum(len(row.ids) for row in rows) / len(rows),
        "hidden_tokens_a_text": sum(len(row.cols) for row in rows) / len(rows),
        **_worker(seconds, rows, config, model),
        **_driver(rows, config, model),
        **_formats(rows),
        **_reading(lines),
        **_loading(),
    }


def _lines(path: Path) -> list[str]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines()


def _timed(work: Callable[[], Any], times: int = 1) -> tuple[Any, float]:
    """What it gives, and the seconds of the fastest time."""
    spent, found = [], None
    for _ in range(times):
        begun = time.process_time()
        found = work()
        spent.append(time.process_time() - begun)
    return found, min(spent)


def _lengths(lines: Sequence[str]) -> dict[str, float]:
    """Of texts, and how much the work of blocks varies: in bytes, of which a model reads 2,200."""
    sizes = np.array([len(line.encode()) for line in lines])
    work = np.minimum(sizes, 2200)
    found = {"text_bytes": sizes.mean(), "log_mean": np.log(sizes).mean()}
    found["log_deviation"] = np.log(sizes).std()
    shuffled = np.random.default_rng(0).permutation(work)
    for name, ordered in (("variation_in_order", work), ("variation_shuffled", shuffled)):
        whole = len(ordered) // BLOCK_TEXTS * BLOCK_TEXTS
        blocks = ordered[:whole].reshape(-1, BLOCK_TEXTS).sum(axis=1)
        found[name] = blocks.std() / blocks.mean()
    return found


def _sums(rows: Sequence[EvaluatedText], config: EvaluationConfig, size: int) -> RunningSummary:
    running = RunningSummary(config=config, vocabulary_size=size)
    for row in rows:
        running.add(row)
    return running


def _worker(
    seconds: float, rows: Sequence[EvaluatedText], config: EvaluationConfig, model: MaskedLM
) -> dict[str, float]:
    size = model.vocabulary.size
    lengths = [(len(row.ids), len(row.cols)) for row in rows]
    summing = _timed(lambda: _sums(rows, config, size), 3)[1]
    dumping = _timed(lambda: [dump_row(row, 1) for row in rows], 3)[1]
    return {
        "text_seconds": seconds / len(rows),
        "rows_seconds": (summing + dumping) / len(rows),
        "base_operations": BERT_BASE.operations(lengths) / EMBEDDED.operations(lengths),
    }


def _driver(
    rows: Sequence[EvaluatedText], config: EvaluationConfig, model: MaskedLM
) -> dict[str, float]:
    """What a block costs the driver, and what its memory keeps of a text."""
    block, size = rows[:BLOCK_TEXTS], model.vocabulary.size
    sent = pickle.dumps(_sums(block, config, size), 5)
    lines = b"".join(dump_row(row, 1) for row in block)
    running = RunningSummary(vocabulary_size=size)  # without a config the same texts may come again
    merging = _timed(lambda: _merge(running, sent), 3)[1] / MERGES
    summing = _timed(running.summary, 3)[1] / running.texts
    with tempfile.TemporaryFile() as file:

        def append() -> None:
            for _ in range(MERGES):
                file.write(lines)
                file.flush()

        appending = _timed(append, 3)[1] / MERGES
    tracemalloc.start()
    running = RunningSummary(vocabulary_size=size)
    running.merge(_received(sent))
    before, texts = tracemalloc.get_traced_memory()[0], running.texts
    _merge(running, sent)
    kept = (tracemalloc.get_traced_memory()[0] - before) / (running.texts - texts)
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    running.summary()
    peak = (tracemalloc.get_traced_memory()[1] - before) / running.texts
    before = tracemalloc.get_traced_memory()[0]
    stored = {index: zlib.crc32(b"%d" % index) for index in range(NOTED)}  # as `Recorder._stored`
    of_resumed = (tracemalloc.get_traced_memory()[0] - before) / len(stored)
    before = tracemalloc.get_traced_memory()[0]
    units = {(0, number, 0) for number in range(NOTED)}  # as blocks are noted in `cluster/`
    of_unit = (tracemalloc.get_traced_memory()[0] - before) / len(units)
    tracemalloc.stop()
    stored_rows = lines.splitlines()
    read_again = _timed(lambda: _sums(list(map(_parsed, stored_rows)), config, size), 3)[1]
    return {
        "merge_seconds": merging,
        "append_seconds": appending,
        "partial_bytes": len(sent),
        "compressed_bytes": len(zlib.compress(sent, 1)),
        "whole_bytes": len(_whole(sent, size)),
        "row_bytes": len(lines) / len(block),
        "kept_bytes": kept,
        "summary_bytes": peak,
        "summary_seconds": summing,
        "unit_bytes": of_unit,
        "stored_bytes": of_resumed,
        "resume_seconds": read_again / len(block),
    }


def _parsed(line: bytes) -> EvaluatedText:
    return read_row(line, "a row").row


def _merge(running: RunningSummary, sent: bytes) -> None:
    """The sums of many blocks have come."""
    for _ in range(MERGES):
        running.merge(_received(sent))


def _received(sent: bytes) -> RunningSummary:
    return pickle.loads(sent)  # noqa: S301 - made by `_driver`


def _whole(sent: bytes, size: int) -> bytes:
    """Sums in which each word of the vocabulary occurs."""
    running = _received(sent)
    model = running._model
    model.occurrences.update(range(size))
    one = np.ones_like(next(iter(model.by_token.values())))
    model.by_token = {token: one + model.by_token.get(token, 0) for token in range(size)}
    return pickle.dumps(running)


def _formats(rows: Sequence[EvaluatedText]) -> dict[str, float]:
    """Bytes of rows.jsonl as other files."""
    lines = [dump_row(row, 1) for row in rows]
    table = pa.Table.from_pylist([json.loads(line) for line in lines])

    def write() -> int:
        target = pa.BufferOutputStream()
        pq.write_table(table, target, compression="zstd")
        return target.getvalue().size

    size, seconds = _timed(write, 3)
    made = _timed(lambda: pa.Table.from_pylist([row.to_dict() for row in rows]), 3)[1]
    return {
        "gzip_bytes": len(gzip.compress(b"".join(lines), 6)) / len(rows),
        "parquet_bytes": size / len(rows),
        "parquet_seconds": (made + seconds) / len(rows),
    }


def _reading(lines: Sequence[str]) -> dict[str, float]:
    """Seconds of a read task for each text, checksum included."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "texts.txt"
        path.write_text("\n".join(lines), "utf-8")
        source = TextSource("file", str(path), shuffle=False)
        in_order = _timed(lambda: _read(open_texts(source)), 3)[1]
        # Counted and copied to a temporary file when they are opened.
        texts, opening = _timed(lambda: open_texts(replace(source, shuffle=True)))
        reading = _timed(lambda: _read(texts))[1]
    return {
        "read_seconds": in_order / len(lines),
        "shuffle_seconds": opening / len(lines),
        "shuffled_read_seconds": reading / len(lines),
    }


def _read(texts: Texts) -> int:
    with texts:
        return sum(zlib.crc32(text.text.encode()) > 0 for text in texts)


def _loading() -> dict[str, float]:
    """Of a new process, and the bytes of the model."""
    command = [sys.executable, "-c", "from fillmask_ui import load_model; load_model(threads=1)"]
    begun = time.perf_counter()
    subprocess.run(command, check=True)
    folder = asset("model")
    names = ("model.safetensors", "config.json", "tokenizer.json", "model.onnx")
    return {
        "load_seconds": time.perf_counter() - begun,
        "model_bytes": sum((folder / name).stat().st_size for name in names),
    }
