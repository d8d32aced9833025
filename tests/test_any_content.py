"""Whatever a file or a person writes is read, or ends in an error with a message."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from fillmask_ui.errors import FillmaskError
from fillmask_ui.runs import RunInfo
from fillmask_ui.runs.info import read_info
from fillmask_ui.runs.rows_file import dump_row, read_row

few = settings(max_examples=40)
RUNS = sorted((Path(__file__).parent / "recorded" / "runs").iterdir())
ROWS = [line for run in RUNS for line in (run / "rows.jsonl").read_bytes().splitlines()]
MEASURED = [json.loads(line) for line in ROWS if b'"nll_nats"' in line]
INFOS = [json.loads((run / "run.json").read_bytes()) for run in RUNS]
TEXT = st.text(max_size=40)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


@few
@given(st.data())
def test_a_row_is_read_back_equal(data):
    """Every digit of a float, every character of a text, infinite losses too."""
    row = dict(data.draw(st.sampled_from(MEASURED)))
    hidden = len(row["nll_nats"])
    loss = st.floats(min_value=0, allow_nan=False)
    row["nll_nats"] = data.draw(st.lists(loss, min_size=hidden, max_size=hidden))
    row["text"] = data.draw(st.text(st.characters(exclude_categories=["Cs"])))
    first = read_row(json.dumps(row).encode(), "a row")
    again = read_row(dump_row(first.row, first.checksum), "a row")
    assert again.row.to_dict() == first.row.to_dict()
    assert again.checksum == row["checksum"]
    assert again.row.scores.nll_nats.tolist() == row["nll_nats"]
    assert again.row.text == row["text"]


@few
@given(info=st.sampled_from(INFOS), key=st.sampled_from(sorted(INFOS[0])), value=ANY)
def test_any_run_file_is_read_or_refused(tmp_path_factory, info, key, value):
    folder = tmp_path_factory.mktemp("run")
    inner = {key: {**info[key], "seed": value}} if isinstance(info[key], dict) else {}
    for content in (value, {**info, key: value}, {**info, **inner}):
        (folder / "run.json").write_text(json.dumps(content), encoding="utf-8")
        try:
            assert isinstance(read_info(folder), RunInfo)
        except FillmaskError as error:
            assert str(error)
