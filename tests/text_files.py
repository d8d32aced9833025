"""Files of texts in every layout, and how they are read."""

import gzip
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq

from fillmask_ui.texts import TextChoice, open_texts

LAYOUTS = ["txt", "txt.gz", "csv", "csv.gz", "tsv", "jsonl", "jsonl.gz", "parquet"]


def content(texts, layout):
    """The bytes of a file of a layout."""
    kind = layout.removesuffix(".gz")
    if kind == "parquet":
        file = io.BytesIO()
        table = pa.table({"n": [1] * len(texts), "text": pa.array(texts, pa.string())})
        pq.write_table(table, file, row_group_size=2)
        return file.getvalue()
    mark = "\t" if kind == "tsv" else ","
    header = {"csv": "n,text\n", "tsv": "n\ttext\n"}.get(kind, "") if texts else ""
    row = {
        "txt": "{}\n".format,
        "jsonl": lambda text: json.dumps({"text": text}) + "\n",
    }.get(kind, lambda text: f'1{mark}"{text}"\n')
    written = (header + "".join(map(row, texts))).encode()
    return gzip.compress(written, 1) if layout.endswith(".gz") else written


def read(path, **choices):
    """Examples in their own order, unless `choices` say another."""
    return list(open_texts(TextChoice(str(path), **{"shuffle": False, **choices}).source()))


def texts_of(path, **choices):
    return [example.text for example in read(path, **choices)]
